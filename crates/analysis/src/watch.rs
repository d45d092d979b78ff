//! Watched threads of other programs: from kernel events to activations, their distributions and sums.
//!
//! Pure: events in the order of time in, records out. A thread's system calls, switches, wakings and timers show when
//! each activation was released, when it ran, was preempted or slept, and when it was over. The call in which a thread
//! waits for its next activation is found from its own behavior.

mod account;
mod activation;
mod bounds;
mod calls;
mod chain;
mod marks;
mod open;
mod packet_stages;
mod packets;
mod passes;
mod period;
mod refused;
mod result;
mod samples;
#[cfg(test)]
pub(crate) mod script;
mod tally;
mod thread;
mod timers;
mod track;
mod wait;

pub use activation::{Activation, Block, Hop, Release, Wait};
pub use calls::Call;
pub(crate) use calls::{CONTENDED, CallKind, HAS_WAITERS, UNKNOWN};
pub use passes::{Passed, Passes};
pub use refused::{Refused, Wish};
pub use result::ThreadResult;
pub use samples::Settings;
pub use tally::Usual;
pub use timers::WAKING_TIMERS;

use crate::events::{Context, CpuEvents, DEADLINE_PRIORITY, Event, MarkNames, Trace, What};
use account::{Account, Occupants, Phase, Slept};
use bounds::Bounded;
use chain::Chain;
use open::Open;
use packets::{Carrier, Packets};
use punctual_model::{
    Censored, ChainRecord, CountedName, InterruptTime, OpenActivation, OpenKind, Order, SettingChange, SleepTime, Span,
    TimeAccount, WatchSample, WatchedThread,
};
use refused::Requests;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tally::{Sleeping, Sum, times};
use thread::Thread;
use track::Doing;

/// Most threads that are kept apart.
const MOST_THREADS: usize = 4096;
/// Most events of all threads that are kept until their waits are known: 300 MB; and least of one of many threads.
const MOST_EARLY: usize = 1 << 22;
const LEAST_EARLY: usize = MOST_EARLY / MOST_THREADS;
/// Names that a list has at most.
const MOST_WAKERS: usize = 5;
const MOST_CALLS: usize = 10;

/// An activation that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Its thread.
    pub pid: i32,
    /// The activation.
    pub activation: Activation,
    /// The longest one before it that was not over at its release, if any.
    pub behind: Option<Arc<Activation>>,
    /// Usual response time of the thread, ns; `None` while too few are known.
    pub usual_response_ns: Option<u64>,
    /// Response time above which it is late, if known.
    pub deadline: Option<Span>,
}

/// Addition to twice the usual response time, ns: shorter ones are not late by themselves.
const NOTABLE_NS: u64 = 50_000;

impl Finished {
    /// Response time, ns, above which it is late; `None` while nothing is known.
    pub fn late_above_ns(&self, given: Option<Span>) -> Option<u64> {
        late_above_ns(given, self.deadline, self.usual_response_ns)
    }
}

/// Response time, ns, above which an activation is late: the one that is given, or else the deadline or twice the usual
/// one, whichever is less; `None` if nothing is known.
pub(crate) fn late_above_ns(
    given: Option<Span>,
    deadline: Option<Span>,
    usual_response_ns: Option<u64>,
) -> Option<u64> {
    let usual = usual_response_ns.map(|usual| usual.saturating_mul(2).saturating_add(NOTABLE_NS));
    let own = [deadline.map(Span::ns), usual].into_iter().flatten().min();
    given.map(Span::ns).or(own)
}

/// All watched threads.
#[derive(Debug)]
pub struct WatchedThreads {
    settings: Settings,
    threads: BTreeMap<i32, Thread>,
    /// Threads beyond [`MOST_THREADS`], as many again.
    left_out: BTreeSet<i32>,
    chain: Option<Chain>,
    /// Offsets of the other clocks from `CLOCK_MONOTONIC`, ns; positive when ahead.
    offsets: Vec<i64>,
    occupants: Occupants,
    /// Whether the occupants of the CPUs come from another trace than the events of the threads.
    occupants_are_given: bool,
    /// Names of interrupts, where those are traced while the threads run.
    interrupts: Option<Trace>,
    requests: Requests,
    packets: Packets,
    /// Threads that a softirq woke while they may have waited for a packet.
    by_softirq: BTreeSet<i32>,
    /// Names of threads.
    pub names: HashMap<i32, String>,
    /// Names of marks.
    pub marks: MarkNames,
}

