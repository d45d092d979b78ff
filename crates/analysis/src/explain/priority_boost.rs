//! Priority inheritance: the owner of a lock has the priority of the thread that waits for it.
//!
//! The event is on the CPU of the waiting thread; the owner of the lock may run on another CPU.

use super::event::{CpuEvents, Event, Trace, What, state};
use super::timeline::Stretch;
use punctual_model::Order;

/// A change of priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    at_ns: u64,
    /// CPU of the event.
    cpu: u32,
    /// ID of the current thread at the event.
    by: i32,
    pid: i32,
    priority: i32,
}

/// Priority changes in a trace, in the order of time.
#[derive(Debug, Clone, Default)]
pub(super) struct Inherited(Vec<Change>);

impl Inherited {
    pub(super) fn of(trace: &Trace) -> Inherited {
        let mut changes = Vec::new();
        for (cpu, events) in trace.numbered() {
            changes.extend(events.events.iter().filter_map(|event| match event.what {
                What::Inherit { pid, priority } => {
                    Some(Change { at_ns: event.at_ns, cpu, by: event.pid, pid, priority })
                }
                _ => None,
            }));
        }
        changes.order_by_key(|change| change.at_ns);
        Inherited(changes)
    }

    /// Parts of a stretch of a thread, cut at its priority changes.
    pub(super) fn cut(&self, cpu: &CpuEvents, stretch: &Stretch) -> Vec<Stretch> {
        let mut changes = self.0.iter().filter(|change| change.pid == stretch.pid).peekable();
        if changes.peek().is_none() || stretch.context.is_some() {
            return vec![*stretch];
        }
        // A switch records the priority at that time, so older changes do not count.
        let is_switch = |event: &&Event| event.is_switch_to(stretch.pid);
        let since = cpu.between(0, stretch.from_ns).iter().rev().find(is_switch).map_or(0, |event| event.at_ns);
        let mut parts = Vec::new();
        let mut rest = *stretch;
        for change in changes.filter(|change| (since..stretch.to_ns).contains(&change.at_ns)) {
            if change.at_ns > rest.from_ns {
                parts.push(Stretch { to_ns: change.at_ns, ..rest });
                rest = Stretch { from_ns: change.at_ns, is_chosen: false, ..rest };
            }
            rest.priority = Some(change.priority);
        }
        parts.push(rest);
        parts
    }

    /// Whether a stretch begins where its thread gave back an inherited priority, which requests a switch.
    pub(super) fn is_given_back(&self, stretch: &Stretch) -> bool {
        let mut at_begin = self.0.iter().filter(|change| change.at_ns == stretch.from_ns);
        at_begin.any(|change| change.pid == stretch.pid && change.by == stretch.pid)
    }

    /// Sentence on the inherited priority of the thread of a stretch; `None` if it did not inherit one. Names the
    /// waiting thread if that went to sleep for the lock.
    pub(super) fn reason(&self, trace: &Trace, stretch: &Stretch) -> Option<String> {
        let is_before = |change: &&Change| change.pid == stretch.pid && change.at_ns <= stretch.from_ns;
        let last = self.0.iter().rev().find(is_before)?;
        // A thread that releases its lock changes its own priority.
        if Some(last.priority) != stretch.priority || last.by == stretch.pid {
            return None;
        }
        // A thread can put another one to wait (FUTEX_CMP_REQUEUE_PI, futex(2)). The next switch shows which of them
        // sleeps.
        let next = trace.cpu(last.cpu).and_then(|events| {
            let later = events.events.get(events.from(last.at_ns)..).unwrap_or_default();
            later.iter().find(|event| matches!(event.what, What::Switch { .. }))
        });
        let waits = next.is_some_and(|event| {
            matches!(event.what, What::Switch { prev, prev_priority, prev_state, .. }
                if prev == last.by && prev_priority == last.priority && prev_state & state::NOT_RUNNABLE != 0)
        });
        let waiter = if waits { trace.owner_name(None, last.by) } else { "a thread of that priority".to_owned() };
        Some(format!("it holds a lock that {waiter} waits for, with its priority (priority inheritance)"))
    }
}
