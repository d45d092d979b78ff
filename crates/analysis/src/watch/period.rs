//! Period of a thread from the intervals between its releases, and whether one is missing or comes too early.

use super::activation::{Activation, Release};
use punctual_model::{FoundPeriod, Period, Span};
use std::sync::Arc;

/// Intervals from which the period is found.
const ENOUGH: usize = 64;
/// Largest difference of an interval from a multiple of the period, as a share of the period, that is regular.
const TOLERANCE: f64 = 0.1;
/// Fewest intervals with which a found period is one.
const LEAST: u64 = 10;
/// Least share of regular intervals with which a found period is one.
const REGULAR: f64 = 0.8;

/// Growing knowledge of a period.
#[derive(Debug, Clone, Default)]
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

/// Activations from which a period is known well enough to miss a release.
const ENOUGH_RELEASES: u64 = 8;

/// Releases of one thread, those of the warm-up included.
#[derive(Debug, Default)]
pub(super) struct Rhythm {
    period: PeriodFinder,
    last_release_ns: Option<u64>,
    longest_ns: u64,
    n: u64,
    by_timer: u64,
}

/// A release that did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missing {
    /// Time at which it was due, one period after the release before it, ns.
    pub(super) due_ns: u64,
    /// Whether most releases before it were by a timer.
    pub(super) is_by_timer: bool,
}

impl Rhythm {
    pub(super) fn new(given: Option<Period>) -> Rhythm {
        Rhythm { period: PeriodFinder::new(given), last_release_ns: None, longest_ns: 0, n: 0, by_timer: 0 }
    }

    pub(super) fn take(&mut self, one: &Activation) {
        self.n += 1;
        self.by_timer += u64::from(one.release == Release::Timer);
        if let Some(last_ns) = self.last_release_ns.replace(one.release_ns) {
            let interval_ns = one.release_ns.saturating_sub(last_ns);
            self.longest_ns = self.longest_ns.max(interval_ns);
            self.period.take(interval_ns);
        }
    }

    /// The release that was due before `until_ns`, at the end: the thread has waited for more than two periods, and
    /// longer than ever before.
    pub(super) fn missing(&mut self, until_ns: u64) -> Option<Missing> {
        self.period.find();
        let (found, last_ns) = self.period.result().zip(self.last_release_ns)?;
        let (period_ns, waited_ns) = (found.period.ns(), until_ns.saturating_sub(last_ns));
        let is_known = found.is_given || self.n >= ENOUGH_RELEASES;
        let is_long = waited_ns > period_ns.saturating_mul(2) && waited_ns > self.longest_ns;
        let missing = Missing { due_ns: last_ns.saturating_add(period_ns), is_by_timer: self.by_timer * 2 > self.n };
        (is_known && is_long).then_some(missing)
    }
}

/// The longest activation so far that was not over at the release of the next one.
#[derive(Debug, Default)]
pub(super) struct Behind {
    longest: Option<Arc<Activation>>,
    last_release_ns: u64,
    /// Shortest time between two releases, ns: shorter activations delay no other.
    least_interval_ns: Option<u64>,
}

impl Behind {
    /// The longest activation that was not over at the release of `one`. That one is kept for those after it.
    pub(super) fn take(&mut self, one: &Activation) -> Option<Arc<Activation>> {
        let interval_ns = one.release_ns.saturating_sub(self.last_release_ns);
        self.last_release_ns = one.release_ns;
        if interval_ns > 0 && interval_ns < one.release_ns {
            self.least_interval_ns = self.least_interval_ns.into_iter().chain([interval_ns]).min();
        }
        self.longest.take_if(|longest| longest.end_ns <= one.release_ns);
        let behind = self.longest.clone();
        let own_ns = |one: &Activation| one.end_ns.saturating_sub(one.start_ns);
        let may_matter = self.least_interval_ns.is_none_or(|least_ns| own_ns(one) > least_ns);
        if may_matter && behind.as_ref().is_none_or(|behind| own_ns(behind) < own_ns(one)) {
            self.longest = Some(Arc::new(one.clone()));
        }
        behind
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