impl WatchedThreads {
    /// Nothing is known yet; `chain` has the names of a chain of threads, or none.
    pub fn new(settings: Settings, chain: &[String]) -> WatchedThreads {
        WatchedThreads {
            marks: MarkNames::new(&settings.marks),
            settings,
            threads: BTreeMap::new(),
            left_out: BTreeSet::new(),
            chain: (!chain.is_empty()).then(|| Chain::new(chain)),
            offsets: Vec::new(),
            occupants: Occupants::default(),
            occupants_are_given: false,
            interrupts: None,
            requests: Requests::default(),
            packets: Packets::default(),
            by_softirq: BTreeSet::new(),
            names: HashMap::new(),
        }
    }

    /// Takes all switches of each CPU up to now, those that [`WatchedThreads::take`] gets next and more: only some
    /// threads are in that trace.
    pub fn occupied(&mut self, cpus: &[CpuEvents]) {
        self.occupants_are_given = true;
        for (cpu, events) in (0..).zip(cpus) {
            if events.is_cut || !events.lost_ns.is_empty() {
                self.occupants.forget();
            }
            for event in &events.events {
                if let What::Switch { prev, prev_priority, next, next_priority, .. } = event.what {
                    self.occupants.leave(cpu, (prev, prev_priority), account::puts_off(&event.what));
                    self.occupants.enter(cpu, event.at_ns, (next, next_priority));
                }
            }
        }
    }

    /// Notes that the interrupts on top of the threads are among the events, and takes their names.
    pub fn interrupts_are_traced(&mut self, part: &mut Trace) {
        let known = self.interrupts.get_or_insert_default();
        known.vectors.clone_from(&part.vectors);
        known.interrupts.extend(part.interrupts.drain());
    }

    /// Calls of each thread for data that returned at once without any.
    pub fn empty_polls(&self) -> HashMap<i32, u64> {
        self.threads.iter().map(|(pid, thread)| (*pid, thread.track.empty_polls)).collect()
    }

    /// IDs of the threads that may wait for packets.
    pub fn may_wait_for_packets(&self) -> impl Iterator<Item = i32> {
        self.by_softirq.iter().copied()
    }

    /// Notes that packets are traced from this instant on, ns, on so many CPUs.
    pub fn packets_begin(&mut self, n_cpus: usize, at_ns: u64) {
        self.packets.begin(n_cpus, at_ns);
    }

    /// Passes the trace of packets to `read`, which adds those of all CPUs; those before `until_ns` are complete.
    pub fn packets(&mut self, until_ns: u64, trace: &mut Trace) {
        self.packets.known.interrupts.extend(trace.interrupts.drain());
        self.packets.known.devices.clone_from(&trace.devices);
        self.packets.take(&trace.cpus, until_ns, &self.names);
    }

    /// Notes that packets are not traced any more.
    pub fn packets_end(&mut self) {
        self.packets.end();
    }

    /// Names no thread that had a CPU, from the beginning on.
    pub fn occupants_unknown(&mut self) {
        self.occupants.are_unknown = true;
    }

    /// Sets the start of the measured time, `CLOCK_MONOTONIC`, ns.
    pub fn begin(&mut self, since_ns: u64) {
        self.settings.since_ns = since_ns;
    }

    /// Sets the end of the measured time, `CLOCK_MONOTONIC`, ns.
    pub fn end(&mut self, until_ns: u64) {
        self.settings.until_ns = until_ns;
    }

