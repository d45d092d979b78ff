//! A timeout that starts again whenever something has happened: slow machines need more time in all.

use punctual_sys::waited::Waited;
use std::time::Duration;

/// Interval at which progress is looked at.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A timeout since the last change of a number that tells progress.
#[derive(Debug)]
pub(super) struct IdleTimeout {
    limit: Duration,
    progress: usize,
    waited: Waited,
    /// The time waited at the last change.
    changed: Duration,
}

impl IdleTimeout {
    /// Starts now, with progress 0; asked every [`POLL_INTERVAL`].
    pub(super) fn new(limit: Duration) -> IdleTimeout {
        IdleTimeout { limit, progress: 0, waited: Waited::every(POLL_INTERVAL), changed: Duration::ZERO }
    }

    /// Whether `progress` has not changed for longer than the limit.
    pub(super) fn is_over(&mut self, progress: usize) -> bool {
        let waited = self.waited.look();
        self.is_over_after(waited, progress)
    }

    fn is_over_after(&mut self, waited: Duration, progress: usize) -> bool {
        if progress != self.progress {
            (self.progress, self.changed) = (progress, waited);
        }
        waited.saturating_sub(self.changed) > self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_time_without_change_counts() {
        let seconds = |s: u64| Duration::new(s, 0);
        let mut timeout = IdleTimeout::new(seconds(10));
        for (second, progress, is_over) in [
            (10, 0, false),
            (11, 1, false),
            (21, 1, false),
            (22, 2, false),
            (32, 2, false),
            (33, 2, true),
            (34, 3, false),
        ] {
            assert_eq!(timeout.is_over_after(seconds(second), progress), is_over, "{second} s");
        }
        assert!(IdleTimeout::new(seconds(10)).is_over_after(seconds(11), 0));
    }
}
