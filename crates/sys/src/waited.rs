//! Time spent waiting for other processes.
//!
//! While a machine stands still, no process can do anything, and on a busy one little: time in which this process could
//! not run itself hardly counts, and no timeout is over because of it.

use crate::clock;
use punctual_model::{MonoTime, Span};
use std::time::Duration;

/// The time that this process has waited and could run itself.
#[derive(Debug)]
pub struct Waited {
    spent: Span,
    looked: MonoTime,
    /// What counts at most of the time between two calls.
    most: Span,
}

impl Waited {
    /// Longest wait between two calls of [`Waited::look`].
    pub const STEP: Duration = Duration::from_millis(100);

    /// Begins to wait.
    pub fn begin() -> Waited {
        Waited::every(Waited::STEP)
    }

    /// Begins to wait, with a call of [`Waited::look`] every `step`: twice as much counts at most. Where this process
    /// runs later than that, others have to wait for the CPU, too.
    pub fn every(step: Duration) -> Waited {
        Waited::begin_at(clock::monotonic(), step)
    }

    fn begin_at(now: MonoTime, step: Duration) -> Waited {
        let most = u64::try_from(step.as_nanos()).unwrap_or(u64::MAX).saturating_mul(2);
        Waited { spent: Span(0), looked: now, most: Span(most) }
    }

    /// The time waited so far.
    pub fn look(&mut self) -> Duration {
        self.look_at(clock::monotonic())
    }

    fn look_at(&mut self, now: MonoTime) -> Duration {
        let since = Span(now.0.saturating_sub(self.looked.0));
        (self.spent, self.looked) = (Span(self.spent.ns().saturating_add(since.min(self.most).ns())), now);
        Duration::from_nanos(self.spent.ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_stands_still_does_not_wait() {
        const MS: u64 = 1_000_000;
        let mut waited = Waited::begin_at(MonoTime(5 * MS), Waited::STEP);
        for (at_ms, spent_ms) in [(5, 0), (105, 100), (110, 105), (310, 305), (60_310, 505), (60_320, 515)] {
            assert_eq!(waited.look_at(MonoTime(at_ms * MS)).as_millis(), spent_ms, "{at_ms} ms");
        }
        assert_eq!(waited.look_at(MonoTime(0)).as_millis(), 515, "a clock that goes back");
    }
}
