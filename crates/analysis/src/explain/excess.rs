//! A late activation beside the usual one: in its own code or in system calls it ran longer, and by how much.

use super::code::CodeSample;
use super::event::{Event, What, flags, state};
use super::thread_state::{self, ThreadState};
use super::timeline::{self, Stretch};
use super::{Facts, Subject, Trace};
use crate::watch::{Activation, Call, CallKind, Usual};
use punctual_model::{Cause, MarkTime};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Smallest excess over the usual time, ns, that is a cause of its own.
const LEAST_EXCESS_NS: u64 = 20_000;
/// Longest time of a page fault without a disk, ns, in a guest whose host has to provide the page.
const FAULT_NS: u64 = 20_000;

/// The activation to explain, and what is usual for its thread.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Inside {
    /// The activation.
    pub activation: Activation,
    /// The longest one before it that was not over at its release, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<Activation>,
    /// The usual one.
    pub usual: Usual,
    /// Priorities of threads that the trace may not show, as the kernel counts.
    pub priorities: HashMap<i32, i32>,
    /// Names of the files behind descriptors of the process, like `pipe`.
    pub files: HashMap<u64, String>,
    /// Marks that it passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<MarkTime>,
    /// Samples of the stack of the thread meanwhile; empty where it is not sampled.
    pub samples: Vec<CodeSample>,
}

/// An activation with what is unusual in it.
pub(super) struct Within<'a> {
    pub(super) activation: &'a Activation,
    pub(super) excess: Excess,
}

/// Running longer than usual: where, and by how much.
#[derive(Debug, Clone, Default)]
pub(super) struct Excess {
    /// By how much, ns, the time outside of system calls and of page faults is more than usual, if it is.
    pub(super) user: Option<u64>,
    /// Times of page faults outside of system calls, in the order of time: start, end. None where they are usual.
    faults: Vec<(u64, u64)>,
    /// Whether memory was got from the kernel or given back, so that page faults are part of that.
    has_memory_calls: bool,
    /// By how much, ns, the time in each system call is more than usual, if it is.
    pub(super) calls: BTreeMap<i64, u64>,
    /// Time, ns, that a hypervisor took, where the scheduler counts it.
    pub(super) stolen_ns: Option<u64>,
    /// Whether that time is all that is unusual.
    pub(super) is_stolen: bool,
    /// System calls, in the order of time: start, end.
    spans: Vec<(u64, u64, Call)>,
}

impl Excess {
    pub(super) fn of(trace: &Trace, subject: &Subject, facts: &Facts, one: &Activation, usual: &Usual) -> Excess {
        let is_much = |excess: u64, usual: u64| excess > (usual / 2).max(LEAST_EXCESS_NS);
        let mut excess = Excess { spans: spans(trace, subject.pid, one), ..Excess::default() };
        let interrupted = excess.interrupted(trace, subject, one);
        let interrupted_in = |number: Option<i64>| interrupted.get(&number).copied().unwrap_or(0);
        for (number, (run_ns, _)) in &one.calls {
            let usual_ns = usual.calls.get(number).copied().unwrap_or(0);
            let more_ns = run_ns.saturating_sub(usual_ns).saturating_sub(interrupted_in(Some(*number)));
            let is_memory = Call { number: *number, detail: 0 }.kind() == CallKind::Memory;
            let is_more = is_much(more_ns, usual_ns);
            excess.has_memory_calls |= is_memory && (is_more || !usual.calls.contains_key(number));
            if is_more {
                excess.calls.insert(*number, more_ns);
            }
        }
        let more_ns = one.user_run_ns.saturating_sub(usual.user_run_ns).saturating_sub(interrupted_in(None));
        let faulted_ns = if is_much(more_ns, usual.user_run_ns) && one.faults > usual.faults {
            excess.faults = faults(trace, subject.pid, one);
            excess.faults.iter().map(|(from, to)| to - from).sum()
        } else {
            0
        };
        let longer_ns = more_ns.saturating_sub(faulted_ns);
        excess.user = Some(longer_ns).filter(|longer| is_much(*longer, usual.user_run_ns));
        let total_ns = excess.user.unwrap_or(0) + faulted_ns + excess.calls.values().sum::<u64>();
        excess.stolen_ns = Some(total_ns).filter(|_| facts.counts_stolen).and_then(|_| stolen(trace, subject, one));
        excess.is_stolen = excess.stolen_ns.is_some_and(|stolen_ns| {
            stolen_ns.saturating_mul(2) > total_ns && !is_much(total_ns.saturating_sub(stolen_ns), usual.run_ns)
        });
        excess
    }

    /// Time of interrupts and softirqs, ns, in each system call and outside of all, while the thread had the CPU.
    fn interrupted(&self, trace: &Trace, subject: &Subject, one: &Activation) -> BTreeMap<Option<i64>, u64> {
        let mut times: BTreeMap<Option<i64>, u64> = BTreeMap::new();
        for interval in thread_state::intervals(trace, subject.pid, one.cpu, one.user_ns, one.end_ns) {
            let ThreadState::Running(cpu) = interval.state else { continue };
            let Some(events) = trace.cpu(cpu) else { continue };
            let stretches = timeline::stretches(events, interval.from_ns, interval.to_ns);
            for stretch in stretches.iter().filter(|stretch| stretch.context.is_some()) {
                let call = self.call_at(stretch.from_ns).map(|call| call.number);
                *times.entry(call).or_default() += stretch.length_ns();
            }
        }
        times
    }

