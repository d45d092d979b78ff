//! Period of a thread from the intervals between its releases.

use model::{FoundPeriod, Period, Span};

/// Intervals from which the period is found.
const ENOUGH: usize = 64;
/// Largest difference of an interval from a multiple of the period, as a share of the period, that is regular.
const TOLERANCE: f64 = 0.1;
/// Fewest intervals with which a found period is one.
const LEAST: u64 = 10;
/// Least share of regular intervals with which a found period is one.
const REGULAR: f64 = 0.8;

/// Growing knowledge of a period.
#[derive(Debug, Clone)]
pub(super) struct PeriodFinder {
    given: Option<Period>,
    first: Vec<u64>,
    found: Option<Period>,
    n: u64,
    regular: u64,
}

impl PeriodFinder {
    pub(super) fn new(given: Option<Period>) -> PeriodFinder {
        PeriodFinder { given, first: Vec::new(), found: None, n: 0, regular: 0 }
    }

    /// Adds an interval, ns.
    pub(super) fn take(&mut self, interval_ns: u64) {
        match self.period() {
            Some(period) => self.count(period, interval_ns),
            None => {
                self.first.push(interval_ns);
                if self.first.len() >= ENOUGH {
                    self.find();
                }
            }
        }
    }

    /// Finds the period from the intervals so far, if it is not known.
    pub(super) fn find(&mut self) {
        let first = std::mem::take(&mut self.first);
        let mut sorted = first.clone();
        sorted.sort_unstable();
        let median = sorted.get(sorted.len() / 2).map(|ns| Span(*ns));
        self.found = self.found.or(median.and_then(|median| Period::try_from(median).ok()));
        if let Some(period) = self.period() {
            first.iter().for_each(|interval| self.count(period, *interval));
        }
    }

    fn count(&mut self, period: Period, interval_ns: u64) {
        self.n += 1;
        let periods = interval_ns as f64 / period.ns() as f64;
        self.regular += u64::from(periods >= 0.5 && (periods - periods.round()).abs() <= TOLERANCE);
    }

    /// The period as far as it is known.
    pub(super) fn period(&self) -> Option<Period> {
        self.given.or(self.found)
    }

    /// The result; `None` if a period is neither given nor common to most intervals.
    pub(super) fn result(&self) -> Option<FoundPeriod> {
        let regular = if self.n == 0 { 0.0 } else { self.regular as f64 / self.n as f64 };
        let is_given = self.given.is_some();
        let period = self.period().filter(|_| is_given || self.n >= LEAST && regular >= REGULAR)?;
        Some(FoundPeriod { period, is_given, regular })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(intervals: &[u64]) -> Option<(u64, f64)> {
        let mut finder = PeriodFinder::new(None);
        intervals.iter().for_each(|interval| finder.take(*interval));
        finder.find();
        finder.result().map(|found| (found.period.ns(), found.regular))
    }

    #[test]
    fn the_median_interval_is_the_period_if_most_are_multiples_of_it() {
        let regular: Vec<u64> = (0..100).map(|index| if index % 20 == 7 { 3_000_000 } else { 1_000_000 }).collect();
        assert_eq!(found(&regular), Some((1_000_000, 1.0)));
        let mostly: Vec<u64> = (0..100).map(|index| if index % 10 == 7 { 1_400_000 } else { 1_000_000 }).collect();
        assert_eq!(found(&mostly), Some((1_000_000, 0.9)));
        let irregular: Vec<u64> = (1..100).map(|index| index * 377_000 % 1_000_000).collect();
        assert_eq!(found(&irregular), None);
        assert_eq!((found(&[1_000_000; 10]), found(&[1_000_000; 9])), (Some((1_000_000, 1.0)), None), "enough of them");
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[5_000, 5_000, 5_000]), None, "shorter than any period");
    }

    #[test]
    fn a_given_period_is_kept_with_the_share_that_follows_it() {
        let mut finder = PeriodFinder::new("2ms".parse().ok());
        [2_000_000, 4_000_000, 1_000_000, 2_100_000].into_iter().for_each(|interval| finder.take(interval));
        let found = finder.result().unwrap();
        assert_eq!((found.period.ns(), found.is_given, found.regular), (2_000_000, true, 0.75));
    }
}
