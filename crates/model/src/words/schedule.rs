//! Cycle arithmetic: the next due time, and the number of missed ones.

use crate::{ClockTime, Nanos, Period};

/// The due times of one measured thread: `first_due + index * period`, without rounding and drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Due time of cycle 0.
    pub first_due: ClockTime,
    /// The distance between due times.
    pub period: Period,
}

/// One wait of a measured thread: the cycle's index and due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cycle {
    /// 0 for the first due time.
    pub index: u64,
    /// The programmed instant.
    pub due: ClockTime,
}

impl Schedule {
    /// The cycle with this index.
    pub fn cycle(&self, index: u64) -> Cycle {
        let offset = index.saturating_mul(self.period.ns());
        Cycle { index, due: ClockTime(self.first_due.0.saturating_add(offset)) }
    }

    /// The cycle in whose period the instant `due` lies. A relative wait, which has no due time of its own, counts as
    /// this cycle.
    pub fn containing(&self, due: ClockTime) -> Cycle {
        Cycle { index: due.0.saturating_sub(self.first_due.0) / self.period.ns(), due }
    }

    /// The number of due times before `now`: the index of the first cycle that is due at or after `now`.
    pub fn cycles_before(&self, now: ClockTime) -> u64 {
        now.0.saturating_sub(self.first_due.0).div_ceil(self.period.ns())
    }

    /// The number of due times already past when a thread that woke `latency` late can wait again. A due time equal to
    /// the waking instant is not missed: the thread can still wait for it, and returns at once.
    ///
    /// The number follows from the latency alone, so a record of latencies holds the missed cycles without storing
    /// them.
    pub fn missed(&self, latency: Nanos) -> u64 {
        let late_ns = u64::try_from(latency.0).unwrap_or(0);
        late_ns.saturating_sub(self.period.ns()).div_ceil(self.period.ns())
    }

    /// The cycle to wait for after a wake-up from `cycle` with `latency`: the next one not yet past.
    pub fn after(&self, cycle: Cycle, latency: Nanos) -> Cycle {
        let steps = 1 + self.missed(latency);
        let due = cycle.due.0.saturating_add(steps.saturating_mul(self.period.ns()));
        Cycle { index: cycle.index.saturating_add(steps), due: ClockTime(due) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;
    use proptest::prelude::*;

    fn schedule(first_due: u64, period_ns: u64) -> Schedule {
        let period = Period::try_from(Span(period_ns)).expect("a valid period");
        Schedule { first_due: ClockTime(first_due), period }
    }

    #[test]
    fn missed_is_exact_at_the_boundaries() {
        let schedule = schedule(0, 1_000_000);
        for (latency, missed) in [
            (-5, 0),
            (0, 0),
            (999_999, 0),
            (1_000_000, 0), // the next due time is now: not missed
            (1_000_001, 1),
            (2_000_000, 1),
            (2_000_001, 2),
            (199_000_000, 198),
            (199_000_001, 199),
        ] {
            assert_eq!(schedule.missed(Nanos(latency)), missed, "{latency}");
        }
        assert_eq!(schedule.missed(Nanos(i64::MIN)), 0);
    }

    #[test]
    fn the_next_cycle_is_the_first_not_past() {
        let schedule = schedule(5_000_000, 1_000_000);
        let first = schedule.cycle(0);
        for (latency, index, due) in
            [(-1, 1, 6_000_000), (0, 1, 6_000_000), (1_000_000, 1, 6_000_000), (1_000_001, 2, 7_000_000)]
        {
            assert_eq!(schedule.after(first, Nanos(latency)), Cycle { index, due: ClockTime(due) }, "{latency}");
        }
        for (now, before) in [(0, 0), (5_000_000, 0), (5_000_001, 1), (6_000_000, 1), (6_000_001, 2)] {
            assert_eq!(schedule.cycles_before(ClockTime(now)), before, "{now}");
        }
    }

    #[test]
    fn an_instant_belongs_to_the_period_it_lies_in() {
        let schedule = schedule(5_000_000, 1_000_000);
        for (due, index) in [(4_999_999, 0), (5_000_000, 0), (5_999_999, 0), (6_000_000, 1)] {
            assert_eq!(schedule.containing(ClockTime(due)), Cycle { index, due: ClockTime(due) });
        }
    }

    proptest! {
        /// For any latencies, indices and due times stay on the grid and the next due time is not before the wake-up.
        #[test]
        fn cycles_stay_on_the_grid(
            period in 10_000u64..1_000_000_000,
            latencies in prop::collection::vec(-50_000i64..10_000_000_000, 1..50),
        ) {
            let schedule = schedule(1 << 40, period);
            let mut cycle = schedule.cycle(0);
            let mut accounted = 0;
            for latency in latencies.into_iter().map(Nanos) {
                let next = schedule.after(cycle, latency);
                prop_assert_eq!(next, schedule.cycle(next.index));
                let woke = ClockTime(cycle.due.0.wrapping_add_signed(latency.0));
                prop_assert!(next.due >= woke);
                prop_assert!(next.due.0 - period < woke.0.max(cycle.due.0 + 1));
                accounted += 1 + schedule.missed(latency);
                prop_assert_eq!(next.index, accounted);
                cycle = next;
            }
        }
    }
}