    /// The system call at `at_ns`.
    pub(super) fn call_at(&self, at_ns: u64) -> Option<Call> {
        // The last one that begins by then.
        let after = self.spans.partition_point(|(from, _, _)| *from <= at_ns);
        self.spans.get(after.checked_sub(1)?).filter(|(_, to, _)| at_ns < *to).map(|(_, _, call)| *call)
    }

    /// Cause of running at `at_ns` in a page fault outside of system calls, if it does.
    pub(super) fn fault_at(&self, at_ns: u64) -> Option<Cause> {
        let is_in = self.faults.iter().any(|(from, to)| (*from..*to).contains(&at_ns));
        is_in.then_some(if self.has_memory_calls { Cause::MemoryAllocation } else { Cause::PageFault })
    }

    /// Parts of a stretch, cut where system calls and page faults begin and end.
    pub(super) fn parts(&self, stretch: &Stretch) -> Vec<Stretch> {
        let edges =
            self.spans.iter().map(|(from, to, _)| (from, to)).chain(self.faults.iter().map(|(from, to)| (from, to)));
        let edges = edges.flat_map(|(from, to)| [*from, *to]);
        let mut cuts: Vec<u64> = edges.filter(|at| (stretch.from_ns + 1..stretch.to_ns).contains(at)).collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts.push(stretch.to_ns);
        let mut from_ns = stretch.from_ns;
        let part = |to_ns| {
            let part = Stretch { from_ns, to_ns, ..*stretch };
            from_ns = to_ns;
            part
        };
        cuts.into_iter().map(part).collect()
    }
}

/// Time, ns, in which the thread had its CPU during an activation without running, because a hypervisor took it: the
/// scheduler, which knows it, counts less time than the switches show. `None` where it does not tell.
fn stolen(trace: &Trace, subject: &Subject, one: &Activation) -> Option<u64> {
    // Other CPUs update the run time of normal threads, too, in events that are not traced.
    if subject.is_fair() {
        return None;
    }
    let pid = subject.pid;
    let events = || trace.cpus.iter().flat_map(|cpu| &cpu.events);
    let is_in = |event: &&Event| event.is_switch_to(pid) && event.at_ns <= one.start_ns;
    let is_out =
        |event: &&Event| event.at_ns >= one.end_ns && matches!(event.what, What::Switch { prev, .. } if prev == pid);
    let from_ns = events().filter(is_in).map(|event| event.at_ns).max()?;
    let to_ns = events().filter(is_out).map(|event| event.at_ns).min()?;
    let counted =
        events().filter(|event| (from_ns..=to_ns).contains(&event.at_ns)).filter_map(|event| match event.what {
            What::Ran { pid: its, ran_ns } if its == pid => Some(ran_ns),
            _ => None,
        });
    let counted_ns = counted.reduce(|sum, ran_ns| sum + ran_ns)?;
    let intervals = thread_state::intervals(trace, pid, subject.cpu, from_ns, to_ns);
    let running = intervals.iter().filter(|interval| matches!(interval.state, ThreadState::Running(_)));
    let had_ns: u64 = running.map(|interval| interval.to_ns - interval.from_ns).sum();
    Some(had_ns.saturating_sub(counted_ns))
}

/// The wanted events of an activation, of all CPUs, in the order of time.
fn outside_interrupts(trace: &Trace, one: &Activation, is_wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
    let of_thread = |event: &&Event| event.flags & (flags::HARDIRQ | flags::SOFTIRQ) == 0 && is_wanted(event);
    let all = trace.cpus.iter().flat_map(|cpu| cpu.between(one.user_ns, one.end_ns));
    let mut events: Vec<Event> = all.filter(of_thread).copied().collect();
    Event::sort(&mut events);
    events
}

/// Times of page faults of the thread within an activation: until it sleeps in one, or until its next event, but for no
/// longer than one without a disk takes, also after such a sleep.
fn faults(trace: &Trace, pid: i32, one: &Activation) -> Vec<(u64, u64)> {
    let events = outside_interrupts(trace, one, |event| event.pid == pid || event.is_switch_to(pid));
    let (mut open, mut is_asleep, mut faults) = (None, false, Vec::new());
    for event in events {
        let at = event.at_ns;
        match event.what {
            What::Ran { .. } | What::Stack(_) | What::Waking { .. } => continue,
            What::Switch { prev, prev_state, .. } if prev == pid => {
                is_asleep = open.is_some() && prev_state & state::NOT_RUNNABLE != 0;
                faults
                    .extend(open.take().map(|from: u64| (from, if is_asleep { at } else { at.min(from + FAULT_NS) })));
            }
            What::Switch { .. } => open = Some(at).filter(|_| std::mem::take(&mut is_asleep)),
            what => {
                faults.extend(open.take().map(|from| (from, at.min(from + FAULT_NS))));
                open = Some(at).filter(|_| what == What::PageFault);
            }
        }
    }
    faults.extend(open.map(|from| (from, one.end_ns.min(from + FAULT_NS))));
    faults
}

/// System calls of the thread within an activation.
fn spans(trace: &Trace, pid: i32, one: &Activation) -> Vec<(u64, u64, Call)> {
    let is_call = |event: &Event| matches!(event.what, What::SysEnter { .. } | What::SysExit { .. });
    let (mut open, mut spans) = (None, Vec::new());
    for event in outside_interrupts(trace, one, |event| event.pid == pid && is_call(event)) {
        match event.what {
            What::SysEnter { number, arguments } => open = Some((event.at_ns, Call::of(number, arguments))),
            _ => spans.extend(open.take().map(|(from, call)| (from, event.at_ns, call))),
        }
    }
    spans
}
