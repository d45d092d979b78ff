//! Recorded traces, of this program or another one: threads and late activations, judged as live ones are.
//!
//! Pure: events in, results out. The trace is read once for all activations, and then once more around each of the late
//! ones that are kept, so that a file of any length needs the same memory.

mod first_reading;
mod late;
mod sleeps;

use crate::events::{Event, MarkNames, Trace, What, flags};
use crate::explain::{Case, Facts, Inside, Symbols, Taker, Totals};
use crate::watch::{Activation, Refused, ThreadResult, Usual, late_above_ns};
use first_reading::FirstReading;
use late::Late;
use punctual_model::{
    ChainRecord, ExplainRecord, Explanation, Mark, NotCovered, Order, Owner, RefusedCall, Span, Watch,
};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::iter::once;
use std::ops::Range;

/// Events of a trace that was recorded before.
pub trait Recording {
    /// Reason why it cannot be read.
    type Error;

    /// The number of CPUs.
    fn n_cpus(&self) -> usize;

    /// Begins anew.
    fn rewind(&mut self);

    /// Adds the next events to those of `part`, which are none. Returns the time before which all events are known now,
    /// ns; `None` after the last one.
    fn next(&mut self, part: &mut Trace) -> Result<Option<u64>, Self::Error>;

    /// All events of these times, ns, and of each CPU the last one before them; `None` if they are too many.
    fn window(&mut self, times_ns: &Range<u64>) -> Result<Option<Trace>, Self::Error>;

    /// The share of it that is read, 0 to 1.
    fn share(&self) -> f64;

    /// The kernel's function at an address.
    fn function(&self, address: u64) -> Option<String>;
}

/// What is wanted of a recorded trace.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The threads, and what is expected of them.
    pub watch: Watch,
    /// Response time above which an activation is explained; `None`: the deadline, or twice the usual one.
    pub above: Option<Span>,
    /// Late activations that are explained, at most; 0: none.
    pub keep: usize,
    /// Layer below the kernel that can take a CPU away.
    pub taker: Taker,
    /// Names of threads that the file has besides its events.
    pub names: HashMap<i32, String>,
    /// Marks that cut activations into phases.
    pub marks: Vec<Mark>,
}

/// Kinds of events that a trace has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// `sched_switch`.
    pub switches: bool,
    /// `sched_waking`.
    pub wakings: bool,
    /// System calls.
    pub calls: bool,
    /// Starts of timers that wake threads.
    pub timers: bool,
    /// Interrupts or softirqs.
    pub interrupts: bool,
    /// Page faults.
    pub faults: bool,
    /// Flags that say whether interrupts were off.
    pub flags: bool,
}

impl Seen {
    fn note(&mut self, event: Event) {
        self.flags |= event.flags & flags::IRQS_OFF != 0;
        match event.what {
            What::Switch { .. } => self.switches = true,
            What::Waking { .. } => self.wakings = true,
            What::SysEnter { .. } | What::SysExit { .. } => self.calls = true,
            What::TimerStart { .. } => self.timers = true,
            What::Enter(_) | What::Leave(_) => self.interrupts = true,
            What::PageFault => self.faults = true,
            _ => {}
        }
    }

    /// What is not there, and what is unknown without it.
    pub fn missing(self) -> Vec<String> {
        let kinds = [
            (self.calls, "system calls: what a thread waits for, and why it slept"),
            (self.timers, "starts of timers: due times, so that activations count from the wake-up"),
            (self.interrupts, "interrupts and softirqs: whether one of them took the CPU"),
            (self.faults, "page faults"),
            (self.flags, "flags of events: whether a reschedule was requested"),
        ];
        kinds.into_iter().filter(|(is_there, _)| !is_there).map(|(_, what)| what.to_owned()).collect()
    }
}

/// What a recorded trace tells.
#[derive(Debug)]
pub struct Judged {
    /// First and last time of which all CPUs are known, ns.
    pub times_ns: Range<u64>,
    /// Number of events that this program knows.
    pub events: u64,
    /// Gaps: events were lost.
    pub gaps: u64,
    /// Kinds of events that it has.
    pub seen: Seen,
    /// Number of threads beyond the most that are read, or at least so many; `None` if there were none.
    pub left_out: Option<u64>,
    /// The threads: those that were asked for, or all that look periodic.
    pub threads: Vec<ThreadResult>,
    /// Number of other threads with activations.
    pub others: u64,
    /// Names of those of them with most activations.
    pub most_active: Vec<String>,
    /// Calls that asked for a policy, CPUs or locked memory and were refused.
    pub refused: Vec<RefusedCall>,
    /// The chain, if one was asked for.
    pub chain: Option<ChainRecord>,
    /// The late activations.
    pub explained: ExplainRecord,
}

