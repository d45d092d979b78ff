//! Rates of rare events: exact Poisson intervals for episodes, and the upper limit when none was seen.

use crate::stats::special::{gamma_p, inverse_gamma_p, student_t};
use punctual_model::Span;
use serde::Serialize;

/// Confidence of every interval of a rate.
const CONFIDENCE: f64 = 0.95;

/// Segments of the measured time between which episodes are compared.
const SEGMENTS: usize = 10;

/// Episodes below which their spread is not tested: one in each segment on average.
const MIN_FOR_SPREAD: usize = 10;

/// p-value below which episodes no longer count as evenly spread.
const STORM_LEVEL: f64 = 0.01;

/// The rate of episodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Rate {
    /// Episodes seen.
    pub episodes: u64,
    /// Measured time, hours.
    pub hours: f64,
    /// Observed rate.
    pub per_hour: f64,
    /// Lower limit at 95 %; 0 when none was seen.
    pub lower_per_hour: f64,
    /// Upper limit at 95 %.
    pub upper_per_hour: f64,
    /// Whether they clustered: the interval is then the one between segments of the run.
    pub storms: bool,
}

impl Rate {
    /// The rate of the episodes that began at these times, ns from the start, in `measured`. `None` without any time.
    pub fn of(starts_ns: &[u64], measured: Span) -> Option<Rate> {
        let episodes = u64::try_from(starts_ns.len()).ok()?;
        let hours = measured.as_secs_f64() / 3600.0;
        if hours <= 0.0 {
            return None;
        }
        let (mut lower, mut upper) = poisson_interval(episodes as f64, hours);
        let between = storm_interval(starts_ns, measured);
        if let Some((low, high)) = between {
            (lower, upper) = (lower.min(low / hours), upper.max(high / hours));
        }
        Some(Rate {
            episodes,
            hours,
            per_hour: episodes as f64 / hours,
            lower_per_hour: lower,
            upper_per_hour: upper,
            storms: between.is_some(),
        })
    }

    /// Total hours of measurement until the upper limit can fall below `limit_per_hour`, if episodes continue at the
    /// same rate. `None` if that rate is too high.
    pub fn hours_needed(&self, limit_per_hour: f64) -> Option<f64> {
        if self.episodes > 0 && self.per_hour >= limit_per_hour {
            return None;
        }
        let upper = |hours: f64| poisson_interval(self.per_hour * hours, hours).1;
        let mut enough = self.hours.max(1e-6);
        while upper(enough) > limit_per_hour {
            enough *= 2.0;
        }
        let mut short = 0.0;
        for _ in 0..60 {
            let middle = 0.5 * (short + enough);
            if upper(middle) > limit_per_hour { short = middle } else { enough = middle }
        }
        Some(enough)
    }
}

/// The interval of a Poisson rate (Garwood 1936) for `k` events in `hours`, per hour: 95 % between the limits, and
/// without any event the one-sided upper limit, -ln(0.05) / hours.
pub fn poisson_interval(k: f64, hours: f64) -> (f64, f64) {
    let tail = (1.0 - CONFIDENCE) / 2.0;
    if k <= 0.0 {
        return (0.0, zero_events_upper(hours));
    }
    (inverse_gamma_p(k, tail) / hours, inverse_gamma_p(k + 1.0, 1.0 - tail) / hours)
}

/// Upper 95 % limit of a rate without any event, per unit of `amount` (hours, millions of cycles).
pub fn zero_events_upper(amount: f64) -> f64 {
    -(1.0 - CONFIDENCE).ln() / amount
}

/// Longest mean interval between events that are seen at least once with 95 % probability: a third of `measured`.
pub fn visibility_floor(measured: Span) -> Span {
    Span(crate::stats::special::whole(measured.ns() as f64 / zero_events_upper(1.0)))
}

