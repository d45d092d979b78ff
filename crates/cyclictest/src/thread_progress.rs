//! Progress of one measured thread, read from its log.

use super::text::ThreadReport;
use punctual_model::{ClockTime, Nanos, Schedule};
use punctual_rt::{Member, Sample};

/// Position of a thread in its schedule, and its end.
#[derive(Debug)]
pub(super) struct ThreadProgress {
    schedule: Schedule,
    /// Index after the last counted cycle.
    end: u64,
    /// Limit of counted wake-ups.
    most: u64,
    /// The cycle of the last sample.
    last: Option<u64>,
}

impl ThreadProgress {
    pub(super) fn new(schedule: Schedule, end: Option<u64>, most: Option<u64>) -> ThreadProgress {
        ThreadProgress { schedule, end: end.unwrap_or(u64::MAX), most: most.unwrap_or(u64::MAX), last: None }
    }

    /// Drains the samples of the thread into `shown`; calls `each` with the number of the wake-up, its value and its
    /// time.
    pub(super) fn drain(
        &mut self,
        member: &mut Member,
        shown: &mut ThreadReport,
        mut each: impl FnMut(u64, i64, ClockTime),
    ) {
        member.log.drain(|Sample { cycle, latency }| {
            self.last = Some(cycle);
            if cycle >= self.end || shown.tally.cycles >= self.most {
                return;
            }
            let number = shown.tally.cycles;
            let value = shown.tally.take(latency);
            self.miss(shown, cycle, latency);
            let due = self.schedule.cycle(cycle).due;
            each(number, value, ClockTime(due.0.saturating_add_signed(latency.0)));
        });
        shown.lost = member.log.lost();
    }

    /// Counts the due times missed by a wait for `cycle` that was `latency` late, up to the end.
    fn miss(&self, shown: &mut ThreadReport, cycle: u64, latency: Nanos) {
        if let Some(missed) = &mut shown.missed {
            *missed += self.schedule.missed(latency).min(self.end - 1 - cycle);
        }
    }

    /// Whether all counted cycles are over.
    pub(super) fn is_over(&self, shown: &ThreadReport) -> bool {
        self.last.is_some_and(|last| last.saturating_add(1) >= self.end) || shown.tally.cycles >= self.most
    }

    /// Earliest time of the last counted wake-up; `None` without a limit of wake-ups.
    pub(super) fn earliest_end(&self, shown: &ThreadReport) -> Option<ClockTime> {
        let left = self.most.checked_sub(shown.tally.cycles).filter(|_| self.most < u64::MAX)?;
        let next = self.last.map_or(0, |last| last.saturating_add(1));
        Some(self.schedule.cycle(next.saturating_add(left).saturating_sub(1)).due)
    }

    /// Lateness of a wait that was open before and after the log was last drained, if it is overdue at `now`.
    pub(super) fn overdue(&self, member: &Member, before: Option<ClockTime>, now: ClockTime) -> Option<Nanos> {
        if member.outcome.is_some() || member.log.waits_for() != before {
            return None;
        }
        // A thread that never passed the barrier waits for its first cycle.
        let due = before.unwrap_or(self.schedule.first_due);
        let counts = self.schedule.containing(due).index < self.end;
        Some(now.since(due)).filter(|late| late.0 > 0 && counts)
    }

    /// Records a wait that was still open at the end: its lateness is at least `late`, and its missed due times are
    /// counted.
    pub(super) fn leave_open(&self, shown: &mut ThreadReport, due: ClockTime, late: Nanos) {
        shown.overdue = Some(shown.tally.value(late));
        self.miss(shown, self.schedule.containing(due).index, late);
    }

    pub(super) fn first_due(&self) -> ClockTime {
        self.schedule.first_due
    }
}