/// Judges a recorded trace. `progress` is called now and then with the share that is read.
pub fn judge<R: Recording + ?Sized>(
    recording: &mut R,
    wanted: &Wanted,
    progress: &mut dyn FnMut(f64),
) -> Result<Judged, R::Error> {
    // A trace with system calls shows them early, or else is read again.
    let mut first = FirstReading::new(wanted, true);
    if !first.read(recording, progress, true)? {
        first = FirstReading::new(wanted, false);
        recording.rewind();
        if !first.read(recording, progress, false)? {
            first = FirstReading::new(wanted, true);
            recording.rewind();
            first.read(recording, progress, false)?;
        }
    }
    let until_ns = first.latest_ns.saturating_add(1);
    first.threads.end(until_ns);
    // One after the other: those of all threads would be most of the trace.
    for pid in first.threads.undecided() {
        let finished = first.threads.settle(pid);
        first.note_late(finished);
    }
    let facts = Facts {
        taker: wanted.taker,
        sees_page_faults: first.seen.faults,
        lacks_calls: !first.seen.calls,
        lacks_interrupts: !first.seen.interrupts,
        lacks_flags: !first.seen.flags,
        armed_ns: first.since_ns,
        frozen_ns: first.latest_ns,
        ..Facts::default()
    };
    let FirstReading { mut threads, seen, events, gaps, since_ns, late, awake, .. } = first;
    let (names, marks) = (threads.names.clone(), threads.marks.clone());
    let (refused, left_out) = (refused(threads.refused(), &names), threads.left_out());
    let usual: HashMap<i32, Usual> = late.keys().filter_map(|pid| Some((*pid, threads.usual(*pid)?))).collect();
    let is_meant = |name: &str| wanted.watch.is_meant(name);
    let (results, mut others, chain) = threads.finish(until_ns, is_meant, |pid| awake.contains(&pid));
    let is_listed = |one: &ThreadResult| wanted.is_of_names() || one.thread.period.is_some();
    let (threads, unlisted): (Vec<_>, Vec<_>) = results.into_iter().partition(is_listed);
    others += unlisted.len() as u64;
    let most_active = most_active(&unlisted);
    let mut explained = ExplainRecord { above: wanted.above, ..ExplainRecord::default() };
    let mut latest: Vec<(&ThreadResult, Late, &Usual)> = Vec::new();
    let mut late = late;
    for one in &threads {
        let pid = one.thread.tid.cast_signed();
        let (Some(mut of_one), Some(usual)) = (late.remove(&pid), usual.get(&pid)) else { continue };
        let Some(above_ns) = late_above_ns(wanted.above, one.thread.deadline, Some(usual.response_ns)) else {
            continue;
        };
        of_one.decide(above_ns);
        explained.above = explained.above.or(Some(Span(above_ns)));
        explained.spikes += of_one.n;
        latest.extend(of_one.latest.into_iter().map(|late| (one, late, usual)));
    }
    latest.sort_by_key(|(_, one, _)| Reverse(one.activation.response_ns()));
    latest.truncate(wanted.keep);
    progress(1.0);
    let mut totals = Totals::default();
    for one in explain(recording, &latest, (&names, &marks), facts, since_ns)? {
        match one {
            Ok(explanation) => {
                totals.add(&explanation);
                explained.worst.push(explanation);
            }
            Err(not_covered) => {
                explained.not_covered += 1;
                explained.latest_not_covered = explained.latest_not_covered.or(Some(not_covered));
            }
        }
    }
    explained.explained = totals.explained;
    explained.late = Span(totals.late_ns);
    explained.evidence_ns = totals.evidence_ns;
    explained.causes = totals.causes();
    explained.events = events;
    Ok(Judged {
        times_ns: since_ns..until_ns,
        events,
        gaps,
        seen,
        left_out,
        threads,
        others,
        most_active,
        refused,
        chain,
        explained,
    })
}

impl Wanted {
    /// Whether threads were asked for by name.
    fn is_of_names(&self) -> bool {
        self.watch.thread.is_some() || !self.watch.chain.is_empty()
    }
}

/// A late activation with its thread and what is usual for that.
type Chosen<'a> = (&'a ThreadResult, Late, &'a Usual);

