//! Merges slices until neighbors are no longer correlated.

use super::Count;
use crate::stats::ranks::midranks;

/// Numbers of slices to try, largest first. Fewer than 20 would not show how much slices differ.
const LADDER: [usize; 4] = [128, 64, 32, 20];

/// Merges adjacent slices until the exceedances of neighbors are not correlated, but not below 20 slices.
///
/// More than 128 slices are merged to 128 first: with hardly an exceedance in each, correlation would be invisible.
pub(super) fn independent(counts: &[Count]) -> Vec<Count> {
    let mut counts = if counts.len() > LADDER[0] { merged(counts, LADDER[0]) } else { counts.to_vec() };
    for target in LADDER {
        if counts.len() > target && correlated(&counts) {
            counts = merged(&counts, target);
        }
    }
    counts
}

/// Merges `counts` into `target` groups of neighbors of nearly equal size. A group may span two blocks.
fn merged(counts: &[Count], target: usize) -> Vec<Count> {
    let mut groups = vec![Count::default(); target];
    for (i, count) in counts.iter().enumerate() {
        if let Some(group) = groups.get_mut(i * target / counts.len()) {
            group.n += count.n;
            group.above += count.above;
        }
    }
    groups
}

/// Whether the lag-1 autocorrelation of the ranks is above 2 / sqrt(m), which chance exceeds once in 44 times.
fn correlated(counts: &[Count]) -> bool {
    let shares: Vec<f64> = counts.iter().map(|count| count.above as f64 / count.n as f64).collect();
    let ranks = midranks(&shares);
    let m = ranks.len() as f64;
    let middle = (m + 1.0) / 2.0;
    let total: f64 = ranks.iter().map(|rank| (rank - middle).powi(2)).sum();
    let lagged: f64 = ranks.iter().zip(ranks.iter().skip(1)).map(|(a, b)| (a - middle) * (b - middle)).sum();
    total > 0.0 && lagged / total > 2.0 / m.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(above: impl IntoIterator<Item = u64>) -> Vec<Count> {
        above.into_iter().map(|above| Count { n: 100, above }).collect()
    }

    #[test]
    fn slices_that_do_not_vary_are_not_correlated() {
        assert!(!correlated(&counts([3; 40])), "nothing varies");
    }

    #[test]
    fn only_correlated_slices_are_merged() {
        let alternating = counts((0..100).map(|i| i % 2));
        assert_eq!(independent(&alternating).len(), 100);
        let stretches = counts((0..100).map(|i| u64::from(i % 50 < 25)));
        assert_eq!(independent(&stretches).len(), 20);
        assert_eq!(independent(&counts((0..20).map(|i| i / 10))).len(), 20, "never below 20");
        assert_eq!(independent(&counts((0..12).map(|i| i / 6))).len(), 12, "fewer stay as they are");
        let many = independent(&counts((0..1000).map(|i| i % 2)));
        assert_eq!((many.len(), many.iter().map(|c| c.n).sum::<u64>()), (128, 100_000));
    }
}
