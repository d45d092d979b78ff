//! A trace that was recorded before, by this program or another one: its threads and their late activations, judged as
//! live ones are.
//!
//! Pure: events in, results out. The trace is read once for all activations, and then once more around each of the late
//! ones that are kept, so that a file of any length needs the same memory.

mod sleeps;

use crate::events::{CpuEvents, Event, Trace, What};
use crate::explain::{Case, Facts, Inside, Taker, Totals};
use crate::watch::{Activation, Finished, Settings, ThreadResult, Usual, WatchedThreads, late_above_ns};
use model::{ChainRecord, ExplainRecord, Explanation, NotCovered, Owner, Span, Watch};
use sleeps::UnseenCalls;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// Late activations that are kept of one thread, where no thread was asked for.
const MOST_OF_ONE: usize = 5;
/// Activations of one thread that are remembered until it is known what is late.
const MOST_UNKNOWN: usize = 1000;
/// Names of threads that are kept.
const MOST_NAMES: usize = 1 << 17;

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
    ///
    /// # Errors
    /// When they cannot be read.
    fn next(&mut self, part: &mut Trace) -> Result<Option<u64>, Self::Error>;

    /// All events of these times, ns, and of each CPU the last one before them; `None` if they are too many.
    ///
    /// # Errors
    /// When they cannot be read.
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
}

