//! Due times of timers by the clock of the trace, where that is another one than theirs.
//!
//! Each expiry of a timer is an event with the time by `CLOCK_MONOTONIC` that the interrupt had read shortly before.
//! The smallest of the differences is that of the clocks, some hundred nanoseconds too large.

use super::decode::Decoder;
use punctual_analysis::explain::{CpuEvents, Event, What};
use std::collections::VecDeque;

/// Most differences that are kept, and their age, ns: clocks that are disciplined apart move by 50 us a second.
const MOST: usize = 256;
const RECENT_NS: u64 = 100_000_000;
/// Differences larger than the largest by more than this, ns, are of timers of another clock, which is ahead.
const SAME_CLOCK_NS: i64 = 10_000_000;

/// What is known of the clock of timers.
#[derive(Debug, Clone, Default)]
pub(super) struct TimerClock {
    /// Times of the trace, and how much they are ahead of `CLOCK_MONOTONIC`, ns.
    seen: VecDeque<(u64, i64)>,
}

impl TimerClock {
    /// Notes an expiry.
    pub(super) fn note(&mut self, at_ns: u64, now_ns: u64) {
        self.seen.push_back((at_ns, at_ns.cast_signed().wrapping_sub_unsigned(now_ns)));
        let is_old = |(first_ns, _): &(u64, i64)| first_ns.saturating_add(RECENT_NS) < at_ns;
        while self.seen.len() > MOST || self.seen.len() > 1 && self.seen.front().is_some_and(is_old) {
            self.seen.pop_front();
        }
    }

    /// How much the clock of the trace is ahead of `CLOCK_MONOTONIC`, ns; `None` if nothing tells.
    fn ahead_ns(&self) -> Option<i64> {
        let all = || self.seen.iter().map(|(_, ahead_ns)| *ahead_ns);
        let most = all().max()?;
        all().filter(|ahead_ns| most.saturating_sub(*ahead_ns) <= SAME_CLOCK_NS).min()
    }

    /// Changes the due times of started timers to those by the clock of the trace, by the expiries before them on the
    /// same CPU, so that it makes no difference in which parts a trace is read. Starts before the first expiry are left
    /// out.
    pub(super) fn translate(&mut self, events: &mut CpuEvents, decoder: &Decoder, pages: &[u8]) {
        let mut expiries = Vec::new();
        decoder.expiries(pages, |at_ns, now_ns| expiries.push((at_ns, now_ns)));
        let mut expiries = expiries.into_iter().peekable();
        events.events.retain_mut(|event| {
            while let Some((at_ns, now_ns)) = expiries.next_if(|(expired_ns, _)| *expired_ns <= event.at_ns) {
                self.note(at_ns, now_ns);
            }
            self.translate_one(event)
        });
        expiries.for_each(|(at_ns, now_ns)| self.note(at_ns, now_ns));
    }

    /// The same for one event, after the expiries before it. Returns false if it is to be left out.
    pub(super) fn translate_one(&self, event: &mut Event) -> bool {
        let What::TimerStart { expires_ns, soft_ns, .. } = &mut event.what else { return true };
        let Some(ahead_ns) = self.ahead_ns() else { return false };
        *expires_ns = expires_ns.wrapping_add(ahead_ns);
        *soft_ns = soft_ns.wrapping_add(ahead_ns);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_difference_of_the_clock_that_is_behind_counts() {
        let mut clock = TimerClock::default();
        assert_eq!(clock.ahead_ns(), None);
        for (at_ns, now_ns) in [(5_000_700, 4_000_000), (5_100_400, 4_100_000), (5_200_900, 4_200_000)] {
            clock.note(at_ns, now_ns);
        }
        // Timers by CLOCK_REALTIME, and one by CLOCK_BOOTTIME after a suspension.
        clock.note(5_300_000, 1_700_000_000_000_000_000);
        clock.note(5_400_000, 904_400_000);
        assert_eq!(clock.ahead_ns(), Some(1_000_400));
        clock.note(5_500_000 + RECENT_NS, 4_499_000 + RECENT_NS);
        assert_eq!(clock.ahead_ns(), Some(1_001_000), "old ones do not count");
        clock.note(6_500_000 + 2 * RECENT_NS, 5_498_000 + 2 * RECENT_NS);
        assert_eq!(clock.seen.len(), 1, "but the last one stays");
    }
}
