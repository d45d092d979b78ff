//! The random number generator of every order and permutation, and the order of a run: part of the result.

use crate::Planned;

/// The generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
///
/// The same seed gives the same numbers in every version and on every machine. A run records its order as a seed, so
/// the generator is these few lines and not a library whose next version may draw other numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates a generator from this seed.
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// The next 64 bits.
    pub fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `n - 1`, uniform to within n / 2^64: the high half of a 128-bit product.
    pub fn below(&mut self, n: usize) -> usize {
        let product = u128::from(self.next_bits()) * n as u128;
        usize::try_from(product >> 64).unwrap_or(0)
    }

    /// Shuffles the items, each order equally likely (Fisher & Yates; Durstenfeld 1964).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

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
    fn the_generator_gives_its_published_numbers() {
        // The first three outputs for seed 1234567 of the reference implementation (prng.di.unimi.it/splitmix64.c).
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(
            [random.next_bits(), random.next_bits(), random.next_bits()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn a_shuffle_keeps_everything_and_reaches_every_order() {
        let mut random = SplitMix64::new(1);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let mut items = [1, 2, 3];
            random.shuffle(&mut items);
            let mut sorted = items;
            sorted.sort_unstable();
            assert_eq!(sorted, [1, 2, 3]);
            seen.insert(items);
        }
        assert_eq!(seen.len(), 6);
        random.shuffle::<u8>(&mut []);
    }

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
