//! Activity of the measured thread itself: running, runnable, stopped, or blocked.

use super::event::{Event, Trace, What, state};
use punctual_model::Order;

/// Scheduling state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadState {
    /// Runs on this CPU.
    Running(u32),
    /// Runnable; the CPU is that of its last event, or where it runs next after a waking: its waker may be on another.
    Runnable(u32),
    /// Stopped by a signal or a debugger.
    Stopped,
    /// Waits for an event.
    Blocked,
}

/// Interval in one scheduling state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    pub(super) state: ThreadState,
}

/// Time before a window that is searched for the state of a thread at its start, ns.
const LOOK_BACK_NS: u64 = 2_000_000_000;

/// States of `pid` from `from` to `to`, without gaps. `cpu` is its assumed CPU if no event shows it.
pub(super) fn intervals(trace: &Trace, pid: i32, cpu: u32, from: u64, to: u64) -> Vec<Interval> {
    let mut turns: Vec<(&Event, ThreadState)> = trace
        .numbered()
        .flat_map(|(cpu, events)| {
            let events = events.between(from.saturating_sub(LOOK_BACK_NS), to).iter();
            events.filter_map(move |event| turn(event, pid, cpu).map(|state| (event, state)))
        })
        .collect();
    turns.order_by_key(|(event, _)| event.at_ns);
    place_wakings(&mut turns, pid, cpu);
    let mut state = at_start(&turns, pid, cpu);
    let mut at = from;
    let mut intervals = Vec::new();
    for (turn_ns, next) in turns.into_iter().map(|(event, next)| (event.at_ns, next)) {
        if next == state {
            continue;
        }
        // A waking of a running thread has no effect.
        if matches!((state, next), (ThreadState::Running(_), ThreadState::Runnable(_)))
            && !is_switch_out(trace, pid, turn_ns)
        {
            continue;
        }
        if turn_ns > at {
            intervals.push(Interval { from_ns: at, to_ns: turn_ns, state });
            at = turn_ns;
        }
        state = next;
    }
    if to > at {
        intervals.push(Interval { from_ns: at, to_ns: to, state });
    }
    intervals
}

/// Sets the CPU that the thread waits for after each waking: where it runs next, or else where it ran last.
fn place_wakings(turns: &mut [(&Event, ThreadState)], pid: i32, cpu: u32) {
    let mut last = cpu;
    for (event, state) in &mut *turns {
        match state {
            ThreadState::Running(cpu) => last = *cpu,
            ThreadState::Runnable(cpu) if event.what == (What::Waking { pid }) => *cpu = last,
            _ => {}
        }
    }
    let mut next = None;
    for (event, state) in turns.iter_mut().rev() {
        match state {
            ThreadState::Running(cpu) => next = Some(*cpu),
            ThreadState::Runnable(cpu) if event.what == (What::Waking { pid }) => *cpu = next.unwrap_or(*cpu),
            _ => {}
        }
    }
}

/// State of the thread before its first turn: a trace may begin while it sleeps or waits for the CPU.
fn at_start(turns: &[(&Event, ThreadState)], pid: i32, cpu: u32) -> ThreadState {
    let is_in = |turn: Option<&(&Event, ThreadState)>| turn.is_some_and(|(event, _)| event.is_switch_to(pid));
    match turns {
        [(_, ThreadState::Running(cpu)), ..] if is_in(turns.first()) => ThreadState::Runnable(*cpu),
        [(event, _), ..] if event.what == (What::Waking { pid }) && is_in(turns.get(1)) => ThreadState::Blocked,
        _ => ThreadState::Running(cpu),
    }
}

/// State of the thread after `event`; `None` if the event does not change it.
fn turn(event: &Event, pid: i32, cpu: u32) -> Option<ThreadState> {
    match event.what {
        What::Switch { next, .. } if next == pid => Some(ThreadState::Running(cpu)),
        What::Switch { prev, prev_state, .. } if prev == pid => Some(match prev_state {
            why if why & state::STOPPED != 0 => ThreadState::Stopped,
            why if why & state::NOT_RUNNABLE != 0 => ThreadState::Blocked,
            _ => ThreadState::Runnable(cpu),
        }),
        What::Waking { pid: woken } if woken == pid => Some(ThreadState::Runnable(cpu)),
        // The switch to it may have no event.
        _ if event.is_by(pid) => Some(ThreadState::Running(cpu)),
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
