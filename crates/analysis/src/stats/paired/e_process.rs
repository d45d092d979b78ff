//! Sequential test of paired differences: evidence that may be examined after every block.

use crate::stats::special::ln_gamma;

/// Evidence at which a difference is significant. Without any difference at most 5 % of all experiments ever reach it,
/// however often the evidence is examined (Ville 1939).
pub const ENOUGH_EVIDENCE: f64 = 20.0;

/// The evidence against "either arm is equally likely to have the larger value" after `n` blocks of which one arm had
/// the larger value in `s`: `2^n / ((n + 1) C(n, s))`, a mixture of likelihood ratios (Robbins 1970).
pub fn evidence(n: usize, s: usize) -> f64 {
    let gamma = |k: usize| ln_gamma(k as f64 + 1.0);
    let ways = gamma(n) - gamma(s) - gamma(n.saturating_sub(s));
    (n as f64 * 2f64.ln() - ways).exp() / (n as f64 + 1.0)
}

/// The evidence of these differences; zeros are left out.
pub fn evidence_of(differences: &[f64]) -> f64 {
    let positive = differences.iter().filter(|d| **d > 0.0).count();
    evidence(positive + differences.iter().filter(|d| **d < 0.0).count(), positive)
}

/// Confidence sequence for the median difference, from the differences in the order of their blocks: in 95 % of all
/// experiments the median stays between these limits at every number of blocks. Infinite without enough evidence.
pub fn confidence_sequence(differences: &[f64]) -> (f64, f64) {
    let mut sorted: Vec<f64> = Vec::with_capacity(differences.len());
    let (mut lower, mut upper) = (f64::NEG_INFINITY, f64::INFINITY);
    for difference in differences.iter().filter(|d| !d.is_nan()) {
        sorted.insert(sorted.partition_point(|d| d < difference), *difference);
        let n = sorted.len();
        // The fewest differences on one side of the median that do not reject it.
        let fewest = (0..=n / 2).find(|s| evidence(n, *s) < ENOUGH_EVIDENCE).unwrap_or(n / 2);
        if let Some(below) = fewest.checked_sub(1) {
            lower = sorted.get(below).map_or(lower, |d| lower.max(*d));
            upper = sorted.get(n - fewest).map_or(upper, |d| upper.min(*d));
        }
    }
    (lower, upper)
}

/// Number of blocks, in their order, after which there was enough evidence; `None` if there never was.
pub fn decided_after(differences: &[f64]) -> Option<usize> {
    (1..=differences.len()).find(|n| differences.get(..*n).is_some_and(|d| evidence_of(d) >= ENOUGH_EVIDENCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_has_its_known_values() {
        for (n, s, value) in [(7, 7, 16.0), (8, 8, 28.4444), (12, 11, 26.2564), (12, 10, 4.7739), (20, 10, 0.2703)] {
            assert!((evidence(n, s) - value).abs() < 1e-4, "{n} {s}: {}", evidence(n, s));
            assert!((evidence(n, n - s) - value).abs() < 1e-4, "either arm");
        }
        assert!((evidence(0, 0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn eight_wins_in_a_row_decide() {
        assert_eq!(decided_after(&[1.0; 7]), None);
        assert_eq!(decided_after(&[1.0; 9]), Some(8));
        assert_eq!(decided_after(&[-1.0; 9]), Some(8));
        assert_eq!(decided_after(&[1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]), Some(9), "ties are left out");
    }

    #[test]
    fn the_sequence_leaves_out_0_exactly_when_it_is_decided() {
        let differences = [0.3, 0.1, 0.2, 0.4, 0.5, 0.15, 0.25, 0.35];
        assert_eq!(confidence_sequence(&differences[..7]), (f64::NEG_INFINITY, f64::INFINITY));
        assert_eq!(confidence_sequence(&differences), (0.1, 0.5));
        let mut later = differences.to_vec();
        later.extend([0.22; 12]);
        let (lower, upper) = confidence_sequence(&later);
        assert!(lower >= 0.1 && upper <= 0.5 && lower <= 0.22 && upper >= 0.22, "{lower} {upper}");
    }

    #[test]
    fn repeated_looks_keep_the_error_rate() {
        let mut random = punctual_model::SplitMix64::new(11);
        let mut found = 0;
        for _ in 0..1000 {
            let differences: Vec<f64> = (0..100).map(|_| random.below(2) as f64 - 0.5).collect();
            found += usize::from(decided_after(&differences).is_some());
        }
        assert!(found <= 50, "{found} of 1000");
    }
}