    /// Longest response time so far of the threads with an activation that was released in the measured time and is not
    /// over, ns; `None` without one. Events are known up to `at_ns`; `is_meant` as in
    /// [`WatchedThreads::finish`].
    pub fn unfinished(&self, at_ns: u64, is_meant: impl Fn(&str) -> bool) -> Option<u64> {
        let is_meant = |pid: &i32| self.names.get(pid).is_some_and(|name| is_meant(name));
        let unfinished = |thread: &&Thread| thread.unfinished(at_ns, &self.offsets, &self.settings).is_some();
        let threads = self.threads.iter().filter(|(pid, _)| is_meant(pid)).map(|(_, thread)| thread);
        let longest =
            |thread: &Thread| thread.tally.thread.response.max_ns.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0);
        threads.filter(unfinished).map(longest).max()
    }

    /// Sets the offsets of the other clocks from `CLOCK_MONOTONIC`, ns.
    pub fn set_offsets(&mut self, offsets: Vec<i64>) {
        self.offsets = offsets;
    }

    /// Takes events of all CPUs together, in the order of time; returns the activations that they complete. Threads are
    /// watched from their first system call on.
    pub fn take(&mut self, events: &[(u32, Event)]) -> Vec<Finished> {
        let mut finished = Vec::new();
        events.iter().for_each(|(cpu, event)| self.follow(*cpu, event, &mut finished));
        self.count(&mut finished);
        finished
    }

    fn follow(&mut self, cpu: u32, event: &Event, finished: &mut Vec<Finished>) {
        match event.what {
            What::Switch { prev, prev_priority, next, next_priority, .. } => {
                let puts_off = account::puts_off(&event.what);
                if !self.occupants_are_given {
                    self.occupants.leave(cpu, (prev, prev_priority), puts_off);
                }
                self.pass(prev, cpu, event, finished);
                if let Some(thread) = self.threads.get_mut(&prev).filter(|_| puts_off) {
                    thread.account.put_off();
                }
                self.pass(next, cpu, event, finished);
                if let Some(thread) = self.threads.get_mut(&next) {
                    thread.priority = Some(next_priority);
                }
                if !self.occupants_are_given {
                    self.occupants.enter(cpu, event.at_ns, (next, next_priority));
                }
            }
            What::Waking { pid } => {
                self.occupants.seen(cpu, event.at_ns, event.pid, pid);
                if self.chain.is_some() {
                    self.hand_on(event.pid, pid, event.at_ns);
                }
                if let Some(brought) = self.packets.brought(cpu, event, &self.names)
                    && let Some(thread) = self.threads.get_mut(&pid)
                    && thread.track.may_wait_for_packet()
                {
                    if !thread.track.is_due(event.at_ns, &self.offsets) {
                        self.by_softirq.insert(pid);
                    }
                    thread.track.brought(event.at_ns, brought);
                }
                self.pass(pid, cpu, event, finished);
            }
            What::Exit => {
                if let Some(thread) = self.threads.get_mut(&event.pid) {
                    thread.ended_ns = Some(event.at_ns);
                }
                self.pass(event.pid, cpu, event, finished);
            }
            What::SysEnter { .. } | What::SysExit { .. } => {
                self.requests.take(event, self.threads.contains_key(&event.pid));
                if event.pid > 0 {
                    self.add(event.pid, event.at_ns);
                }
                self.pass(event.pid, cpu, event, finished);
            }
            What::Enter(context) | What::Leave(context) => {
                if let Some(thread) = self.threads.get_mut(&event.pid) {
                    let (begins, measured) =
                        (matches!(event.what, What::Enter(_)), (self.settings.since_ns, self.settings.until_ns));
                    thread.account.interrupt(context, begins, event.at_ns, measured);
                }
            }
            // The stack of a switch follows it, with the previous thread as current.
            What::Stack(_) => {}
            _ => self.pass(event.pid, cpu, event, finished),
        }
    }

    fn pass(&mut self, pid: i32, cpu: u32, event: &Event, finished: &mut Vec<Finished>) {
        let n_threads = self.threads.len();
        if let Some(thread) = self.threads.get_mut(&pid) {
            thread.take(pid, cpu, event, &self.offsets, &self.settings, finished);
            let measured = (self.settings.since_ns, self.settings.until_ns);
            thread.account.take(thread.phase(), cpu, event.at_ns, &self.occupants, measured);
            thread.keep_early(|| (MOST_EARLY / n_threads.max(1)).max(LEAST_EARLY));
        }
    }

    /// Notes what caused the next activation of a thread that another one wakes, if it sleeps.
    fn hand_on(&mut self, waker: i32, woken: i32, at_ns: u64) {
        let is_effective = self.threads.get(&woken).is_some_and(|thread| thread.track.is_asleep());
        let hops = self.threads.get(&waker).filter(|_| is_effective).and_then(|thread| thread.track.hops(at_ns));
        if let (Some(hops), Some(thread)) = (hops, self.threads.get_mut(&woken)) {
            thread.track.caused_by(hops);
        }
    }

    /// Counts activations: those of one thread together, so that its tables stay in the cache of the CPU.
    fn count(&mut self, finished: &mut [Finished]) {
        if let Some(chain) = &mut self.chain {
            let names = &self.names;
            let is_named = |pid: i32, name: &str| names.get(&pid).is_some_and(|known| known == name);
            finished.iter().for_each(|one| chain.take(one.pid, &one.activation, is_named));
        }
        let mut by_thread: Vec<&mut Finished> = finished.iter_mut().collect();
        by_thread.order_by_key(|one| one.pid);
        for one in by_thread {
            let Some(thread) = self.threads.get_mut(&one.pid) else { continue };
            thread.tally.take(&mut one.activation);
            (one.deadline, one.usual_response_ns) = (thread.tally.deadline(), thread.tally.usual_response_ns);
        }
    }

    /// Records that events of any CPU before this point were lost.
    pub fn lost(&mut self) {
        self.threads.values_mut().for_each(Thread::lose);
        self.requests.lost();
        if !self.occupants_are_given {
            self.occupants.forget();
        }
    }

    /// Calls so far that asked for a policy, CPUs or locked memory and were refused.
    pub fn refused(&mut self) -> &mut Vec<Refused> {
        &mut self.requests.refused
    }

    /// The usual activation of a thread; `None` while too few are known.
    pub fn usual(&self, pid: i32) -> Option<Usual> {
        self.threads.get(&pid)?.tally.usual()
    }

    /// IDs of all threads so far that have not ended.
    pub fn alive(&self) -> impl Iterator<Item = i32> {
        self.threads.iter().filter(|(_, thread)| thread.ended_ns.is_none()).map(|(pid, _)| *pid)
    }

    /// Adds a thread that may never have made a system call; it was there at `seen_ns`.
    pub fn add(&mut self, pid: i32, seen_ns: u64) {
        if self.threads.len() < MOST_THREADS {
            let settings = &self.settings;
            self.threads.entry(pid).or_insert_with(|| Thread::new(pid, seen_ns, settings));
        } else if self.left_out.len() < MOST_THREADS && !self.threads.contains_key(&pid) {
            self.left_out.insert(pid);
        }
    }

    /// Number of threads beyond the most that are watched, or at least so many; `None` if there were none.
    pub fn left_out(&self) -> Option<u64> {
        Some(self.left_out.len() as u64).filter(|n| *n > 0)
    }

    /// Each thread so far: its ID, the histogram of its response times, and the number of late activations.
    pub fn progress(&self) -> impl Iterator<Item = (i32, &punctual_model::Histogram, u64)> {
        self.threads.iter().map(|(pid, thread)| (*pid, &thread.tally.samples.histogram, thread.tally.thread.late))
    }

    /// IDs of the threads whose wait is still not known.
    pub fn undecided(&self) -> Vec<i32> {
        self.threads.iter().filter(|(_, thread)| thread.wait.is_none()).map(|(pid, _)| *pid).collect()
    }

    /// Chooses the wait of one of [`WatchedThreads::undecided`], at the end; returns its activations.
    pub fn settle(&mut self, pid: i32) -> Vec<Finished> {
        let mut finished = Vec::new();
        if let Some(thread) = self.threads.get_mut(&pid) {
            thread.choose_now(pid, &self.offsets, &self.settings, &mut finished);
        }
        self.count(&mut finished);
        finished
    }

    /// The results of the threads with activations, those of the highest priority and rate first; the number of other
    /// threads; and the chain. Events are known up to `at_ns`. `is_meant` says whether a thread of this name is meant,
    /// `is_awake` whether one did not sleep at the end.
    pub fn finish(
        mut self,
        at_ns: u64,
        is_meant: impl Fn(&str) -> bool,
        is_awake: impl Fn(i32) -> bool,
    ) -> (Vec<ThreadResult>, u64, Option<ChainRecord>) {
        let threads = std::mem::take(&mut self.threads);
        let (mut results, mut inactive) = (Vec::new(), 0);
        for (pid, mut thread) in threads {
            let name = self.names.get(&pid).cloned().unwrap_or_else(|| format!("thread {pid}"));
            if !is_meant(&name) {
                continue;
            }
            thread.tally.finish();
            let (cpu, measured) = (thread.tally.cpu(), (self.settings.since_ns, self.settings.until_ns));
            thread.account.take(Phase::Ended, cpu, at_ns, &self.occupants, measured);
            let open = thread.open(at_ns, &self.offsets, &self.settings, is_awake(pid));
            if thread.tally.thread.activations > 0 || open.is_some() {
                results.push(self.result(pid, name, thread, open));
            } else {
                inactive += 1;
            }
        }
        let rank = |one: &ThreadResult| (one.priority, std::cmp::Reverse(one.thread.activations), one.thread.tid);
        results.order_by_key(rank);
        (results, inactive, self.chain.map(Chain::record))
    }

    fn result(&self, pid: i32, name: String, thread: Thread, open: Option<Open>) -> ThreadResult {
        let Thread { wait, mut tally, ended_ns, priority, track, changes, account, .. } = thread;
        let counted = open.filter(|open| open.kind != OpenKind::Silence);
        counted.iter().for_each(|open| tally.take_open(open));
        let since = self.settings.since_ns;
        let is_sample = |open: &Open| self.settings.sample == WatchSample::Response || !open.has_run;
        let censored = counted.filter(is_sample).map(|open| Censored {
            // Released before the first measured activation.
            cycle: if open.due_ns < since { -1 } else { i64::try_from(tally.cycles).unwrap_or(i64::MAX) },
            at_least_ns: open.at_least_ns,
        });
        let (worst, episodes) = tally.samples.finish();
        let Bounded { at_least, at_most } = tally.bounded();
        let period = tally.period.result();
        let named = |pid: i32| match pid {
            0 => "idle".to_owned(),
            pid => self.names.get(&pid).cloned().unwrap_or_else(|| format!("thread {pid}")),
        };
        let wakers = CountedName::most_frequent(tally.wakers.iter().map(|(pid, n)| (named(*pid), *n)), MOST_WAKERS);
        let known = &self.packets.known;
        let device = |index: u16| known.devices.get(usize::from(index)).cloned().unwrap_or_default();
        let carrier = |carrier: Carrier| match carrier {
            Carrier::Interrupt(number) => known.owner_name(Some(Context::Interrupt(number)), 0),
            Carrier::Thread(pid) => named(pid),
            Carrier::Sender(pid) => format!("the call of {}", named(pid)),
            Carrier::OtherCpu => "another CPU".to_owned(),
            Carrier::Softirq => "a softirq".to_owned(),
        };
        let packets = std::mem::take(&mut tally.packets).result(device, carrier, MOST_WAKERS);
        let sleeping = |(sleeping, sum): (&Sleeping, &Sum)| {
            let name = match sleeping {
                Sleeping::In(call) => call.text(),
                Sleeping::Fault => "page fault".to_owned(),
                Sleeping::Stopped => "stopped by a signal or a debugger".to_owned(),
                Sleeping::Elsewhere => "outside of system calls".to_owned(),
            };
            (name, *sum)
        };
        let after = |at: u64| format!("after {:.3} s", at.saturating_sub(since) as f64 / 1e9);
        let stopped = match track.doing() {
            Doing::Stopped(at) if open.is_none() => Some(format!("stopped {} by a signal or a debugger", after(at))),
            _ => None,
        };
        let ended = ended_ns.map(|at| format!("ended {}", after(at))).or(stopped);
        let open = open.map(|open| OpenActivation {
            kind: open.kind,
            at_least: Span(open.at_least_ns),
            doing: doing(track.doing(), named),
        });
        let change = |(at_ns, from, to): (u64, i32, i32)| {
            let at = Span(at_ns.checked_sub(since)?);
            // A program that begins raises its priority.
            let is_beginning = at < SettingChange::BEGINNING && to < from;
            (!is_beginning).then(|| SettingChange { at, from: priority_text(from), to: priority_text(to) })
        };
        let wait_text = match wait {
            // Programs that compute the instant from a length of time, like Python's time.sleep.
            Some(wait) if wait.is_until_instant() && tally.is_relative() == Some(true) => {
                format!("{} for a length of time", wait.name())
            }
            wait => wait.map(Call::text).unwrap_or_default(),
        };
        if period.is_none() {
            tally.thread.jitter = punctual_model::Histogram::default();
        }
        let record = WatchedThread {
            tid: pid.unsigned_abs(),
            name,
            cpu: tally.cpu(),
            wait: wait_text,
            period,
            deadline: tally.deadline().filter(|_| period.is_some() || self.settings.deadline.is_some()),
            wakers,
            packets,
            response_at_least: at_least,
            response_at_most: at_most,
            preempted_by: times(tally.preempted_by.iter().map(|(pid, sum)| (named(*pid), *sum)), MOST_WAKERS),
            phases: tally.phases.take().map(|phases| phases.finish(&self.marks)),
            account: Some(self.accounted(&account, wait, named)),
            blocked_in: times(tally.blocked_in.iter().map(sleeping), MOST_CALLS),
            changes: changes.into_iter().filter_map(change).collect(),
            timer_slack: track.slack_ns().map(Span),
            is_relative: tally.is_relative(),
            ended,
            open,
            ..std::mem::take(&mut tally.thread)
        };
        ThreadResult {
            held_ns: (!self.occupants.has_gaps()).then_some(account.held),
            limited: self.occupants.limited(&account),
            thread: record,
            slices: std::mem::take(&mut tally.samples.slices),
            seconds: std::mem::take(&mut tally.samples.seconds),
            worst,
            episodes,
            lost: tally.lost,
            first_release_ns: tally.first_release_ns.unwrap_or(since),
            last_end_ns: tally.last_end_ns,
            censored,
            priority: priority.unwrap_or(i32::MAX),
        }
    }

    /// The account of a thread that waits in `wait`; `named` names the others.
    fn accounted(&self, account: &Account, wait: Option<Call>, named: impl Fn(i32) -> String) -> TimeAccount {
        let culprit = |(culprit, sum): (&(i32, i32), &Sum)| match *culprit {
            (0, _) => ("idle".to_owned(), *sum),
            (pid, USUAL_PRIORITY) => (named(pid), *sum),
            (pid, priority) => (format!("{} ({})", named(pid), priority_text(priority)), *sum),
        };
        let are_named = self.occupants.names(account);
        let interrupts = self.interrupts.as_ref().map(|names| {
            let by = account.interrupts.iter().map(|(context, sum)| (names.owner_name(Some(*context), 0), *sum));
            InterruptTime { total: Span(account.interrupted), by: times(by, MOST_WAKERS) }
        });
        let Slept { on_purpose, for_locks, for_memory, uninterruptible, stopped, for_others, unknown } =
            account.slept(wait);
        TimeAccount {
            running: Span(account.running),
            interrupts,
            waiting_for_cpu: Span(account.waiting),
            throttled: None,
            waited_for: times(account.culprits.iter().filter(|_| are_named).map(culprit), MOST_WAKERS),
            asleep: Span(account.asleep),
            asleep_for: Some(SleepTime {
                on_purpose: Span(on_purpose),
                locks: Span(for_locks),
                locks_of: times(account.locks.iter().map(|(pid, sum)| (named(*pid), *sum)), MOST_WAKERS),
                memory: Span(for_memory),
                uninterruptible: Span(uninterruptible),
                stopped: Span(stopped),
                others: Span(for_others),
                unknown: Span(unknown),
            }),
            unknown: Some(Span(account.unknown)),
        }
    }
}

