//! A timeout that starts again whenever something has happened: slow machines need more time in all.

use std::time::{Duration, Instant};

/// A timeout since the last change of a number that tells progress.
#[derive(Debug)]
pub(super) struct IdleTimeout {
    limit: Duration,
    progress: usize,
    changed: Instant,
}

impl IdleTimeout {
    /// Starts at `now`, with progress 0.
    pub(super) fn new(limit: Duration, now: Instant) -> IdleTimeout {
        IdleTimeout { limit, progress: 0, changed: now }
    }

    /// Whether `progress` has not changed for longer than the limit.
    pub(super) fn is_over(&mut self, progress: usize, now: Instant) -> bool {
        if progress != self.progress {
            (self.progress, self.changed) = (progress, now);
        }
        now.duration_since(self.changed) > self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_time_without_change_counts() {
        let began = Instant::now();
        let at = |s: u64| began + Duration::from_secs(s);
        let mut timeout = IdleTimeout::new(Duration::from_secs(10), began);
        for (second, progress, is_over) in [
            (10, 0, false),
            (11, 1, false),
            (21, 1, false),
            (22, 2, false),
            (32, 2, false),
            (33, 2, true),
            (34, 3, false),
        ] {
            assert_eq!(timeout.is_over(progress, at(second)), is_over, "{second} s");
        }
        assert!(IdleTimeout::new(Duration::from_secs(10), began).is_over(0, at(11)));
    }
}
