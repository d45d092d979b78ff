//! Tests for a trend (Mann and Kendall) and for one change with its location (Pettitt).

use crate::stats::ranks::{midranks, ties};
use crate::stats::special::normal_beyond;

/// A test for a monotone trend (Mann 1945; Kendall 1975).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannKendall {
    /// Concordant pairs, the later value larger, less discordant ones.
    pub s: i64,
    /// The variance of `s` without any trend, corrected for ties.
    pub variance: f64,
    /// `s`, one nearer to 0 (continuity correction), in standard deviations. Positive: rising.
    pub z: f64,
    /// Two-sided p-value for independent values.
    pub p: f64,
}

/// The test of Mann and Kendall, in `O(N log N)`. `None` below 3 values, or when they are all equal.
///
/// It assumes independent values: autocorrelation looks like a trend.
pub fn mann_kendall(values: &[f64]) -> Option<MannKendall> {
    let n = values.len() as f64;
    let of_group = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let tied: f64 = ties(values).into_iter().map(|t| of_group(t as f64)).sum();
    let variance = (of_group(n) - tied) / 18.0;
    if values.len() < 3 || variance <= 0.0 {
        return None;
    }
    let s = rising_less_falling(&midranks(values));
    let z = (s - s.signum()) as f64 / variance.sqrt();
    Some(MannKendall { s, variance, z, p: normal_beyond(z) })
}

/// Pairs `i < j` with `rank_i < rank_j`, less those with `rank_i > rank_j`.
fn rising_less_falling(ranks: &[f64]) -> i64 {
    let mut smaller_before = Seen::new(ranks.len());
    let mut s = 0;
    for (before, rank) in (0i64..).zip(ranks) {
        // Twice the midrank is a whole number, equal for equal values.
        let place = usize::try_from(crate::stats::special::whole(2.0 * rank)).unwrap_or(0);
        let smaller = smaller_before.below(place);
        let not_larger = smaller_before.below(place + 1);
        s += smaller - (before - not_larger);
        smaller_before.add(place);
    }
    s
}

/// Number of values added at or below each place: a binary indexed tree (Fenwick 1994).
struct Seen(Vec<i64>);

impl Seen {
    /// For ranks up to `n`, that is for places up to `2 n`.
    fn new(n: usize) -> Seen {
        Seen(vec![0; 2 * n + 2])
    }

    fn add(&mut self, place: usize) {
        let mut at = place + 1;
        while let Some(count) = self.0.get_mut(at) {
            *count += 1;
            at += at & at.wrapping_neg();
        }
    }

    /// Number of values added at places below this one.
    fn below(&self, place: usize) -> i64 {
        let mut at = place;
        let mut sum = 0;
        while at > 0 {
            sum += self.0.get(at).copied().unwrap_or(0);
            at &= at - 1;
        }
        sum
    }
}

/// A test for one change, and its location (Pettitt 1979).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pettitt {
    /// The largest difference between both sides: `max |2 (sum of the first k ranks) - k (N + 1)|`.
    pub k: f64,
    /// Number of values before the change.
    pub before: usize,
    /// p-value for independent values, at most 1: `2 exp(-6 K^2 / (N^3 + N^2))`.
    pub p: f64,
}

/// The test of Pettitt. `None` below 2 values.
pub fn pettitt(values: &[f64]) -> Option<Pettitt> {
    let n = values.len() as f64;
    let mut sum = 0.0;
    let difference = |(before, rank): (usize, f64)| {
        sum += rank;
        (before, (2.0 * sum - before as f64 * (n + 1.0)).abs())
    };
    let all = (1..).zip(midranks(values)).map(difference);
    // The first of equal ones; at the very end the difference is 0.
    let (before, k) = all.reduce(|best, next| if next.1 > best.1 { next } else { best })?;
    let p = (2.0 * (-6.0 * k * k / (n.powi(3) + n * n)).exp()).min(1.0);
    (values.len() >= 2).then_some(Pettitt { k, before, p })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::stationarity::tests::NILE;
    use proptest::prelude::*;

    #[test]
    fn the_nile_has_its_known_trend_and_change() {
        let trend = mann_kendall(&NILE).unwrap();
        assert_eq!(trend.s, -1387);
        assert!((trend.variance - 112_728.333).abs() < 1e-3 && (trend.z + 4.128_07).abs() < 1e-4, "{trend:?}");
        let change = pettitt(&NILE).unwrap();
        assert_eq!((change.k, change.before), (1617.0, 28), "1898, the first dam at Aswan");
        assert!(change.p < 1e-6);
    }

    #[test]
    fn what_does_not_vary_has_no_trend() {
        assert_eq!(mann_kendall(&[]), None);
        assert_eq!(mann_kendall(&[1.0, 2.0]), None);
        assert_eq!(mann_kendall(&[4.0; 30]), None);
        assert_eq!(pettitt(&[1.0]), None);
        assert_eq!(pettitt(&[4.0; 30]).map(|change| change.p), Some(1.0));
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let values: Vec<f64> = (0..100).map(|i| f64::from(i * 37 % 11) + if i < 70 { 0.0 } else { 20.0 }).collect();
        assert_eq!(pettitt(&values).unwrap().before, 70);
    }

    proptest! {
        #[test]
        fn the_quick_count_of_pairs_equals_the_plain_one(values in prop::collection::vec(0u8..20, 3..60)) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let mut plain = 0;
            for (i, a) in values.iter().enumerate() {
                plain += values[i + 1..].iter().map(|b| i64::from(b > a) - i64::from(b < a)).sum::<i64>();
            }
            prop_assert_eq!(rising_less_falling(&midranks(&values)), plain);
        }

        #[test]
        fn backwards_is_the_opposite_trend(mut values in prop::collection::vec(-1e6..1e6f64, 3..40)) {
            let forward = mann_kendall(&values).map(|trend| trend.s);
            values.reverse();
            prop_assert_eq!(forward.map(|s| -s), mann_kendall(&values).map(|trend| trend.s));
        }
    }
}
