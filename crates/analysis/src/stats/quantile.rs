//! Quantiles of a histogram: the order statistic of rank `ceil(p * n)`, at the upper edge of its bucket.

use crate::stats::special::whole;
use punctual_model::{Bucket, Histogram};

/// The `p` quantile, ns: the order statistic of rank `ceil(p * n)` (type 1 of Hyndman & Fan 1996).
///
/// It is the upper edge of the sample's bucket, so it is never too small and at most 0.78 % too large, and never
/// above the exact maximum. `None` when the histogram is empty.
pub fn quantile(histogram: &Histogram, p: f64) -> Option<i64> {
    let bucket = bucket_at(histogram, rank(histogram.n, p))?;
    Some(upper_edge(histogram, bucket))
}

/// `ceil(p * n)`, at least 1 and at most `n`.
pub(crate) fn rank(n: u64, p: f64) -> u64 {
    let position = p * n as f64;
    // A product like 0.07 * 100 = 7.000000000000001 means 7: a few units in the last place must not raise the rank.
    whole((position - position * 4.0 * f64::EPSILON).ceil()).clamp(1, n.max(1))
}

/// The bucket of the order statistic with this rank, from 1. `None` when there are fewer samples.
pub(crate) fn bucket_at(histogram: &Histogram, rank: u64) -> Option<Bucket> {
    let above = histogram.n.checked_sub(rank)?;
    let mut passed = 0;
    // From the top, because the requested quantiles are high.
    histogram.buckets().rev().find(|bucket| {
        passed += bucket.count;
        passed > above
    })
}

/// The largest possible value of a sample in this bucket.
pub(crate) fn upper_edge(histogram: &Histogram, bucket: Bucket) -> i64 {
    let upper = i64::try_from(bucket.upper_ns).unwrap_or(i64::MAX);
    histogram.max_ns.map_or(upper, |max| upper.min(max))
}

/// The smallest possible value of a sample in this bucket.
pub(crate) fn lower_edge(histogram: &Histogram, bucket: Bucket) -> i64 {
    let lower = i64::try_from(bucket.lower_ns).unwrap_or(i64::MAX);
    histogram.min_ns.map_or(lower, |min| if lower == 0 { min } else { lower.max(min) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_rank_is_the_rounded_up_share() {
        for (n, p, expected) in [
            (1, 0.5, 1),
            (2, 0.5, 1),
            (3, 0.5, 2),
            (100, 0.0, 1),
            (100, 0.07, 7),
            (100, 0.99, 99),
            (101, 0.99, 100),
            (1_000, 0.999, 999),
            (1_001, 0.999, 1_000),
            (100, 1.0, 100),
            (0, 0.5, 1),
        ] {
            assert_eq!(rank(n, p), expected, "{n} {p}");
        }
    }

    #[test]
    fn a_quantile_is_an_upper_edge_but_never_above_the_maximum() {
        assert_eq!(quantile(&Histogram::of(&[]), 0.5), None);
        assert_eq!(quantile(&Histogram::of(&[7]), 0.999), Some(7));
        assert_eq!(quantile(&Histogram::of(&[1, 2, 3, 4]), 0.5), Some(2));
        assert_eq!(quantile(&Histogram::of(&[512, 600]), 0.5), Some(515), "the bucket is 512 to 515");
        assert_eq!(quantile(&Histogram::of(&[513, 513]), 0.5), Some(513), "the maximum is exact");
        assert_eq!(quantile(&Histogram::of(&[-9, -5]), 0.5), Some(-5), "early samples share the first bucket");
    }

    proptest! {
        #[test]
        fn quantiles_rise_with_p_and_bracket_the_sample(
            mut latencies in prop::collection::vec(-100i64..10_000_000_000, 1..200),
            p in 0.0..=1.0f64,
            q in 0.0..=1.0f64,
        ) {
            let histogram = Histogram::of(&latencies);
            let (lower, upper) = (quantile(&histogram, p.min(q)).unwrap(), quantile(&histogram, p.max(q)).unwrap());
            prop_assert!(lower <= upper && Some(upper) <= histogram.max_ns);
            latencies.sort_unstable();
            let exact = latencies[usize::try_from(rank(histogram.n, p)).unwrap() - 1];
            let estimate = quantile(&histogram, p).unwrap();
            prop_assert!(estimate >= exact && estimate - exact.max(0) <= exact.max(0) / 128 , "{exact} {estimate}");
        }
    }
}
