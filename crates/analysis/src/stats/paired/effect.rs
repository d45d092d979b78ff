//! Size of a paired difference: the Hodges-Lehmann estimate with its exact interval.

use super::signed_rank::critical_order;

/// A paired difference with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// The median of the means of all pairs of differences, each with itself included (Hodges & Lehmann 1963).
    pub difference: f64,
    /// The lower end of its interval.
    pub lower: f64,
    /// The upper end.
    pub upper: f64,
}

/// The difference and its interval at `confidence`: the values that the signed-rank test does not reject. `None` with
/// too few differences for the confidence (6 at 95 %), or when one is not a number.
pub fn hodges_lehmann(differences: &[f64], confidence: f64) -> Option<Effect> {
    if differences.iter().any(|d| d.is_nan()) {
        return None;
    }
    let order = critical_order(differences.len(), confidence)?;
    let pairs = differences.iter().enumerate();
    let mut means: Vec<f64> = pairs.flat_map(|(i, a)| differences.iter().skip(i).map(move |b| 0.5 * (a + b))).collect();
    means.sort_by(f64::total_cmp);
    Some(Effect {
        difference: middle(&means)?,
        lower: *means.get(order - 1)?,
        upper: *means.get(means.len().checked_sub(order)?)?,
    })
}

/// The median of ascending values.
fn middle(ascending: &[f64]) -> Option<f64> {
    let n = ascending.len();
    Some(0.5 * (ascending.get(n.checked_sub(1)? / 2)? + ascending.get(n / 2)?))
}

/// The standard deviation of the differences. `None` below 2.
pub fn deviation(differences: &[f64]) -> Option<f64> {
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
    (differences.len() >= 2).then(|| (squares / (n - 1.0)).sqrt())
}

/// Number of blocks to detect a difference of `wanted`, or to exclude one that large, with a power of about 80 %:
/// `(2.95 deviation / wanted)^2`, at least 6. `None` if `wanted` is not above 0.
pub fn blocks_needed(deviation: f64, wanted: f64) -> Option<u64> {
    let blocks = (2.95 * deviation / wanted).powi(2).ceil();
    (wanted > 0.0 && blocks.is_finite()).then(|| crate::stats::special::whole(blocks).max(6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::paired::signed_rank::tests::{TWELVE, depression};
    use proptest::prelude::*;

    #[test]
    fn effects_have_their_known_values() {
        let near = |got: f64, want: f64| (got - want).abs() < 1e-12;
        let effect = hodges_lehmann(&depression(), 0.95).unwrap();
        assert!(near(effect.difference, 0.46) && near(effect.lower, 0.01) && near(effect.upper, 0.786), "{effect:?}");
        let effect = hodges_lehmann(&TWELVE, 0.95).unwrap();
        assert!(near(effect.difference, 0.125) && near(effect.lower, 0.035) && near(effect.upper, 0.215), "{effect:?}");
    }

    #[test]
    fn too_few_differences_are_refused() {
        assert_eq!(hodges_lehmann(&[1.0; 5], 0.95), None);
        assert_eq!(hodges_lehmann(&[1.0, 1.0, 1.0, 1.0, 1.0, f64::NAN], 0.95), None);
        let six = hodges_lehmann(&[1.0; 6], 0.95).unwrap();
        assert_eq!((six.lower, six.difference, six.upper), (1.0, 1.0, 1.0));
    }

    #[test]
    fn blocks_follow_from_noise_and_what_is_wanted() {
        // Statistics of a real machine: 12 blocks find a ratio of 1.45 where the deviation is 0.44.
        assert_eq!(blocks_needed(0.44, 1.45f64.ln()), Some(13));
        assert_eq!(blocks_needed(0.001, 0.1), Some(6));
        assert_eq!((blocks_needed(0.1, 0.0), deviation(&[1.0])), (None, None));
        assert_eq!(deviation(&[1.0, 3.0]), Some(2.0f64.sqrt()));
    }

    proptest! {
        #[test]
        fn limits_are_ordered_and_exchange_with_the_arms(
            differences in prop::collection::vec(-10.0..10.0f64, 6..40),
        ) {
            let effect = hodges_lehmann(&differences, 0.95).unwrap();
            prop_assert!(effect.lower <= effect.difference && effect.difference <= effect.upper);
            let exchanged: Vec<f64> = differences.iter().map(|d| -d).collect();
            let other = hodges_lehmann(&exchanged, 0.95).unwrap();
            prop_assert!((other.lower + effect.upper).abs() < 1e-12 && (other.difference + effect.difference).abs() < 1e-12);
            let wider = hodges_lehmann(&differences, 0.99).map_or(f64::NEG_INFINITY, |wider| wider.lower);
            prop_assert!(wider <= effect.lower);
        }
    }
}
