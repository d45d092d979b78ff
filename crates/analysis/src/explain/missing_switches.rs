//! Switches without an event.
//!
//! A kernel may omit all events of one thread except those of interrupts in it, including the switch away from it (seen
//! on Linux 6.18 with an idle thread, and with others that had run for long). Any event of another thread shows that an
//! idle CPU was left. The switch to that thread came right after the last event of the idle CPU. A thread other than
//! idle may have run on for a while, or another one after it, so no switch is added there.

use super::event::{CpuEvents, Event, Trace, What};
use std::collections::HashMap;

/// Priority of idle threads in `sched_switch`.
const IDLE_PRIORITY: i32 = 120;

impl Trace {
    /// Adds missing switches away from idle, if another switch shows the priority of the next thread.
    pub fn imply_switches(&mut self) {
        self.cpus.iter_mut().for_each(imply);
    }
}

fn imply(cpu: &mut CpuEvents) {
    let mut priorities = HashMap::new();
    for event in &cpu.events {
        if let What::Switch { prev, prev_priority, next, next_priority, .. } = event.what {
            priorities.insert(prev, prev_priority);
            priorities.insert(next, next_priority);
        }
    }
    let mut whole = Vec::with_capacity(cpu.events.len());
    let mut current = None;
    for event in &cpu.events {
        let before = whole.last().map(|before: &Event| before.at_ns);
        // The stack of a switch follows it, with the previous thread as current.
        let is_left = current == Some(0) && event.pid != 0 && !matches!(event.what, What::Stack(_));
        if let (true, Some(at_ns), Some(priority)) = (is_left, before, priorities.get(&event.pid)) {
            let what = What::Switch {
                prev: 0,
                prev_priority: IDLE_PRIORITY,
                prev_state: 0,
                next: event.pid,
                next_priority: *priority,
            };
            whole.push(Event { at_ns, pid: 0, flags: 0, what });
        }
        current = match event.what {
            What::Switch { next, .. } => Some(next),
            What::Stack(_) => current,
            _ => Some(event.pid),
        };
        whole.push(*event);
    }
    cpu.events = whole;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(at_ns: u64, prev: i32, next: i32) -> Event {
        let priority = |pid: i32| if pid == 0 { IDLE_PRIORITY } else { pid };
        let what =
            What::Switch { prev, prev_priority: priority(prev), prev_state: 1, next, next_priority: priority(next) };
        Event { at_ns, pid: prev, flags: 0, what }
    }

    fn waking(at_ns: u64, pid: i32) -> Event {
        Event { at_ns, pid, flags: 0, what: What::Waking { pid: 7 } }
    }

    fn implied(events: Vec<Event>) -> Vec<(u64, i32, i32)> {
        let mut trace = Trace { cpus: vec![CpuEvents { events, ..CpuEvents::default() }], ..Trace::default() };
        trace.imply_switches();
        let switches = trace.cpus[0].events.iter().filter_map(|event| match event.what {
            What::Switch { prev: 0, next, next_priority, .. } => Some((event.at_ns, next, next_priority)),
            _ => None,
        });
        switches.collect()
    }

    #[test]
    fn a_switch_away_from_idle_is_where_the_idle_cpu_was_left() {
        // Thread 4 runs without an event until it is switched out, which shows its priority.
        assert_eq!(implied(vec![switch(10, 7, 0), waking(20, 0), switch(30, 4, 7)]), [(20, 4, 4)]);
        // Thread 7 has an event of its own, and an earlier switch shows its priority.
        assert_eq!(implied(vec![switch(10, 7, 0), waking(20, 0), waking(30, 7)]), [(20, 7, 7)]);
    }

    #[test]
    fn what_is_there_or_not_known_is_left_as_it_is() {
        assert_eq!(implied(vec![switch(10, 7, 0), switch(20, 0, 4), waking(30, 4)]), [(20, 4, 4)]);
        assert_eq!(implied(vec![switch(10, 7, 0), waking(20, 0), waking(30, 9)]), []);
        // Not away from idle: another switch is missing, and the thread in between is unknown.
        assert_eq!(implied(vec![switch(10, 7, 4), waking(20, 5)]), []);
    }
}
