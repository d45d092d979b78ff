//! Timers that expire one after the other in an interrupt or softirq, and the time of each timer function.
//!
//! The kernel also has an event for the end of such a function. It is not traced, because it would cost time in every
//! wake-up. The next event of the same interrupt marks the end instead: between two timers, the kernel does next to
//! nothing (`__hrtimer_run_queues`, `expire_timers`).

use super::event::{Context, CpuEvents, What};
use super::timeline::Stretch;
use std::collections::HashMap;

/// Softirqs in which timers expire (include/linux/interrupt.h): of the timer wheel, and on PREEMPT_RT of threads
/// without real-time priority.
const TIMER: u8 = 1;
const HRTIMER: u8 = 8;

/// Call of a timer function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    /// Address of the timer; `None` for the timer wheel.
    pub(super) timer: Option<u64>,
    /// Address of the function; `None` if the kernel does not record it.
    pub(super) function: Option<u64>,
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
}

/// Timer functions that ran in a stretch of an interrupt or softirq, including one that began before it.
pub(super) fn calls(cpu: &CpuEvents, stretch: &Stretch) -> Vec<Call> {
    let Some(context) = stretch.context else { return Vec::new() };
    let begin = cpu.between(0, stretch.from_ns).iter().rposition(|event| event.what == What::Enter(context));
    let Some(begin) = begin else { return Vec::new() };
    let end = cpu.events.partition_point(|event| event.at_ns < stretch.to_ns);
    let mut calls: Vec<Call> = Vec::new();
    // Interrupts that nest in a softirq have timers of their own.
    let mut nested = 0_u32;
    for event in cpu.events.get(begin + 1..end).unwrap_or_default() {
        let call = match (event.what, context) {
            (What::Enter(_), _) => {
                nested += 1;
                None
            }
            (What::Leave(inner), _) if inner != context => {
                nested = nested.saturating_sub(1);
                None
            }
            (What::WheelExpire { function }, Context::Softirq(TIMER)) => Some((None, Some(function))),
            (What::TimerExpire { timer, function }, Context::Softirq(HRTIMER)) => Some((Some(timer), function)),
            (What::TimerExpire { timer, function }, context) if context.is_hard() => Some((Some(timer), function)),
            _ => None,
        };
        if let Some((timer, function)) = call.filter(|_| nested == 0) {
            if let Some(last) = calls.last_mut() {
                last.to_ns = event.at_ns;
            }
            calls.push(Call { timer, function, from_ns: event.at_ns, to_ns: stretch.to_ns });
        }
    }
    for call in &mut calls {
        call.from_ns = call.from_ns.max(stretch.from_ns);
        call.to_ns = call.to_ns.max(stretch.from_ns);
    }
    calls
}

/// Address of the function that took more than half of a stretch.
pub(super) fn most_of(cpu: &CpuEvents, stretch: &Stretch) -> Option<u64> {
    let mut sums: HashMap<u64, u64> = HashMap::new();
    for call in calls(cpu, stretch) {
        if let Some(function) = call.function {
            *sums.entry(function).or_default() += call.to_ns - call.from_ns;
        }
    }
    let (function, ns) = sums.into_iter().max_by_key(|(function, ns)| (*ns, *function))?;
    (ns > stretch.length_ns() / 2).then_some(function)
}