/// A priority of the kernel as users write it: `priority 80`, `nice 10`.
pub(crate) fn priority_text(priority: i32) -> String {
    match priority {
        DEADLINE_PRIORITY => "deadline".to_owned(),
        ..100 => format!("priority {}", 99 - priority),
        100.. => format!("nice {}", priority - 120),
    }
}

/// Activity of a thread, as text; `named` names other threads.
fn doing(doing: Doing, named: impl Fn(i32) -> String) -> String {
    match doing {
        Doing::Unknown => "its state is unknown".to_owned(),
        Doing::Runs(None) => "runs".to_owned(),
        Doing::Runs(Some(call)) => format!("runs in {}", call.text()),
        Doing::Ready(0) => "waits for a CPU".to_owned(),
        Doing::Ready(by) => format!("waits for a CPU, taken by {}", named(by)),
        Doing::Stopped(_) => "stopped by a signal or a debugger".to_owned(),
        Doing::Sleeps(call) => format!("sleeps in {}", call.text()),
        Doing::Faults => "sleeps in a page fault".to_owned(),
        Doing::SleepsElsewhere => "sleeps outside of system calls".to_owned(),
    }
}

/// Priority of normal threads, nice 0, as the kernel counts.
const USUAL_PRIORITY: i32 = 120;

#[cfg(test)]
mod tests;
