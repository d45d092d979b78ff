//! Statistics of paired differences: one number for each block, never pooled samples.

mod e_process;
mod effect;
mod signed_rank;

pub use e_process::{ENOUGH_EVIDENCE, confidence_sequence, decided_after, evidence, evidence_of};
pub use effect::{Effect, blocks_needed, deviation, hodges_lehmann};
use punctual_model::Order;
pub use signed_rank::{SignedRank, critical_order, signed_rank};

/// p-values of several tests, adjusted for multiple testing (Holm 1979), in the given order: each may be compared with
/// 5 % by itself, and the chance of any false rejection stays at most 5 %.
pub fn holm(chances: &[f64]) -> Vec<f64> {
    let mut order: Vec<(usize, f64)> = chances.iter().copied().enumerate().collect();
    order.order_by(|a, b| a.1.total_cmp(&b.1));
    let mut adjusted = vec![1.0; chances.len()];
    let mut least = 0.0f64;
    for (left, (i, p)) in (1..=chances.len()).rev().zip(order) {
        least = least.max((p * left as f64).min(1.0));
        adjusted[i] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn several_tests_are_adjusted() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.5]);
        for (got, want) in adjusted.iter().zip([0.04, 0.09, 0.09, 0.5]) {
            assert!((got - want).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.2]), [0.2]);
    }

    proptest! {
        #[test]
        fn an_adjusted_chance_is_never_smaller_and_keeps_its_order(chances in prop::collection::vec(0.0..=1.0f64, 1..10)) {
            let adjusted = holm(&chances);
            for (i, a) in chances.iter().enumerate() {
                prop_assert!(adjusted[i] >= *a && adjusted[i] <= 1.0);
                for (j, b) in chances.iter().enumerate() {
                    prop_assert!(a > b || adjusted[i] <= adjusted[j]);
                }
            }
        }
    }
}
