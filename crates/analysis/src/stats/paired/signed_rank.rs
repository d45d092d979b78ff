//! The signed-rank test of paired differences (Wilcoxon 1945), exact.

use crate::stats::ranks::midranks;
use crate::stats::special::{normal_beyond, normal_quantile, whole};

/// Most differences for the exact test; above, the normal approximation is good enough.
const MOST_EXACT: usize = 50;

/// A signed-rank test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRank {
    /// Differences that are not 0; zeros have no sign and are left out.
    pub n: usize,
    /// The sum of the ranks of the positive ones.
    pub positive: f64,
    /// One-sided p-value: the chance of a sum at least as large when either sign is equally likely.
    pub p_greater: f64,
    /// Two-sided p-value.
    pub p: f64,
}

/// The test of these differences. Up to 50 it is exact, also with ties, by counting all 2^n signs; beyond that it is
/// the normal approximation. `None` when all differences are 0.
pub fn signed_rank(differences: &[f64]) -> Option<SignedRank> {
    let left: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0 && !d.is_nan()).collect();
    let n = left.len();
    let ranks = midranks(&left.iter().map(|d| d.abs()).collect::<Vec<_>>());
    let positive: f64 = left.iter().zip(&ranks).filter(|(d, _)| **d > 0.0).map(|(_, rank)| rank).sum();
    if n == 0 {
        return None;
    }
    let total: f64 = ranks.iter().sum();
    let (p_greater, p_less) = if n <= MOST_EXACT {
        // Twice the midranks are whole numbers.
        let doubled: Vec<usize> = ranks.iter().map(|rank| place(2.0 * rank)).collect();
        let chances = sums(&doubled);
        let at_least: f64 = chances.iter().skip(place(2.0 * positive)).sum();
        let at_most: f64 = chances.iter().take(place(2.0 * positive) + 1).sum();
        (at_least, at_most)
    } else {
        let deviation = (ranks.iter().map(|rank| rank * rank).sum::<f64>() / 4.0).sqrt();
        let z = (positive - total / 2.0) / deviation;
        let beyond = 0.5 * normal_beyond(z);
        if z > 0.0 { (beyond, 1.0 - beyond) } else { (1.0 - beyond, beyond) }
    };
    Some(SignedRank { n, positive, p_greater, p: (2.0 * p_greater.min(p_less)).min(1.0) })
}

/// Number of the smallest, and of the largest, pairwise means that an interval with this confidence leaves out, for `n`
/// differences: one less than the order `c` of its ends (Hollander & Wolfe 1973, 3.3). `None` when `n` is too small.
pub fn critical_order(n: usize, confidence: f64) -> Option<usize> {
    let tail = (1.0 - confidence) / 2.0;
    if n > MOST_EXACT {
        let m = n as f64;
        let deviation = (m * (m + 1.0) * (2.0 * m + 1.0) / 24.0).sqrt();
        let order = m * (m + 1.0) / 4.0 + normal_quantile(tail) * deviation;
        return Some(place(order.floor())).filter(|order| *order > 0);
    }
    let ranks: Vec<usize> = (1..=n).collect();
    let mut below = 0.0;
    let mut is_left_out = |chance: &f64| {
        below += chance;
        below <= tail
    };
    let order = sums(&ranks).iter().take_while(|chance| is_left_out(chance)).count();
    (order > 0).then_some(order)
}

/// The chance of each sum of the ranks with a positive sign, when both signs are equally likely.
fn sums(ranks: &[usize]) -> Vec<f64> {
    let mut chances = vec![0.0; ranks.iter().sum::<usize>() + 1];
    chances[0] = 1.0;
    for rank in ranks {
        for sum in (0..chances.len()).rev() {
            let without = chances[sum];
            let with = sum.checked_sub(*rank).map_or(0.0, |before| chances[before]);
            chances[sum] = 0.5 * (without + with);
        }
    }
    chances
}

fn place(value: f64) -> usize {
    usize::try_from(whole(value)).unwrap_or(usize::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Depression scores at two visits (Hollander & Wolfe 1973, p. 29; the example of R's `wilcox.test`).
    #[expect(clippy::approx_constant, reason = "3.14 is a score")]
    pub(in crate::stats::paired) fn depression() -> Vec<f64> {
        let first = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let second = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
        first.iter().zip(second).map(|(x, y)| x - y).collect()
    }

    pub(in crate::stats::paired) const TWELVE: [f64; 12] =
        [0.12, -0.03, 0.25, 0.08, 0.31, -0.10, 0.17, 0.05, 0.22, 0.14, -0.01, 0.28];

    #[test]
    fn tests_have_their_known_values() {
        let test = signed_rank(&depression()).unwrap();
        assert_eq!((test.n, test.positive, test.p_greater), (9, 40.0, 0.019_531_25));
        let test = signed_rank(&TWELVE).unwrap();
        assert_eq!((78.0 - test.positive, test.p), (8.0, 0.012_207_031_25));
    }

    #[test]
    fn orders_have_their_known_values() {
        for (n, order) in [(6, 1), (8, 4), (10, 9), (12, 14), (16, 30), (20, 53), (24, 82)] {
            assert_eq!(critical_order(n, 0.95), Some(order), "{n}");
        }
        assert_eq!((critical_order(5, 0.95), critical_order(0, 0.95)), (None, None));
        let (exact, approximate) = (critical_order(50, 0.95).unwrap(), critical_order(51, 0.95).unwrap());
        assert!(approximate > exact && approximate < exact + 40, "{exact} {approximate}");
    }

    #[test]
    fn differences_of_nothing_are_left_out_and_equal_ones_share_ranks() {
        assert_eq!(signed_rank(&[]), None);
        assert_eq!(signed_rank(&[0.0, 0.0]), None);
        let test = signed_rank(&[0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]).unwrap();
        assert_eq!((test.n, test.positive, test.p), (6, 21.0, 2.0 / 64.0));
    }

    #[test]
    fn many_differences_are_judged_as_few_are() {
        let differences = |n: u32| -> Vec<f64> { (0..n).map(|i| f64::from(i * 7919 % 1009) / 1009.0 - 0.42).collect() };
        let (exact, normal) = (signed_rank(&differences(50)).unwrap().p, signed_rank(&differences(51)).unwrap().p);
        assert!((exact / normal).ln().abs() < 0.3, "{exact} {normal}");
    }

    proptest! {
        #[test]
        fn the_order_of_blocks_and_the_names_of_the_arms_do_not_matter(
            mut differences in prop::collection::vec(-1e3..1e3f64, 1..30),
        ) {
            let test = signed_rank(&differences).map(|test| test.p);
            differences.reverse();
            prop_assert_eq!(signed_rank(&differences).map(|test| test.p), test);
            let exchanged: Vec<f64> = differences.iter().map(|d| -d).collect();
            let (a, b) = (signed_rank(&exchanged).map_or(1.0, |test| test.p), test.unwrap_or(1.0));
            prop_assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
    }
}
