//! Whether it was measured for long enough, and for how much longer to measure.
//!
//! It is never enough *because* the maximum stopped rising: under pure chance no new maximum comes in the second half of
//! every other run.

use crate::Level;
use crate::special::whole;
use model::Span;

/// The chance that a run of `next` exceeds the maximum of one that took `measured`, on a machine that stays the same:
/// `next / (measured + next)`, whatever the distribution (the largest of all is equally likely anywhere).
#[must_use]
pub fn new_maximum(measured: Span, next: Span) -> Option<f64> {
    let (measured, next) = (measured.ns() as f64, next.ns() as f64);
    (measured + next > 0.0).then(|| next / (measured + next))
}

/// Independent samples whose maximum bounds the `p` quantile from above at this confidence: `ln(1 - confidence) / ln p`,
/// rounded up. `None` unless both are between 0 and 1.
#[must_use]
pub fn samples_to_bound(p: f64, confidence: f64) -> Option<u64> {
    let between = |share: f64| 0.0 < share && share < 1.0;
    (between(p) && between(confidence)).then(|| whole(((-confidence).ln_1p() / p.ln()).ceil()))
}

/// The highest quantile level that `samples` independent samples can show, of those that are shown at all; `None` when
/// there are too few for any. It takes 10 samples above it.
#[must_use]
pub fn highest_level(samples: u64) -> Option<Level> {
    let is_shown = |level: &Level| samples as f64 * (1.0 - level.p()) >= crate::MIN_EXCEEDANCES * (1.0 - 1e-9);
    Level::ALL.into_iter().rev().find(is_shown)
}

/// Looks at which a run is judged that stops when an interval is narrow enough: after each doubling of the measured time,
/// from the first to the most.
///
/// The more often one looks, the more confidence each look takes: 5 % is divided by the number of looks, so that all
/// intervals hold together in 95 % of runs (Bonferroni).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looks {
    first: u32,
    most: u32,
}

impl Looks {
    /// Looks after `first` blocks and every doubling up to `most`, and at `most` itself. `None` unless
    /// `1 <= first <= most`.
    #[must_use]
    pub fn new(first: u32, most: u32) -> Option<Looks> {
        (1 <= first && first <= most).then_some(Looks { first, most })
    }

    /// After how many blocks they are.
    pub fn blocks(self) -> impl Iterator<Item = u32> {
        let Looks { first, most } = self;
        let doublings = std::iter::successors(Some(first), |blocks| blocks.checked_mul(2));
        doublings.take_while(move |blocks| *blocks < most).chain(std::iter::once(most))
    }

    /// The confidence of the intervals at each look.
    #[must_use]
    pub fn confidence(self) -> f64 {
        let n = u32::try_from(self.blocks().count()).unwrap_or(u32::MAX);
        1.0 - (1.0 - crate::CONFIDENCE) / f64::from(n)
    }
}

/// How wide an interval is: half of its width over its value. `None` for a value of 0.
#[must_use]
pub fn half_width(value_ns: i64, interval_ns: (i64, i64)) -> Option<f64> {
    let width = interval_ns.1.saturating_sub(interval_ns.0) as f64;
    (value_ns > 0).then(|| width / 2.0 / value_ns as f64)
}

/// Time to measure in all until an interval that is now `half_width` wide is at most `target`: widths shrink with the
/// root of the time. What is measured when it is narrow enough already. `None` for a target of 0 or less.
#[must_use]
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
    fn the_maximum_of_so_many_samples_bounds_a_quantile() {
        for (p, n) in [(0.99, 299), (0.999, 2_995), (0.9999, 29_956), (0.99999, 299_572), (0.999_999, 2_995_731)] {
            assert_eq!(samples_to_bound(p, 0.95), Some(n), "{p}");
        }
        assert_eq!((samples_to_bound(1.0, 0.95), samples_to_bound(0.5, 0.0)), (None, None));
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
    fn looks_double_and_share_the_error() {
        let looks = Looks::new(6, 50).unwrap();
        assert_eq!(looks.blocks().collect::<Vec<_>>(), [6, 12, 24, 48, 50]);
        assert!((looks.confidence() - 0.99).abs() < 1e-12);
        assert_eq!(Looks::new(6, 6).unwrap().blocks().collect::<Vec<_>>(), [6]);
        assert_eq!((Looks::new(0, 6), Looks::new(7, 6)), (None, None));
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