/// Explains late activations from the events around them, or says that these do not cover one. The events around those
/// that overlap are read once.
fn explain<R: Recording + ?Sized>(
    recording: &mut R,
    late: &[Chosen<'_>],
    (names, marks): (&HashMap<i32, String>, &MarkNames),
    facts: Facts,
    since_ns: u64,
) -> Result<Vec<Result<Explanation, NotCovered>>, R::Error> {
    let times: Vec<Range<u64>> = late.iter().map(|(_, one, _)| Case::times_ns(once(&one.activation))).collect();
    let mut in_order: Vec<(&Chosen<'_>, &Range<u64>, usize)> =
        late.iter().zip(&times).zip(0..).map(|((one, times_ns), rank)| (one, times_ns, rank)).collect();
    in_order.order_by_key(|(_, times_ns, _)| times_ns.start);
    let mut end_ns = 0;
    let groups = in_order.chunk_by(|(_, before, _), (_, next, _)| {
        end_ns = before.end.max(end_ns);
        next.start <= end_ns
    });
    let mut explained = Vec::new();
    for group in groups {
        let all_ns = group.iter().map(|(_, times_ns, _)| times_ns.start).min().unwrap_or(0)
            ..group.iter().map(|(_, times_ns, _)| times_ns.end).max().unwrap_or(0);
        let mut shared = window(recording, &all_ns, names)?;
        for (one, times_ns, rank) in group {
            // All of them may be too much.
            let mut own = if shared.is_none() && group.len() > 1 { window(recording, times_ns, names)? } else { None };
            let symbols = |address| recording.function(address);
            // The other activations of the group make no difference.
            let explain = |trace: &Trace| explain_one(one, trace, marks, (facts, since_ns), &symbols);
            let explanation = shared.as_mut().or(own.as_mut()).and_then(|trace| trace.within(times_ns, explain));
            explained.push((rank, explanation.ok_or_else(|| not_covered(&one.1.activation, since_ns))));
        }
    }
    explained.order_by_key(|(rank, _)| *rank);
    Ok(explained.into_iter().map(|(_, one)| one).collect())
}

/// The events of these times with the names of threads; `None` if they are too many.
fn window<R: Recording + ?Sized>(
    recording: &mut R,
    times_ns: &Range<u64>,
    names: &HashMap<i32, String>,
) -> Result<Option<Trace>, R::Error> {
    let mut trace = recording.window(times_ns)?;
    if let Some(trace) = &mut trace {
        for (pid, name) in names {
            trace.names.entry(*pid).or_insert_with(|| name.clone());
        }
    }
    Ok(trace)
}

fn explain_one(
    (thread, Late { activation, behind, .. }, usual): &Chosen<'_>,
    trace: &Trace,
    marks: &MarkNames,
    (facts, since_ns): (Facts, u64),
    symbols: Symbols<'_>,
) -> Option<Explanation> {
    // One that did not sleep has that of the thread.
    let known = Some(thread.priority).filter(|priority| *priority != i32::MAX);
    let priority = activation.priority.or(known).unwrap_or(120);
    let inside = Inside {
        activation: activation.clone(),
        behind: behind.as_deref().cloned(),
        usual: (*usual).clone(),
        priorities: HashMap::new(),
        files: HashMap::new(),
        marks: activation.marks.times(activation.release_ns, marks),
        samples: Vec::new(),
    };
    let owner = Owner { name: thread.thread.name.clone(), pid: Some(thread.thread.tid.cast_signed()) };
    Case::of_activation(trace, owner, priority, inside, facts, since_ns).explain(trace, symbols)
}

fn not_covered(activation: &Activation, since_ns: u64) -> NotCovered {
    NotCovered {
        cpu: activation.cpu,
        due_ns: activation.release_ns.cast_signed().wrapping_sub_unsigned(since_ns),
        latency: Span(activation.response_ns()),
    }
}

/// Refused calls with the names of their threads. A trace does not tell the limits.
fn refused(all: &[Refused], names: &HashMap<i32, String>) -> Vec<RefusedCall> {
    let named = |pid: i32| names.get(&pid).cloned().unwrap_or_else(|| format!("thread {pid}"));
    all.iter().map(|one| RefusedCall { thread: named(one.pid), ..one.call.clone() }).collect()
}

/// Names of the threads with most activations.
fn most_active(threads: &[ThreadResult]) -> Vec<String> {
    const MOST: usize = 5;
    let mut all: Vec<_> =
        threads.iter().map(|one| (Reverse(one.thread.activations), one.thread.name.clone())).collect();
    all.sort();
    let mut names: Vec<String> = all.into_iter().map(|(_, name)| name).collect();
    names.dedup();
    names.truncate(MOST);
    names
}

#[cfg(test)]
mod tests;