impl Seen {
    fn note(&mut self, what: What) {
        match what {
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
    #[must_use]
    pub fn missing(self) -> Vec<String> {
        let kinds = [
            (self.calls, "system calls: what a thread waits for, and why it slept"),
            (self.timers, "starts of timers: due times, so that activations count from the wake-up"),
            (self.interrupts, "interrupts and softirqs: whether one of them took the CPU"),
            (self.faults, "page faults"),
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
    /// The threads: those that were asked for, or all that look periodic.
    pub threads: Vec<ThreadResult>,
    /// Number of other threads with activations.
    pub others: u64,
    /// Names of those of them with most activations.
    pub most_active: Vec<String>,
    /// The chain, if one was asked for.
    pub chain: Option<ChainRecord>,
    /// The late activations.
    pub explained: ExplainRecord,
}

/// A late activation that may be explained.
#[derive(Debug)]
struct Late {
    activation: Activation,
    /// Response time, ns, above which it is late; `None`: not known when it was over.
    above_ns: Option<u64>,
}

/// The late activations of one thread.
#[derive(Debug, Default)]
struct LateOnes {
    /// Their number.
    n: u64,
    /// The latest of them, and of those of which nothing was known, latest first.
    latest: Vec<Late>,
    /// Response times of which it was not known whether they are late, ns.
    unknown_ns: Vec<u64>,
}

impl LateOnes {
    /// Keeps an activation if it is among the `most` latest ones and not known to be in time.
    fn take(&mut self, one: Finished, above: Option<Span>, most: usize) {
        let response_ns = one.activation.response_ns();
        let above_ns = one.late_above_ns(above);
        match above_ns {
            Some(above_ns) if response_ns <= above_ns => return,
            Some(_) => self.n += 1,
            None if self.unknown_ns.len() < MOST_UNKNOWN => self.unknown_ns.push(response_ns),
            None => return,
        }
        let at = self.latest.partition_point(|other| other.activation.response_ns() >= response_ns);
        if at < most {
            self.latest.insert(at, Late { activation: one.activation, above_ns });
            self.latest.truncate(most);
        }
    }

    /// Decides what was not known, by what is known at the end.
    fn decide(&mut self, above_ns: u64) {
        self.n += self.unknown_ns.iter().filter(|response_ns| **response_ns > above_ns).count() as u64;
        for one in &mut self.latest {
            one.above_ns.get_or_insert(above_ns);
        }
        self.latest.retain(|one| one.above_ns.is_some_and(|above_ns| one.activation.response_ns() > above_ns));
    }
}

/// The first reading of a trace.
struct FirstReading<'a> {
    wanted: &'a Wanted,
    threads: WatchedThreads,
    sleeps: Option<UnseenCalls>,
    seen: Seen,
    events: u64,
    gaps: u64,
    /// Time up to which events have been passed on, and the last of them, ns.
    settled_ns: u64,
    latest_ns: u64,
    /// Events later than that, and times at which events were lost.
    pending: Vec<(u32, Event)>,
    lost_ns: Vec<u64>,
    since_ns: u64,
    late: HashMap<i32, LateOnes>,
    awake: BTreeSet<i32>,
    /// Threads with names, and whether each is meant, where some were asked for by name.
    meant: HashMap<i32, bool>,
}

/// Judges a recorded trace. `progress` is called now and then with the share that is read.
///
/// # Errors
/// When it cannot be read.
pub fn judge<R: Recording>(recording: &mut R, wanted: &Wanted, progress: &mut dyn FnMut(f64)) -> Result<Judged, R::Error> {
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
    let finished = first.threads.settle();
    first.note_late(finished);
    let facts = Facts {
        taker: wanted.taker,
        sees_page_faults: first.seen.faults,
        lacks_calls: !first.seen.calls,
        lacks_interrupts: !first.seen.interrupts,
        armed_ns: first.since_ns,
        frozen_ns: first.latest_ns,
        ..Facts::default()
    };
    let FirstReading { threads, seen, events, gaps, since_ns, late, awake, .. } = first;
    let names = threads.names.clone();
    let usual: HashMap<i32, Usual> = late.keys().filter_map(|pid| Some((*pid, threads.usual(*pid)?))).collect();
    let is_meant = |name: &str| wanted.watch.is_meant(name);
    let (results, mut others, chain) = threads.finish(until_ns, is_meant, |pid| awake.contains(&pid));
    let is_listed = |one: &ThreadResult| wanted.is_of_names() || one.thread.period.is_some();
    let (threads, unlisted): (Vec<_>, Vec<_>) = results.into_iter().partition(is_listed);
    others += unlisted.len() as u64;
    let most_active = most_active(&unlisted);
    let mut explained = ExplainRecord { above: wanted.above, ..ExplainRecord::default() };
    let mut latest: Vec<(i32, Late, &Usual)> = Vec::new();
    let mut late = late;
    for one in &threads {
        let pid = one.thread.tid.cast_signed();
        let (Some(mut of_one), Some(usual)) = (late.remove(&pid), usual.get(&pid)) else { continue };
        let Some(above_ns) = late_above_ns(wanted.above, one.thread.deadline, Some(usual.response_ns)) else { continue };
        of_one.decide(above_ns);
        explained.above = explained.above.or(Some(Span(above_ns)));
        explained.spikes += of_one.n;
        latest.extend(of_one.latest.into_iter().map(|late| (pid, late, usual)));
    }
    latest.sort_by_key(|(_, one, _)| Reverse(one.activation.response_ns()));
    latest.truncate(wanted.keep);
    let mut totals = Totals::default();
    for (pid, late, usual) in latest {
        progress(1.0);
        match explain(recording, (pid, late.activation), usual.clone(), &names, facts, since_ns)? {
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
        threads,
        others,
        most_active,
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

/// Explains one late activation from the events around it, or says that these do not cover it.
fn explain<R: Recording>(
    recording: &mut R,
    (pid, activation): (i32, Activation),
    usual: Usual,
    names: &HashMap<i32, String>,
    facts: Facts,
    since_ns: u64,
) -> Result<Result<Explanation, NotCovered>, R::Error> {
    let not_covered = NotCovered {
        cpu: activation.cpu,
        due_ns: activation.release_ns.cast_signed().wrapping_sub_unsigned(since_ns),
        latency: Span(activation.response_ns()),
    };
    let Some(mut trace) = recording.window(&Case::times_ns(std::iter::once(&activation)))? else {
        return Ok(Err(not_covered));
    };
    for (pid, name) in names {
        trace.names.entry(*pid).or_insert_with(|| name.clone());
    }
    let priority = activation.priority.unwrap_or(120);
    let (priorities, files, samples) = (HashMap::new(), HashMap::new(), Vec::new());
    let inside = Inside { activation, usual, priorities, files, samples };
    let name = names.get(&pid).cloned().unwrap_or_else(|| format!("thread {pid}"));
    let case = Case::of_activation(&trace, Owner { name, pid: Some(pid) }, priority, inside, facts, since_ns);
    let explanation = case.explain(&trace, &|address| recording.function(address));
    Ok(explanation.ok_or(not_covered))
}

/// Names of the threads with most activations.
fn most_active(threads: &[ThreadResult]) -> Vec<String> {
    const MOST: usize = 5;
    let mut all: Vec<_> = threads.iter().map(|one| (Reverse(one.thread.activations), one.thread.name.clone())).collect();
    all.sort();
    let mut names: Vec<String> = all.into_iter().map(|(_, name)| name).collect();
    names.dedup();
    names.truncate(MOST);
    names
}

impl<'a> FirstReading<'a> {
    fn new(wanted: &'a Wanted, has_calls: bool) -> FirstReading<'a> {
        let Watch { period, deadline, wait, sample, chain, .. } = &wanted.watch;
        let settings = Settings {
            period: *period,
            deadline: *deadline,
            wait: wait.clone(),
            sample: *sample,
            since_ns: 0,
            until_ns: u64::MAX,
        };
        let mut threads = WatchedThreads::new(settings, chain);
        threads.names.clone_from(&wanted.names);
        FirstReading {
            wanted,
            threads,
            sleeps: (!has_calls).then(UnseenCalls::default),
            seen: Seen::default(),
            events: 0,
            gaps: 0,
            settled_ns: 0,
            latest_ns: 0,
            pending: Vec::new(),
            lost_ns: Vec::new(),
            since_ns: 0,
            late: HashMap::new(),
            awake: BTreeSet::new(),
            meant: HashMap::new(),
        }
    }

    /// Reads the whole trace. Returns false as soon as what was assumed of its system calls is wrong, or, in a try,
    /// seems so.
    fn read<R: Recording>(
        &mut self,
        recording: &mut R,
        progress: &mut dyn FnMut(f64),
        is_try: bool,
    ) -> Result<bool, R::Error> {
        let empty = Trace { cpus: vec![CpuEvents::default(); recording.n_cpus()], ..Trace::default() };
        let mut part = empty.clone();
        let mut first_ns: Vec<Option<(u64, bool)>> = vec![None; recording.n_cpus()];
        while let Some(horizon_ns) = recording.next(&mut part)? {
            progress(recording.share());
            let is_first = self.settled_ns == 0;
            for (first, cpu) in first_ns.iter_mut().zip(&part.cpus).filter(|_| is_first) {
                let begins = cpu.events.first().map(|event| (event.at_ns, cpu.is_cut));
                *first = first.or(begins);
            }
            self.add(&mut part);
            if is_first && horizon_ns > 0 {
                self.begin(&first_ns);
            }
            let seems_wrong = is_try && is_first && horizon_ns > 0 && !self.seen.calls;
            if seems_wrong || self.sleeps.is_some() && self.seen.calls {
                return Ok(false);
            }
            self.settle(horizon_ns);
        }
        if self.settled_ns == 0 {
            self.begin(&first_ns);
        }
        self.settle(u64::MAX);
        Ok(true)
    }

    /// Sets the beginning: all CPUs are known from then on.
    fn begin(&mut self, first_ns: &[Option<(u64, bool)>]) {
        let cut = first_ns.iter().flatten().filter(|(_, is_cut)| *is_cut).map(|(at_ns, _)| *at_ns).max();
        let first = first_ns.iter().flatten().map(|(at_ns, _)| *at_ns).min();
        self.since_ns = cut.or(first).unwrap_or(0);
        self.threads.begin(self.since_ns);
    }

    /// Adds a part, and leaves it empty.
    fn add(&mut self, part: &mut Trace) {
        for (pid, name) in part.names.drain() {
            if self.threads.names.len() < MOST_NAMES || self.threads.names.contains_key(&pid) {
                if self.wanted.is_of_names() {
                    self.meant.insert(pid, self.wanted.watch.is_meant(&name));
                }
                self.threads.names.insert(pid, name);
            }
        }
        for (cpu, events) in (0..).zip(&mut part.cpus) {
            self.lost_ns.append(&mut events.lost_ns);
            events.is_cut = false;
            self.events += events.events.len() as u64;
            for event in events.events.drain(..) {
                self.seen.note(event.what);
                let is_of_threads = match event.what {
                    What::Switch { .. } | What::Waking { .. } | What::Exit => true,
                    What::SysEnter { .. } | What::SysExit { .. } | What::TimerStart { .. } | What::PageFault => {
                        self.meant.get(&event.pid) != Some(&false)
                    }
                    _ => false,
                };
                // Times that go back are those of damaged pages.
                if is_of_threads && event.at_ns >= self.settled_ns {
                    self.pending.push((cpu, event));
                }
            }
        }
        part.stacks.clear();
        part.interrupts.clear();
        part.timer_functions.clear();
    }

    /// Passes on the events before `horizon_ns`.
    fn settle(&mut self, horizon_ns: u64) {
        self.settled_ns = self.settled_ns.max(horizon_ns);
        // In one order, however the trace is divided.
        self.pending.sort_by_key(|(cpu, event)| (event.at_ns, *cpu));
        let n = self.pending.partition_point(|(_, event)| event.at_ns < horizon_ns);
        let settled: Vec<(u32, Event)> = self.pending.drain(..n).collect();
        self.lost_ns.sort_unstable();
        let n_lost = self.lost_ns.partition_point(|at_ns| *at_ns < horizon_ns);
        let lost: Vec<u64> = self.lost_ns.drain(..n_lost).collect();
        let mut rest = &settled[..];
        for at_ns in lost {
            let (before, after) = rest.split_at(rest.partition_point(|(_, event)| event.at_ns < at_ns));
            self.pass_on(before);
            self.gaps += 1;
            self.threads.lost();
            if let Some(sleeps) = &mut self.sleeps {
                sleeps.lost();
            }
            rest = after;
        }
        self.pass_on(rest);
        if let Some((_, last)) = settled.last() {
            self.latest_ns = last.at_ns;
        }
    }

    fn pass_on(&mut self, events: &[(u32, Event)]) {
        for (_, event) in events {
            match event.what {
                What::Switch { prev, prev_state, next, .. } => {
                    if prev_state & crate::events::state::NOT_RUNNABLE != 0 {
                        self.awake.remove(&prev);
                    }
                    self.awake.insert(next);
                }
                What::Waking { pid } => drop(self.awake.insert(pid)),
                _ => {}
            }
        }
        let finished = match &mut self.sleeps {
            None => self.threads.take(events),
            Some(sleeps) => self.threads.take(&sleeps.with_calls(events)),
        };
        self.note_late(finished);
    }

    /// Keeps what is late.
    fn note_late(&mut self, finished: Vec<Finished>) {
        let most = if self.wanted.is_of_names() { self.wanted.keep } else { self.wanted.keep.min(MOST_OF_ONE) };
        for one in finished {
            if self.meant.get(&one.pid) != Some(&false) {
                self.late.entry(one.pid).or_default().take(one, self.wanted.above, most);
            }
        }
    }
}

#[cfg(test)]
mod tests;
