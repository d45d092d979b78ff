//! Sufficiency of a measurement, and the time still needed.
//!
//! A maximum that stopped rising is not a criterion: by chance alone, half of all runs have no new maximum in their
//! second half.

use crate::stats::rate::zero_events_upper;
use crate::stats::special::whole;
use crate::wording::duration;
use punctual_model::{Cell, Level, Period, Span};
use std::fmt;

/// Probability that a run of `next` exceeds the maximum of a run of `measured` on an unchanged machine:
/// `next / (measured + next)`, for any distribution, because the position of the overall maximum is uniform.
pub fn new_maximum(measured: Span, next: Span) -> Option<f64> {
    let (measured, next) = (measured.ns() as f64, next.ns() as f64);
    (measured + next > 0.0).then(|| next / (measured + next))
}

/// Highest level of the reported quantiles for which `samples` independent samples suffice: 10 samples above it are
/// needed. `None` if there are too few for any.
pub fn highest_level(samples: u64) -> Option<Level> {
    let is_shown =
        |level: &Level| samples as f64 * (1.0 - level.p()) >= crate::stats::woodruff::MIN_EXCEEDANCES * (1.0 - 1e-9);
    Level::ALL.into_iter().rev().find(is_shown)
}

/// Resolution of a measurement, known before it is made. `Display` is one sentence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlook {
    /// Measuring time of all blocks together.
    pub measured: Span,
    /// Its period; `None` where that of the watched threads is still to be found.
    pub period: Option<Period>,
    /// Highest quantile that this number of samples can show, if they are all independent; `None`: not even the median,
    /// or it is not known yet.
    pub level: Option<Level>,
    /// Rate per hour that cannot be excluded at 95 % after no event; `None` without measuring time.
    pub per_hour: Option<f64>,
}

impl Outlook {
    /// Resolution of `blocks` measurements of this cell together.
    pub fn of(cell: &Cell, blocks: u32) -> Outlook {
        let measured = Span(cell.duration.ns().saturating_mul(u64::from(blocks)));
        let watch = cell.task.watch();
        let period = watch.map_or(Some(cell.period), |watch| watch.period);
        let cycles = |period: Period| match watch {
            Some(_) => measured.ns() / period.ns(),
            None => cell.cycles_of_all().saturating_mul(u64::from(blocks)),
        };
        let hours = measured.as_secs_f64() / 3600.0;
        Outlook {
            measured,
            period,
            level: period.map(cycles).and_then(highest_level),
            per_hour: (hours > 0.0).then(|| zero_events_upper(hours)),
        }
    }
}

impl fmt::Display for Outlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&duration(self.measured.ns() as f64))?;
        let end = if let Some(period) = self.period {
            write!(f, " at {}: ", duration(period.ns() as f64))?;
            match self.level {
                Some(level) => write!(f, "enough for {level}")?,
                None => f.write_str("too few wake-ups for any quantile")?,
            }
            ";"
        } else {
            ":"
        };
        let every = self.per_hour.map(|rate| duration(3.6e12 / three_digits(rate)));
        every.map_or(Ok(()), |every| write!(f, "{end} may miss events rarer than one in {every} (95 %)"))
    }
}

/// The value with three significant digits, rounded up.
fn three_digits(value: f64) -> f64 {
    let unit = 10f64.powf(value.log10().floor() - 2.0);
    (value / unit - 1e-9).ceil() * unit
}

/// Relative half-width of an interval: half of its width divided by the value. `None` for a value of 0 or less.
pub fn half_width(value_ns: i64, interval_ns: (i64, i64)) -> Option<f64> {
    let width = interval_ns.1.saturating_sub(interval_ns.0) as f64;
    (value_ns > 0).then(|| width / 2.0 / value_ns as f64)
}

/// Total measuring time until an interval of relative `half_width` shrinks to `target`: widths shrink with the square
/// root of the time. Returns `measured` if it is narrow enough already. `None` for a target of 0 or less.
pub fn time_needed(measured: Span, half_width: f64, target: f64) -> Option<Span> {
    let times = (half_width / target).powi(2).max(1.0);
    (target > 0.0 && times.is_finite()).then(|| Span(whole((measured.ns() as f64 * times).ceil())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_maximum_is_as_likely_as_the_time_says() {
        let hour = Span(3_600_000_000_000);
        for (times, chance) in [(1, 0.5), (3, 0.75), (10, 10.0 / 11.0), (0, 0.0)] {
            assert_eq!(new_maximum(hour, Span(hour.ns() * times)), Some(chance), "{times}");
        }
        assert_eq!(new_maximum(Span(0), Span(0)), None);
    }

    #[test]
    fn a_level_takes_ten_samples_above_it() {
        for (samples, level) in [
            (19, None),
            (20, Some(Level::P50)),
            (999, Some(Level::P50)),
            (1_000, Some(Level::P99)),
            (10_000, Some(Level::P999)),
        ] {
            assert_eq!(highest_level(samples), level, "{samples}");
        }
    }

    #[test]
    fn what_can_be_shown_is_said_before() {
        let mut cell = crate::testing::cell("none", "other");
        for (seconds, period, blocks, said) in [
            (10, "1ms", 1, "10 s at 1 ms: enough for p99.9; may miss events rarer than one in 3.33 s (95 %)"),
            (2, "1ms", 1, "2 s at 1 ms: enough for p99; may miss events rarer than one in 667 ms (95 %)"),
            (2, "1ms", 6, "12 s at 1 ms: enough for p99.9; may miss events rarer than one in 4 s (95 %)"),
            (36_000, "10us", 1, "10 h at 10 us: enough for p99.9999; may miss events rarer than one in 3.33 h (95 %)"),
            (
                2,
                "1s",
                1,
                "2 s at 1 s: too few wake-ups for any quantile; may miss events rarer than one in 667 ms (95 %)",
            ),
        ] {
            (cell.duration, cell.period) = (Span(seconds * 1_000_000_000), period.parse().unwrap());
            assert_eq!(Outlook::of(&cell, blocks).to_string(), said);
        }
        cell.duration = Span(10_000_000_000);
        for (method, said) in [
            ("watch:./x", "10 s: may miss events rarer than one in 3.33 s (95 %)"),
            ("watch,period=1ms:./x", "10 s at 1 ms: enough for p99.9; may miss events rarer than one in 3.33 s (95 %)"),
        ] {
            cell.task = method.parse().unwrap();
            assert_eq!(Outlook::of(&cell, 1).to_string(), said);
        }
    }

    #[test]
    fn time_grows_with_the_square_of_the_width() {
        assert_eq!(half_width(100, (80, 140)), Some(0.3));
        assert_eq!(half_width(0, (0, 0)), None);
        let minute = Span(60_000_000_000);
        assert_eq!(time_needed(minute, 0.3, 0.1).map(Span::ns), Some(540_000_000_000));
        assert_eq!(time_needed(minute, 0.05, 0.1), Some(minute));
        assert_eq!(time_needed(minute, 0.3, 0.0), None);
    }
}
