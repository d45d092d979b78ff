//! Detection of steps of the clock that is measured.

use punctual_host::offset_from_monotonic_ns;
use punctual_model::{ClockId, ClockStep, MonoTime, Span};

/// Watches one clock against `CLOCK_MONOTONIC`. NTP slews both alike, so their distance changes only when the clock is
/// set.
#[derive(Debug)]
pub(super) struct Steps {
    clock: ClockId,
    /// `clock - CLOCK_MONOTONIC` at the last check, ns.
    distance_ns: i64,
    seen: Vec<ClockStep>,
}

/// Smallest step, ns: smaller changes cannot be distinguished from the time between the two readings.
const MIN_NS: u64 = 100_000;

impl Steps {
    pub(super) fn watch(clock: ClockId) -> Steps {
        Steps { clock, distance_ns: offset_from_monotonic_ns(clock), seen: Vec::new() }
    }

    /// Checks again; the measured window began at `started`.
    pub(super) fn look(&mut self, started: MonoTime) {
        if self.clock.can_be_set() {
            let at = Span(punctual_sys::clock::monotonic().0.saturating_sub(started.0));
            self.take(at, offset_from_monotonic_ns(self.clock));
        }
    }

    fn take(&mut self, at: Span, distance_ns: i64) {
        let step_ns = distance_ns - std::mem::replace(&mut self.distance_ns, distance_ns);
        if step_ns.unsigned_abs() >= MIN_NS {
            self.seen.push(ClockStep { at, step_ns });
        }
    }

    /// Returns all steps so far.
    pub(super) fn take_all(&mut self) -> Vec<ClockStep> {
        std::mem::take(&mut self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_a_clock_by_less_than_a_reading_takes_is_no_step() {
        let mut steps = Steps { clock: ClockId::Realtime, distance_ns: 1 << 60, seen: Vec::new() };
        for (at, moved_ns) in [(1, 99_999), (2, -99_999), (3, 100_000), (4, -10_000_000_000)] {
            let distance_ns = steps.distance_ns + moved_ns;
            steps.take(Span(at), distance_ns);
        }
        let seen: Vec<_> = steps.take_all().iter().map(|step| (step.at.ns(), step.step_ns)).collect();
        assert_eq!(seen, [(3, 100_000), (4, -10_000_000_000)]);
    }

    #[test]
    fn clocks_that_nobody_sets_stand_still_against_each_other() {
        let mut steps = Steps::watch(ClockId::Realtime);
        steps.look(MonoTime(0));
        assert_eq!(steps.take_all(), []);
    }
}
