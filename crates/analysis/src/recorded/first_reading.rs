//! First reading of a recorded trace, from its beginning to its end: all activations, and which of them are late.

use super::late::LateOnes;
use super::sleeps::UnseenCalls;
use super::{Recording, Seen, Wanted};
use crate::events::{CpuEvents, Event, Trace, What, has_room_for_name, state};
use crate::watch::{Finished, Settings, WatchedThreads};
use punctual_model::Watch;
use std::collections::{BTreeSet, HashMap};

/// Late activations that are kept of one thread, where no thread was asked for.
const MOST_OF_ONE: usize = 5;

/// The first reading of a trace.
pub(super) struct FirstReading<'a> {
    wanted: &'a Wanted,
    pub(super) threads: WatchedThreads,
    sleeps: Option<UnseenCalls>,
    pub(super) seen: Seen,
    /// Whether it has softirqs, and interrupts.
    has_contexts: [bool; 2],
    pub(super) events: u64,
    pub(super) gaps: u64,
    /// Time up to which events have been passed on, and the last of them, ns.
    settled_ns: u64,
    pub(super) latest_ns: u64,
    /// Events later than that, and times at which events were lost.
    pending: Vec<(u32, Event)>,
    lost_ns: Vec<u64>,
    pub(super) since_ns: u64,
    pub(super) late: HashMap<i32, LateOnes>,
    pub(super) awake: BTreeSet<i32>,
    /// Threads with names, and whether each is meant, where some were asked for by name.
    meant: HashMap<i32, bool>,
}

impl<'a> FirstReading<'a> {
    pub(super) fn new(wanted: &'a Wanted, has_calls: bool) -> FirstReading<'a> {
        let Watch { period, deadline, wait, sample, chain, .. } = &wanted.watch;
        let settings = Settings {
            period: *period,
            deadline: *deadline,
            wait: wait.clone(),
            sample: *sample,
            until_ns: u64::MAX,
            marks: wanted.marks.clone(),
            ..Settings::default()
        };
        let mut threads = WatchedThreads::new(settings, chain);
        threads.names.clone_from(&wanted.names);
        FirstReading {
            wanted,
            threads,
            sleeps: (!has_calls).then(UnseenCalls::default),
            seen: Seen::default(),
            has_contexts: [false; 2],
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
    pub(super) fn read<R: Recording + ?Sized>(
        &mut self,
        recording: &mut R,
        progress: &mut dyn FnMut(f64),
        is_try: bool,
    ) -> Result<bool, R::Error> {
        let mut part = Trace { cpus: vec![CpuEvents::default(); recording.n_cpus()], ..Trace::default() };
        part.marks.clone_from(&self.threads.marks);
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
        self.threads.marks = part.marks;
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
        part.named_ns.clear();
        for (pid, name) in part.names.drain() {
            if has_room_for_name(&self.threads.names, pid) {
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
                self.seen.note(event);
                if let What::Enter(context) = event.what {
                    self.has_contexts[usize::from(context.is_hard())] = true;
                }
                let is_of_threads = match event.what {
                    What::Switch { .. } | What::Waking { .. } | What::Exit => true,
                    What::SysEnter { .. }
                    | What::SysExit { .. }
                    | What::TimerStart { .. }
                    | What::PageFault
                    | What::Pass(_)
                    | What::Enter(_)
                    | What::Leave(_) => event.pid > 0 && self.meant.get(&event.pid) != Some(&false),
                    _ => false,
                };
                // Times that go back are those of damaged pages.
                if is_of_threads && event.at_ns >= self.settled_ns {
                    self.pending.push((cpu, event));
                }
            }
        }
        if self.has_contexts == [true; 2] {
            self.threads.interrupts_are_traced(part);
        }
        part.stacks.clear();
        part.interrupts.clear();
        part.timer_functions.clear();
    }

    /// Passes on the events before `horizon_ns`.
    fn settle(&mut self, horizon_ns: u64) {
        self.settled_ns = self.settled_ns.max(horizon_ns);
        Event::sort_of_cpus(&mut self.pending);
        let n = self.pending.partition_point(|(_, event)| event.at_ns < horizon_ns);
        let rest = self.pending.split_off(n);
        let settled = std::mem::replace(&mut self.pending, rest);
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
                    if prev_state & state::NOT_RUNNABLE != 0 {
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
    pub(super) fn note_late(&mut self, finished: Vec<Finished>) {
        let most = if self.wanted.is_of_names() { self.wanted.keep } else { self.wanted.keep.min(MOST_OF_ONE) };
        for one in finished {
            if self.meant.get(&one.pid) != Some(&false) {
                self.late.entry(one.pid).or_default().take(one, self.wanted.above, most);
            }
        }
    }
}
