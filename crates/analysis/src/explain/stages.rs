//! Lateness of the timer interrupt of every wake-up, not only of late ones: the irq latency of timerlat.

use super::event::{Event, What};
use punctual_model::{Histogram, Schedule};
use std::collections::HashMap;

/// A measured thread.
#[derive(Debug, Clone, Copy)]
pub struct Watched {
    /// Its thread ID.
    pub pid: i32,
    /// Its due times.
    pub schedule: Schedule,
    /// First cycle that counts, and the end, exclusive.
    pub cycles: (u64, u64),
}

/// Collector of timer events.
#[derive(Debug, Clone)]
pub struct Stages {
    threads: Vec<(Watched, Histogram)>,
    /// Started timers: the index of the waiting thread, and the due time in ns of the timer's clock.
    open: HashMap<u64, (usize, i64)>,
    /// Offset of the timers' clock from the clock of the events, ns.
    ahead_ns: i64,
}

impl Stages {
    /// An empty collector.
    pub fn new(threads: impl Iterator<Item = Watched>) -> Stages {
        let threads = threads.map(|thread| (thread, Histogram::default())).collect();
        Stages { threads, open: HashMap::new(), ahead_ns: 0 }
    }

    /// Sets the offset of the timers' clock from the clock of the events, ns.
    pub fn set_ahead_ns(&mut self, ahead_ns: i64) {
        self.ahead_ns = ahead_ns;
    }

    /// Forgets started timers after a stop of the trace: they may have expired, and another timer may have their
    /// address.
    pub fn stood_still(&mut self) {
        self.open.clear();
    }

    /// Takes the events of all CPUs and sorts them by time. A timer may expire on another CPU than that of its start,
    /// and after any time.
    pub fn take(&mut self, events: &mut [Event]) {
        Event::sort(events);
        for event in events {
            match event.what {
                What::TimerStart { timer, soft_ns, .. } => {
                    // A start by another thread at the same address replaces the timer.
                    self.open.remove(&timer);
                    if let Some(thread) =
                        self.threads.iter().position(|(thread, _)| event.is_timer_start_of(thread.pid))
                    {
                        self.open.insert(timer, (thread, soft_ns));
                    }
                }
                What::TimerExpire { timer, .. } => {
                    if let Some((thread, due_ns)) = self.open.remove(&timer) {
                        self.expired(thread, due_ns, event.at_ns);
                    }
                }
                _ => {}
            }
        }
    }

    fn expired(&mut self, thread: usize, due_ns: i64, at_ns: u64) {
        let Some((Watched { schedule, cycles, .. }, histogram)) = self.threads.get_mut(thread) else { return };
        let since_first = u64::try_from(due_ns).ok().and_then(|due_ns| due_ns.checked_sub(schedule.first_due.0));
        // Other due times are of other waits, at the start or at the end.
        let Some(since_first) = since_first.filter(|since| since.is_multiple_of(schedule.period.ns())) else { return };
        if (cycles.0..cycles.1).contains(&(since_first / schedule.period.ns())) {
            histogram.record(at_ns.cast_signed().wrapping_add(self.ahead_ns).wrapping_sub(due_ns));
        }
    }

    /// Histogram of each thread, in their order.
    pub fn histograms(self) -> impl Iterator<Item = Histogram> {
        self.threads.into_iter().map(|(_, histogram)| histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::ClockTime;

    const TIMER: u64 = 0xabc;

    fn stages() -> Stages {
        let schedule = |first| Schedule { first_due: ClockTime(first), period: "1ms".parse().unwrap() };
        let watched = |pid, first| Watched { pid, schedule: schedule(first), cycles: (1, 4) };
        Stages::new([watched(7, 1_000_000), watched(8, 1_500_000)].into_iter())
    }

    fn start(pid: i32, at_ns: u64, timer: u64, soft_ns: i64) -> Event {
        Event { at_ns, pid, flags: 0, what: What::TimerStart { timer, expires_ns: soft_ns, soft_ns } }
    }

    fn expire(at_ns: u64, timer: u64) -> Event {
        Event { at_ns, pid: 0, flags: 0, what: What::TimerExpire { timer, function: None } }
    }

    #[test]
    fn each_measured_cycle_has_the_time_from_its_due_time_to_its_interrupt() {
        let mut stages = stages();
        // A warm-up cycle; a measured one; one after the end; one that is no due time.
        for (due, at) in
            [(1_000_000, 1_001_000), (2_000_000, 2_003_000), (5_000_000, 5_001_000), (2_000_001, 2_000_900)]
        {
            stages.take(&mut [start(7, 900_000, TIMER, due), expire(at, TIMER)]);
        }
        // The events of one CPU follow those of another, and the expiry may be in the next batch.
        stages.take(&mut [
            expire(2_502_000, 5),
            start(8, 2_400_000, 5, 2_500_000),
            start(7, 2_900_000, TIMER, 3_000_000),
        ]);
        stages.take(&mut [expire(3_000_500, TIMER), expire(3_000_600, TIMER), expire(3_000_700, 99)]);
        let seen: Vec<_> = stages.histograms().map(|one| (one.n, one.min_ns, one.max_ns)).collect();
        assert_eq!(seen, [(2, Some(500), Some(3_000)), (1, Some(2_000), Some(2_000))]);
    }

    #[test]
    fn what_expires_after_the_trace_stood_still_is_another_wait() {
        let mut stages = stages();
        stages.take(&mut [start(7, 1_900_000, TIMER, 2_000_000)]);
        stages.stood_still();
        stages.take(&mut [expire(91_001_000, TIMER)]);
        assert!(stages.histograms().all(|seen| seen.n == 0));
    }

    #[test]
    fn a_restarted_address_is_another_timer_and_clocks_may_differ() {
        let mut stages = stages();
        stages.take(&mut [start(7, 10, TIMER, 2_000_000), start(9, 11, TIMER, 2_000_000), expire(2_001_000, TIMER)]);
        stages.set_ahead_ns(1_000_000);
        stages.take(&mut [start(7, 1_500_000, TIMER, 3_000_000), expire(2_004_000, TIMER)]);
        let seen: Vec<_> = stages.histograms().map(|one| (one.n, one.max_ns)).collect();
        assert_eq!(seen, [(1, Some(4_000)), (0, None)]);
    }
}
