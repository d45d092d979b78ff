//! Sleeps of threads in a trace without system calls: each is taken for a call of unknown number.

use crate::events::{Event, What, flags, state};
use crate::watch::UNKNOWN;
use std::collections::HashMap;

/// Longest time, ns, from the start of the timer of a sleep to the switch out.
const TO_SLEEP_NS: u64 = 50_000;
/// Most starts of timers that are kept of a running thread, and most threads.
const MOST_TIMERS: usize = 16;
const MOST_THREADS: usize = 1 << 16;

/// What is known of one thread.
#[derive(Debug, Default)]
struct Known {
    /// Timers that it has started since it woke.
    timers: Vec<(u32, Event)>,
    is_asleep: bool,
}

/// Adds the calls in which threads sleep.
#[derive(Debug, Default)]
pub(super) struct UnseenCalls {
    threads: HashMap<i32, Known>,
}

impl UnseenCalls {
    /// Forgets what may be wrong after lost events.
    pub(super) fn lost(&mut self) {
        self.threads.clear();
    }

    /// These events, in the order of time, with the entry of a call before each sleep, and its exit after the next
    /// switch in. The start of the timer that ends it is part of the call.
    pub(super) fn with_calls(&mut self, events: &[(u32, Event)]) -> Vec<(u32, Event)> {
        let mut all = Vec::with_capacity(events.len() * 3 / 2);
        for (cpu, event) in events {
            let is_thread = event.flags & (flags::HARDIRQ | flags::SOFTIRQ) == 0;
            match event.what {
                What::TimerStart { .. } if is_thread && event.pid > 0 => {
                    if let Some(known) = self.known(event.pid) {
                        if known.timers.len() >= MOST_TIMERS {
                            known.timers.remove(0);
                        }
                        known.timers.push((*cpu, *event));
                    }
                }
                What::Switch { prev, prev_state, next, .. } => {
                    let sleeps = prev_state & state::NOT_RUNNABLE != 0 && prev_state & state::STOPPED == 0;
                    if sleeps && prev > 0 {
                        self.sleep(*cpu, event, prev, &mut all);
                    }
                    all.push((*cpu, *event));
                    if next > 0
                        && let Some(known) = self.threads.get_mut(&next)
                        && std::mem::take(&mut known.is_asleep)
                    {
                        all.push((*cpu, by(next, event.at_ns, What::SysExit { number: UNKNOWN, result: 0 })));
                    }
                }
                What::Exit => {
                    self.threads.remove(&event.pid);
                    all.push((*cpu, *event));
                }
                _ => all.push((*cpu, *event)),
            }
        }
        all
    }

    fn known(&mut self, pid: i32) -> Option<&mut Known> {
        let has_room = self.threads.len() < MOST_THREADS;
        if !has_room && !self.threads.contains_key(&pid) {
            return None;
        }
        Some(self.threads.entry(pid).or_default())
    }

    /// Adds the entry of the call, with the timers that the thread has started.
    fn sleep(&mut self, cpu: u32, event: &Event, pid: i32, all: &mut Vec<(u32, Event)>) {
        let Some(known) = self.known(pid) else { return };
        known.is_asleep = true;
        let timers = std::mem::take(&mut known.timers);
        let is_of_sleep = |timer: &Event| event.at_ns.saturating_sub(timer.at_ns) <= TO_SLEEP_NS;
        let first = timers.iter().find(|(_, timer)| is_of_sleep(timer)).map(|(_, timer)| timer.at_ns);
        let arguments = [u64::from(first.is_some()), 0, 0];
        let (before, within): (Vec<_>, Vec<_>) = timers.into_iter().partition(|(_, timer)| !is_of_sleep(timer));
        all.extend(before);
        all.push((cpu, by(pid, first.unwrap_or(event.at_ns), What::SysEnter { number: UNKNOWN, arguments })));
        all.extend(within);
    }
}

fn by(pid: i32, at_ns: u64, what: What) -> Event {
    Event { at_ns, pid, flags: 0, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(at_ns: u64, prev: i32, prev_state: u32, next: i32) -> (u32, Event) {
        let what = What::Switch { prev, prev_priority: 120, prev_state, next, next_priority: 120 };
        (0, by(prev, at_ns, what))
    }

    fn timer(at_ns: u64, timer: u64) -> (u32, Event) {
        (0, by(7, at_ns, What::TimerStart { timer, expires_ns: 0, soft_ns: 0 }))
    }

    /// The calls that are added: their times, and whether each is an entry with a timer.
    fn added(events: &[(u32, Event)]) -> Vec<(u64, Option<bool>)> {
        let all = UnseenCalls::default().with_calls(events);
        let call = |(_, event): &(u32, Event)| match event.what {
            What::SysEnter { number: UNKNOWN, arguments } => Some((event.at_ns, Some(arguments[0] == 1))),
            What::SysExit { .. } => Some((event.at_ns, None)),
            _ => None,
        };
        all.iter().filter_map(call).collect()
    }

    #[test]
    fn a_sleep_is_a_call_from_the_start_of_its_timer_to_the_switch_in() {
        let timed = [switch(10, 0, 0, 7), timer(90, 1), switch(100, 7, 1, 0), switch(500, 0, 0, 7)];
        assert_eq!(added(&timed), [(90, Some(true)), (500, None)]);
        let plain = [switch(100, 7, 1, 0), switch(500, 0, 0, 7)];
        assert_eq!(added(&plain), [(100, Some(false)), (500, None)]);
        // A timer that was started long before belongs to something else.
        let old = [timer(90, 1), switch(90 + TO_SLEEP_NS + 1, 7, 1, 0), switch(200_000, 0, 0, 7)];
        assert_eq!(added(&old), [(90 + TO_SLEEP_NS + 1, Some(false)), (200_000, None)]);
    }

    #[test]
    fn a_thread_that_is_preempted_or_stopped_is_in_no_call() {
        for why in [0, state::STOPPED] {
            assert_eq!(added(&[switch(100, 7, why, 9), switch(500, 9, 0, 7)]), []);
        }
    }
}
