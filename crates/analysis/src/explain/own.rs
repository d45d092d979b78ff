//! Activity of the measured thread itself: running, runnable, stopped, or blocked.

use super::event::{Event, Trace, What, state};

/// Scheduling state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// Runs on this CPU.
    Running(u32),
    /// Runnable; the CPU is that of its last event.
    Runnable(u32),
    /// Stopped by a signal or a debugger.
    Stopped,
    /// Waits for an event.
    Blocked,
}

/// Interval in one scheduling state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spell {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    pub(super) doing: Doing,
}

/// Time before a window that is searched for the state of a thread at its start, ns.
const LOOK_BACK_NS: u64 = 2_000_000_000;

/// States of `pid` from `from` to `to`, without gaps. `cpu` is its assumed CPU if no event shows it.
pub(super) fn spells(trace: &Trace, pid: i32, cpu: u32, from: u64, to: u64) -> Vec<Spell> {
    let mut turns: Vec<(u64, Doing)> = trace
        .numbered()
        .flat_map(|(cpu, events)| {
            let events = events.between(from.saturating_sub(LOOK_BACK_NS), to).iter();
            events.filter_map(move |event| turn(event, pid, cpu).map(|doing| (event.at_ns, doing)))
        })
        .collect();
    turns.sort_by_key(|(at, _)| *at);
    let mut doing = Doing::Running(cpu);
    let mut at = from;
    let mut spells = Vec::new();
    for (turn_ns, next) in turns {
        if next == doing {
            continue;
        }
        // A waking of a running thread has no effect.
        if matches!((doing, next), (Doing::Running(_), Doing::Runnable(_))) && !is_switch_out(trace, pid, turn_ns) {
            continue;
        }
        if turn_ns > at {
            spells.push(Spell { from_ns: at, to_ns: turn_ns, doing });
            at = turn_ns;
        }
        doing = next;
    }
    if to > at {
        spells.push(Spell { from_ns: at, to_ns: to, doing });
    }
    spells
}

/// State of the thread after `event`; `None` if the event does not change it.
fn turn(event: &Event, pid: i32, cpu: u32) -> Option<Doing> {
    match event.what {
        What::Switch { next, .. } if next == pid => Some(Doing::Running(cpu)),
        What::Switch { prev, prev_state, .. } if prev == pid => Some(match prev_state {
            why if why & state::STOPPED != 0 => Doing::Stopped,
            why if why & state::NOT_RUNNABLE != 0 => Doing::Blocked,
            _ => Doing::Runnable(cpu),
        }),
        What::Waking { pid: woken } if woken == pid => Some(Doing::Runnable(cpu)),
        // The switch to it may have no event.
        _ if event.is_by(pid) => Some(Doing::Running(cpu)),
        _ => None,
    }
}

/// Whether the thread was switched out at this time.
fn is_switch_out(trace: &Trace, pid: i32, at_ns: u64) -> bool {
    let is_out = |event: &Event| matches!(event.what, What::Switch { prev, .. } if prev == pid);
    trace.numbered().any(|(_, events)| events.between(at_ns, at_ns).iter().any(is_out))
}

/// Time of the first page fault of `pid` from `from` to `to`.
pub(super) fn first_fault(trace: &Trace, pid: i32, from: u64, to: u64) -> Option<u64> {
    let is_fault = |event: &&Event| event.pid == pid && event.what == What::PageFault;
    let first = |events: &super::CpuEvents| events.between(from, to).iter().find(is_fault).map(|event| event.at_ns);
    trace.cpus.iter().filter_map(first).min()
}