/// The interval of the number of episodes, from the differences between segments of the run. `None` when their spread
/// agrees with chance, by the index of dispersion (Fisher, Thornton & Mackenzie 1922).
fn storm_interval(starts_ns: &[u64], measured: Span) -> Option<(f64, f64)> {
    if starts_ns.len() < MIN_FOR_SPREAD {
        return None;
    }
    let mut counts = [0u32; SEGMENTS];
    for start in starts_ns {
        let segment = u128::from(*start) * SEGMENTS as u128 / u128::from(measured.ns());
        let segment = usize::try_from(segment).unwrap_or(SEGMENTS).min(SEGMENTS - 1);
        counts[segment] += 1;
    }
    let (m, mean) = (SEGMENTS as f64, starts_ns.len() as f64 / SEGMENTS as f64);
    let squares: f64 = counts.iter().map(|c| (f64::from(*c) - mean).powi(2)).sum();
    let chance = 1.0 - gamma_p((m - 1.0) / 2.0, squares / mean / 2.0);
    let margin = student_t(m - 1.0, 0.5 + CONFIDENCE / 2.0) * (squares / (m - 1.0) * m).sqrt();
    (chance < STORM_LEVEL).then_some(((mean * m - margin).max(0.0), mean * m + margin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR_NS: u64 = 3_600_000_000_000;

    #[test]
    fn intervals_have_their_known_values() {
        for (k, lower, upper) in [(1.0, 0.00253, 0.55716), (5.0, 0.16235, 1.16683), (10.0, 0.47954, 1.83904)] {
            let got = poisson_interval(k, 10.0);
            assert!((got.0 - lower).abs() < 1e-5 && (got.1 - upper).abs() < 1e-5, "{k}: {got:?}");
        }
        assert_eq!(poisson_interval(0.0, 10.0).0, 0.0);
        assert!((poisson_interval(0.0, 10.0).1 - 0.299_573).abs() < 1e-5);
        // Without any episode only the one-sided limit is shown; the two-sided one of the reference is this.
        assert!((crate::stats::special::inverse_gamma_p(1.0, 0.975) / 10.0 - 0.368_89).abs() < 1e-5);
    }

    proptest! {
        #[test]
        fn limits_are_ordered_and_rise_with_the_number(k in 0u32..5_000, hours in 1e-3..1e6f64) {
            let k = f64::from(k);
            let ((lower, upper), (next_lower, next_upper)) = (poisson_interval(k, hours), poisson_interval(k + 1.0, hours));
            prop_assert!(0.0 <= lower && lower <= k / hours && k / hours < upper);
            prop_assert!(lower < next_lower && upper < next_upper);
        }
    }

    #[test]
    fn no_episode_proves_fewer_than_three_in_the_time() {
        assert_eq!(Rate::of(&[], Span(0)), None);
        let rate = Rate::of(&[], Span(80_000_000_000)).unwrap();
        assert_eq!((rate.episodes, rate.lower_per_hour, rate.storms), (0, 0.0, false));
        assert!((rate.upper_per_hour - 134.8).abs() < 0.1);
        assert!((rate.hours_needed(1.0).unwrap() - 2.9957).abs() < 1e-3);
        assert_eq!(visibility_floor(Span(80_000_000_000)).ns() / 1_000_000, 26_704);
    }

    #[test]
    fn episodes_that_came_too_often_are_not_waited_away() {
        let starts: Vec<u64> = (0..4).map(|i| i * HOUR_NS / 4).collect();
        let rate = Rate::of(&starts, Span(HOUR_NS)).unwrap();
        assert_eq!((rate.hours_needed(3.0), rate.hours_needed(4.0)), (None, None));
        let hours = rate.hours_needed(5.0).unwrap();
        assert!((poisson_interval(4.0 * hours, hours).1 - 5.0).abs() < 1e-6 && hours > 1.0, "{hours}");
    }

    #[test]
    fn storms_widen_the_interval() {
        let even: Vec<u64> = (0..100).map(|i| i * HOUR_NS / 100).collect();
        assert!(!Rate::of(&even, Span(HOUR_NS)).unwrap().storms);
        let storm: Vec<u64> = (0..100).map(|i| HOUR_NS / 2 + i * 1_000_000_000).collect();
        let rate = Rate::of(&storm, Span(HOUR_NS)).unwrap();
        let (lower, upper) = poisson_interval(100.0, 1.0);
        assert!(rate.storms && rate.lower_per_hour < lower && rate.upper_per_hour > upper, "{rate:?}");
        assert!(!Rate::of(&storm[..9], Span(HOUR_NS)).unwrap().storms, "too few to tell");
    }
}
