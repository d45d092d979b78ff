//! How often a thread is released, from its first activation on: whether a wait is longer than any before it.

use super::activation::{Activation, Release};
use super::period::PeriodFinder;
use model::Period;

/// Activations from which a period is known well enough to miss a release.
const ENOUGH: u64 = 8;

/// Releases of one thread, those of the warm-up included.
#[derive(Debug)]
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
        let is_known = found.is_given || self.n >= ENOUGH;
        let is_long = waited_ns > period_ns.saturating_mul(2) && waited_ns > self.longest_ns;
        let missing = Missing { due_ns: last_ns.saturating_add(period_ns), is_by_timer: self.by_timer * 2 > self.n };
        (is_known && is_long).then_some(missing)
    }
}
