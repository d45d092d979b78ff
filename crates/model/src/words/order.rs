//! The order of measurements: blocks that contain every cell once, in a random order given by the seed.

use crate::{Planned, SplitMix64};

/// Every measurement of a run, in order. Equal arguments give the same order in all versions and on all machines.
pub fn planned_order(n_cells: usize, blocks: u32, seed: u64) -> Vec<Planned> {
    let mut random = SplitMix64::new(seed);
    (0..blocks).flat_map(|block| one_block(n_cells, block, &mut random)).collect()
}

/// All cells in a random order.
fn one_block(n_cells: usize, block: u32, random: &mut SplitMix64) -> Vec<Planned> {
    let mut cells: Vec<usize> = (0..n_cells).collect();
    random.shuffle(&mut cells);
    (0..).zip(cells).map(|(position, cell_index)| Planned { block, position, cell_index }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_has_every_cell_once_and_the_seed_decides_the_order() {
        let order = planned_order(4, 6, 1);
        assert_eq!(order, planned_order(4, 6, 1));
        assert_ne!(order, planned_order(4, 6, 2));
        for block in order.chunks(4) {
            let mut cells: Vec<_> = block.iter().map(|planned| planned.cell_index).collect();
            cells.sort_unstable();
            assert_eq!(cells, [0, 1, 2, 3]);
        }
        assert!(planned_order(0, 3, 1).is_empty());
    }

    #[test]
    fn every_cell_comes_first_about_equally_often() {
        let mut first = [0; 4];
        for planned in planned_order(4, 4000, 7).iter().filter(|planned| planned.position == 0) {
            first[planned.cell_index] += 1;
        }
        // 1000 expected, standard deviation 27.
        assert!(first.iter().all(|n| (860..1140).contains(n)), "{first:?}");
    }
}
