//! Exact intervals for quantiles of independent samples, from ranks and the binomial distribution.

use crate::stats::special::{beta_i, normal_quantile, whole};

/// The chance of at most `k` successes in `n` trials of probability `p`.
pub(crate) fn binomial_cdf(k: u64, n: u64, p: f64) -> f64 {
    if k >= n { 1.0 } else { beta_i((n - k) as f64, (k + 1) as f64, 1.0 - p) }
}

/// The smallest `k` for which at most `k` successes in `n` trials have at least the chance `level`.
pub(crate) fn binomial_quantile(n: u64, p: f64, level: f64) -> u64 {
    // A normal variable with the same skewness (Cornish & Fisher 1938) is seldom off by more than 2, and six standard
    // deviations contain the answer for every level in use. Both ends are checked.
    let (mean, deviation, z) = (n as f64 * p, (n as f64 * p * (1.0 - p)).sqrt(), normal_quantile(level));
    let guess = mean + z * deviation + (z * z - 1.0) * (1.0 - 2.0 * p) / 6.0;
    let ranges = [(guess, 2.0), (mean, 6.0 * deviation + 1.0)];
    let ends = ranges.map(|(middle, reach)| (whole(middle - reach), whole(middle + reach).min(n)));
    let holds = |(lower, upper): &(u64, u64)| {
        (*lower == 0 || binomial_cdf(*lower, n, p) < level) && binomial_cdf(*upper, n, p) >= level
    };
    let (mut lower, mut upper) = ends.into_iter().find(holds).unwrap_or((0, n));
    while lower < upper {
        let middle = lower + (upper - lower) / 2;
        if binomial_cdf(middle, n, p) < level { lower = middle + 1 } else { upper = middle }
    }
    lower
}

/// Ranks (from 1) of the order statistics that hold the `p` quantile of `n` independent samples with at least this
/// confidence, whatever the distribution (David & Nagaraja 2003, 7.1). `None` when `n` is too small for two limits.
pub fn order_ranks(n: u64, p: f64, confidence: f64) -> Option<(u64, u64)> {
    let tail = (1.0 - confidence) / 2.0;
    let lower = binomial_quantile(n, p, tail);
    // The upper rank is one past the binomial quantile: only then is the confidence at least the requested one.
    let upper = binomial_quantile(n, p, 1.0 - tail) + 1;
    (lower >= 1 && upper <= n).then_some((lower, upper))
}

/// The median of independent values with its exact interval: `(lower, median, upper)`.
///
/// Of an even number of values the median is the mean of the middle two. `None` for fewer values than an interval
/// needs (6 at 95 %) and when a value is not a number.
pub fn median_interval(values: &[f64], confidence: f64) -> Option<(f64, f64, f64)> {
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (lower, upper) = order_ranks(u64::try_from(sorted.len()).ok()?, 0.5, confidence)?;
    let at = |rank: u64| sorted.get(usize::try_from(rank - 1).ok()?).copied();
    let (left, right) = (sorted.get((sorted.len() - 1) / 2)?, sorted.get(sorted.len() / 2)?);
    Some((at(lower)?, 0.5 * (left + right), at(upper)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_their_known_values() {
        for (n, p, ranks) in [
            (100, 0.5, (40, 60)),
            (1_000, 0.99, (983, 996)),
            (10_000, 0.999, (9_983, 9_996)),
            (1_000_000, 0.9999, (999_880, 999_919)),
        ] {
            let quantiles = (binomial_quantile(n, p, 0.025), binomial_quantile(n, p, 0.975));
            assert_eq!(quantiles, ranks, "{n} {p}");
            assert_eq!(order_ranks(n, p, 0.95), Some((ranks.0, ranks.1 + 1)), "{n} {p}");
        }
    }

    #[test]
    fn too_few_samples_have_no_interval() {
        assert_eq!(order_ranks(0, 0.5, 0.95), None);
        assert_eq!(order_ranks(5, 0.5, 0.95), None);
        assert_eq!(order_ranks(6, 0.5, 0.95), Some((1, 6)));
        assert_eq!(order_ranks(12, 0.5, 0.95), Some((3, 10)));
        assert_eq!(order_ranks(1_000, 0.999, 0.95), None);
    }

    #[test]
    fn the_interval_keeps_its_confidence_at_every_size() {
        for n in 6..80 {
            let (lower, upper) = order_ranks(n, 0.5, 0.95).unwrap();
            let confidence = binomial_cdf(upper - 1, n, 0.5) - binomial_cdf(lower - 1, n, 0.5);
            assert!(confidence >= 0.95, "{n}: {confidence}");
            assert_eq!(upper, n + 1 - lower, "symmetric");
        }
    }

    #[test]
    fn the_median_stands_between_its_limits() {
        assert_eq!(median_interval(&[], 0.95), None);
        assert_eq!(median_interval(&[1.0; 5], 0.95), None);
        assert_eq!(median_interval(&[1.0, f64::NAN, 1.0, 1.0, 1.0, 1.0, 1.0], 0.95), None);
        assert_eq!(median_interval(&[6.0, 1.0, 5.0, 2.0, 4.0, 3.0], 0.95), Some((1.0, 3.5, 6.0)));
        assert_eq!(median_interval(&[7.0, 6.0, 1.0, 5.0, 2.0, 4.0, 3.0], 0.95), Some((1.0, 4.0, 7.0)));
    }

    #[test]
    fn large_samples_settle() {
        let (lower, upper) = order_ranks(1_000_000_000, 0.999, 0.95).unwrap();
        assert!(
            (998_998_000..998_998_100).contains(&lower) && (999_001_900..999_002_000).contains(&upper),
            "{lower} {upper}"
        );
    }
}
