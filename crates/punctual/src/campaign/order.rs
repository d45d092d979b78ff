//! The order of measurements: blocks, each with every cell once, in a random order that the seed decides.

use model::Planned;

/// Every measurement of a run, in order. The same numbers give the same order, for ever and everywhere: the order is
/// part of the result, so it comes from these few lines and not from a library whose next version may draw otherwise.
pub(crate) fn planned(n_cells: usize, blocks: u32, seed: u64) -> Vec<Planned> {
    let mut random = SplitMix64(seed);
    (0..blocks).flat_map(|block| one_block(n_cells, block, &mut random)).collect()
}

/// A Fisher-Yates shuffle of all cells.
fn one_block(n_cells: usize, block: u32, random: &mut SplitMix64) -> Vec<Planned> {
    let mut cells: Vec<usize> = (0..n_cells).collect();
    for last in (1..n_cells).rev() {
        cells.swap(last, random.below(last + 1));
    }
    (0..).zip(cells).map(|(position, cell_index)| Planned { block, position, cell_index }).collect()
}

/// The generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `n - 1`, all equally likely to within n / 2^64: the high half of a 128-bit product.
    fn below(&mut self, n: usize) -> usize {
        let product = u128::from(self.next()) * n as u128;
        usize::try_from(product >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_its_published_numbers() {
        // The first three outputs for seed 1234567 of the reference implementation (prng.di.unimi.it/splitmix64.c).
        let mut random = SplitMix64(1_234_567);
        assert_eq!(
            [random.next(), random.next(), random.next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn each_block_has_every_cell_once_and_the_seed_decides_the_order() {
        let order = planned(4, 6, 1);
        assert_eq!(order, planned(4, 6, 1));
        assert_ne!(order, planned(4, 6, 2));
        for block in order.chunks(4) {
            let mut cells: Vec<_> = block.iter().map(|planned| planned.cell_index).collect();
            cells.sort_unstable();
            assert_eq!(cells, [0, 1, 2, 3]);
        }
        assert!(planned(0, 3, 1).is_empty());
    }

    #[test]
    fn every_cell_comes_first_about_equally_often() {
        let mut first = [0; 4];
        for planned in planned(4, 4000, 7).iter().filter(|planned| planned.position == 0) {
            first[planned.cell_index] += 1;
        }
        // 1000 expected, standard deviation 27.
        assert!(first.iter().all(|n| (860..1140).contains(n)), "{first:?}");
    }
}
