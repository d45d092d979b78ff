//! The thread that reads the activity of the watched threads, while they run.

mod look;

use super::handover::Handover;
use super::late::{LateActivation, Stopped};
use super::refused;
use super::stacks::Stacks;
use super::switches::Switches;
use super::targets::Targets;
use crate::observed::Observed;
use crate::trace::{Instance, PageSource, TraceError};
use punctual_analysis::explain::{Event, Inside};
use punctual_analysis::watch::{Activation, Finished, Release, Usual, WatchedThreads};
use punctual_ftrace::Decoder;
use punctual_host::CpuGroups;
use punctual_model::{MonoTime, Nice, Order, Policy, Span, ThreadProgress, ThreadState, ThrottledTime, Watch};
use punctual_store::ActivationRow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Interval of reading while late activations are explained: before the trace around them is overwritten.
const EXPLAINING_INTERVAL: Duration = Duration::from_millis(40);
/// The same otherwise.
const INTERVAL: Duration = Duration::from_millis(100);
/// Events younger than this, ns, wait for those of other CPUs.
const SETTLING_NS: u64 = 1_000_000;
/// Own pages of a CPU that are kept for explanations, bytes: as many as the kernel keeps of the surroundings.
const MOST_RECENT: usize = 4 << 20;
/// Time, ns, after a restart of the surroundings before an activation is covered.
const COVERAGE_MARGIN_NS: u64 = 100_000;
/// Late activations that are explained from one trace: each takes milliseconds of CPU time.
const MOST_AT_ONCE: usize = 5;
/// Pause after a stop of the trace as a multiple of the CPU time it took, except for an activation later than all
/// before: where most activations are late, stops take 4 % of a CPU. Time in which others ran is not its own: a fault
/// of the program meanwhile would hide the next ones.
const PAUSE: u64 = 25;

/// Time, ns, for which activations that are not over at the end are followed further: twice the longest of their
/// threads, within this range. Then they are open.
const FINISHING_NS: RangeInclusive<u64> = 1_000_000_000..=10_000_000_000;
/// Interval of looking for their ends.
const FINISHING_INTERVAL: Duration = Duration::from_millis(20);

/// State shared with the measuring cell.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) is_over: AtomicBool,
    /// End of the measured time, `CLOCK_MONOTONIC`, ns, once it is over.
    pub(super) until_ns: AtomicU64,
    /// Whether activations that are not over then are waited for.
    pub(super) is_finishing: AtomicBool,
    /// Whether all watched threads have ended.
    pub(super) has_ended: AtomicBool,
    pub(super) progress: Mutex<Vec<ThreadProgress>>,
    /// Activations that are to be kept and not written yet; `None`: none are kept.
    pub(super) rows: Option<Mutex<Vec<ActivationRow>>>,
    /// IDs of the watched threads.
    pub(super) tids: Mutex<Vec<u32>>,
}

/// The trace of the surroundings, while late activations are explained.
#[derive(Debug)]
pub(super) struct Surroundings {
    pub(super) instance: Instance,
    /// Decoder of its pages and of those of the watched threads.
    pub(super) decoder: Arc<Decoder>,
    pub(super) armed_ns: u64,
    /// Response time above which an activation is late, if given.
    pub(super) above: Option<Span>,
    /// Response time, ns, above which an explanation would still be kept.
    pub(super) floor_ns: Arc<AtomicU64>,
    /// The explaining thread.
    pub(super) explaining: Handover<Stopped>,
    /// Memory of what it has explained: new memory would cost more than the reading.
    pub(super) used: Receiver<Vec<Vec<u8>>>,
    /// Time until which the trace is not stopped again, and the latest activation so far, ns.
    pub(super) pause_until_ns: u64,
    pub(super) latest_ns: u64,
}

/// State of the reading thread.
pub(super) struct Reader {
    pub(super) watch: Watch,
    pub(super) instance: Instance,
    pub(super) decoder: Decoder,
    pub(super) threads: WatchedThreads,
    pub(super) shared: Arc<Shared>,
    pub(super) surroundings: Option<Surroundings>,
    pub(super) targets: Targets,
    /// The program that the cell has started, if it did.
    pub(super) program: Option<u32>,
    pub(super) started: MonoTime,
    pub(super) results: ReaderResults,
    /// Events whose neighbours on other CPUs may not be read yet.
    pending: Vec<(u32, Event)>,
    /// Latest pages of each CPU; only those just read unless late activations are explained.
    recent: Vec<Vec<u8>>,
    /// Facts of each thread, read once a second.
    facts: HashMap<i32, ThreadFacts>,
    next_look_ns: u64,
    /// The switches of all CPUs, where they can be traced.
    pub(super) switches: Option<Switches>,
    /// The packets, from the first softirq on that wakes a thread; or why they cannot be traced.
    pub(super) packets: Option<Result<Switches, TraceError>>,
    /// Samples of the stacks, where those are wanted.
    pub(super) stacks: Option<Stacks>,
    /// Time up to which all events are read, `CLOCK_MONOTONIC`, ns.
    pub(super) read_ns: u64,
    /// States of the threads that had not ended at the end.
    pub(super) states: BTreeMap<u32, ThreadState>,
    /// Each thread at its first and its latest look.
    pub(super) times: BTreeMap<u32, [Times; 2]>,
}

/// What the scheduler has counted of a thread up to an instant, ns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) at_ns: u64,
    pub(super) ran_ns: u64,
    pub(super) waited_ns: u64,
}

/// What `/proc` and the scheduler say about a thread.
#[derive(Debug, Clone)]
pub(super) struct ThreadFacts {
    pub(super) process: u32,
    pub(super) policy: Option<Policy>,
    /// The CPUs that it may use.
    pub(super) observed: Observed,
    groups: CpuGroups,
    /// Throttled time at the last two looks, ns.
    throttled_ns: [Option<u64>; 2],
    /// The same at the last look before the measured time, else at the first one; `None`: unknown, or it has changed
    /// its groups since.
    throttled_before_ns: Option<u64>,
}

impl ThreadFacts {
    /// The part of a wait for a CPU in which the thread was throttled; `held_ns` of it were beside an idle CPU, and
    /// `limited` by the limit of real-time threads.
    pub(super) fn throttled(
        &self,
        waiting: Span,
        held_ns: Option<u64>,
        limited: Option<ThrottledTime>,
    ) -> Option<ThrottledTime> {
        // Quotas of control groups hold for the threads of the fair scheduler only. Where groups have budgets of
        // real-time threads, those of other groups run on meanwhile.
        match self.policy? {
            Policy::Deadline(_) => return None,
            Policy::Fifo(_) | Policy::RoundRobin(_) => return limited.filter(|_| !self.groups.have_realtime_budget()),
            _ => {}
        }
        let counted_ns = self.throttled_ns[1]?.checked_sub(self.throttled_before_ns?)?;
        let at_most = Span(waiting.ns().min(counted_ns));
        let held_ns = if counted_ns == 0 { 0 } else { held_ns? };
        Some(ThrottledTime { at_least: at_most.min(Span(held_ns)), at_most })
    }
}

/// Results of the reading thread, apart from the activations.
#[derive(Debug, Default)]
pub(super) struct ReaderResults {
    pub(super) events: u64,
    pub(super) gaps: u64,
    pub(super) used_us: Option<u64>,
    /// Late activations that were not explained: the explaining thread was busy, or others were later.
    pub(super) not_taken: u64,
    /// The threshold of the first late activation, ns.
    pub(super) first_above_ns: Option<u64>,
    pub(super) latest_not_taken: Option<(u32, u64, u64)>,
}

impl ReaderResults {
    /// Counts late activations that are not explained; the latest of them comes first.
    fn pass_over(&mut self, n: usize, latest: Option<&Activation>) {
        self.not_taken += u64::try_from(n).unwrap_or(u64::MAX);
        let Some(one) = latest.filter(|_| n > 0) else { return };
        let largest = self.latest_not_taken.map_or(0, |(_, _, response)| response);
        if one.response_ns() > largest {
            self.latest_not_taken = Some((one.cpu, one.release_ns, one.response_ns()));
        }
    }
}

impl Reader {
    pub(super) fn new(
        watch: Watch,
        (instance, decoder): (Instance, Decoder),
        threads: WatchedThreads,
        shared: Arc<Shared>,
        surroundings: Option<Surroundings>,
        (targets, program): (Targets, Option<u32>),
        started: MonoTime,
    ) -> Reader {
        let n_cpus = instance.n_cpus();
        Reader {
            watch,
            instance,
            decoder,
            threads,
            shared,
            surroundings,
            targets,
            program,
            started,
            results: ReaderResults::default(),
            pending: Vec::new(),
            recent: vec![Vec::new(); n_cpus],
            facts: HashMap::new(),
            next_look_ns: 0,
            switches: None,
            packets: None,
            stacks: None,
            read_ns: 0,
            states: BTreeMap::new(),
            times: BTreeMap::new(),
        }
    }

    /// Reads until the cell is over.
    pub(super) fn run(mut self) -> Reader {
        // Without the permission, this thread keeps its policy and reads later.
        let _ = punctual_sys::sched::set_policy(0, Policy::Other(Nice::HIGHEST));
        let before = punctual_sys::usage::thread().ok();
        let interval = if self.surroundings.is_some() { EXPLAINING_INTERVAL } else { INTERVAL };
        while !self.shared.is_over.load(Acquire) {
            self.read(false);
            std::thread::sleep(interval);
        }
        self.finish();
        self.look();
        self.note_states();
        let used = before
            .zip(punctual_sys::usage::thread().ok())
            .map(|(before, after)| punctual_sys::usage::since(&before, &after));
        let names_us = self.stacks.as_ref().map_or(0, Stacks::names_us);
        self.results.used_us = used.map(|used| used.user_us + used.system_us + names_us);
        self
    }

    /// Reads to the end of the measured time, and on while activations of that time are not over.
    fn finish(&mut self) {
        let until_ns = self.shared.until_ns.load(Relaxed);
        self.threads.end(until_ns);
        self.read(false);
        self.settle();
        while self.shared.is_finishing.load(Relaxed) {
            self.read(false);
            let longest_ns = self.threads.unfinished(self.read_ns, |name| self.watch.is_meant(name));
            let Some(longest_ns) = longest_ns else { break };
            let limit_ns = longest_ns.saturating_mul(2).clamp(*FINISHING_NS.start(), *FINISHING_NS.end());
            if self.read_ns.saturating_sub(until_ns) > limit_ns {
                break;
            }
            std::thread::sleep(FINISHING_INTERVAL);
        }
        self.read(true);
        self.settle();
    }

    /// Chooses the waits that are still not known.
    fn settle(&mut self) {
        let undecided = self.threads.undecided();
        let settled = undecided.into_iter().flat_map(|pid| self.threads.settle(pid)).collect();
        self.completed(settled);
    }

    fn read(&mut self, is_last: bool) {
        let now = punctual_sys::clock::monotonic().0;
        self.read_ns = if is_last { now } else { now.saturating_sub(SETTLING_NS) };
        if now >= self.next_look_ns {
            self.look();
            // A program starts most of its threads at its beginning.
            let is_new = now < self.started.0 + Span::SECOND.ns();
            self.next_look_ns = now + if is_new { Span::SECOND.ns() / 10 } else { Span::SECOND.ns() };
        }
        let horizon = if is_last { u64::MAX } else { self.read_ns };
        let mut trace = self.decoder.begin(self.instance.n_cpus());
        trace.names = std::mem::take(&mut self.threads.names);
        trace.marks = std::mem::take(&mut self.threads.marks);
        let page_bytes = self.decoder.page_bytes();
        let most_recent = if self.surroundings.is_some() { MOST_RECENT.next_multiple_of(page_bytes) } else { 0 };
        for (cpu, pages) in self.recent.iter_mut().enumerate() {
            // Half of them at once: each time moves the rest.
            if pages.len() > 2 * most_recent {
                pages.drain(..pages.len() - most_recent);
            }
            let before = pages.len();
            if self.instance.drain(cpu, page_bytes, pages).is_err() {
                pages.truncate(before);
            }
            let new = pages.get(before..).unwrap_or_default();
            self.results.events += self.decoder.read(&mut trace, cpu, new).events;
        }
        self.threads.names = std::mem::take(&mut trace.names);
        self.threads.marks = std::mem::take(&mut trace.marks);
        if self.decoder.sees_interrupts() {
            self.threads.interrupts_are_traced(&mut trace);
        }
        let lost = trace.cpus.iter().filter(|cpu| cpu.is_cut || !cpu.lost_ns.is_empty()).count();
        if lost > 0 {
            self.results.gaps += u64::try_from(lost).unwrap_or(u64::MAX);
            self.pending.clear();
            self.threads.lost();
        }
        for (cpu, events) in (0..).zip(trace.cpus) {
            self.pending.extend(events.events.into_iter().map(|event| (cpu, event)));
        }
        Event::sort_of_cpus(&mut self.pending);
        let settled = self.pending.partition_point(|(_, event)| event.at_ns < horizon);
        let events: Vec<(u32, Event)> = self.pending.drain(..settled).collect();
        if let Some(stacks) = &mut self.stacks {
            stacks.drain();
        }
        let packets = self.packets.iter_mut().flatten();
        self.switches.iter_mut().chain(packets).for_each(|events| events.read(&mut self.threads));
        let finished = self.threads.take(&events);
        if self.packets.is_none() && self.threads.may_wait_for_packets().any(|pid| self.is_meant(pid)) {
            self.packets = Some(Switches::of_packets(&mut self.threads));
        }
        refused::examine(&mut self.threads);
        if let Some(surroundings) = &mut self.surroundings {
            let none = surroundings.explaining.pass_on(None);
            debug_assert!(none.is_empty(), "what had room has room");
        }
        self.completed(finished);
    }

    /// Passes on activations: late ones to the explaining thread, all to the file.
    fn completed(&mut self, finished: Vec<Finished>) {
        let mut late: Vec<&Finished> = finished.iter().filter(|one| self.is_late(one)).collect();
        if let Some(surroundings) = self.surroundings.as_ref().filter(|_| self.results.first_above_ns.is_none()) {
            // Of the thread with the longest usual response, as far as all are known by now.
            let known = finished.iter().filter(|one| one.usual_response_ns.is_some());
            self.results.first_above_ns = known.filter_map(|one| one.late_above_ns(surroundings.above)).max();
        }
        if !late.is_empty() {
            late.order_by_key(|one| Reverse(one.activation.response_ns()));
            self.explain(&late);
        }
        if let Some(rows) = &self.shared.rows {
            let meant = finished.iter().filter(|one| self.is_meant(one.pid));
            let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
            rows.extend(meant.map(|one| row(one, self.started)));
        }
    }

    fn is_meant(&self, pid: i32) -> bool {
        self.threads.names.get(&pid).is_some_and(|name| self.watch.is_meant(name))
    }

    /// Whether an activation is later than what is explained.
    fn is_late(&self, one: &Finished) -> bool {
        let Some(surroundings) = &self.surroundings else { return false };
        let above_ns =
            one.late_above_ns(surroundings.above).map(|above| above.max(surroundings.floor_ns.load(Relaxed)));
        above_ns.is_some_and(|above_ns| one.activation.response_ns() > above_ns) && self.is_meant(one.pid)
    }

    /// A late activation with all that its explanation needs; `None` while nothing is usual for its thread.
    fn late(&mut self, one: &Finished) -> Option<LateActivation> {
        let usual: Usual = self.threads.usual(one.pid)?;
        let name = self.threads.names.get(&one.pid).filter(|_| self.is_meant(one.pid))?.clone();
        let facts = self.facts.get(&one.pid);
        let process = facts.map_or(one.pid.unsigned_abs(), |facts| facts.process);
        let activations = one.behind.as_deref().into_iter().chain([&one.activation]);
        let blocks = || activations.clone().flat_map(|activation| &activation.blocks);
        let wakers = blocks().filter_map(|block| block.waker);
        let priorities = wakers.filter_map(|pid| Some((pid, kernel_priority(pid)?))).collect();
        let calls = blocks().filter_map(|block| block.call);
        let files =
            calls.filter_map(|call| Some((call.detail, punctual_host::open_file(process, call.detail)?))).collect();
        let groups = facts.map(|facts| facts.groups.clone()).unwrap_or_default();
        // From the look before the last one to now: it contains the activation unless that took seconds.
        let before = facts.and_then(|facts| facts.throttled_ns[0]);
        let stacks = self.stacks.as_mut();
        let sampled = stacks.map(|stacks| stacks.of(process, one.pid, &one.activation)).unwrap_or_default();
        let throttled_ns = groups.throttled_ns().zip(before).map(|(now, before)| now.saturating_sub(before));
        let inside = Inside {
            activation: one.activation.clone(),
            behind: one.behind.as_deref().cloned(),
            usual,
            priorities,
            files,
            marks: one.activation.marks.times(one.activation.release_ns, &self.threads.marks),
            samples: Vec::new(),
        };
        Some(LateActivation {
            pid: one.pid,
            name,
            priority: one.activation.priority.or_else(|| kernel_priority(one.pid)).unwrap_or(120),
            inside,
            has_cpu_quota: groups.have_quota(),
            throttled_ns: throttled_ns.filter(|_| groups.have_quota()),
            sampled,
        })
    }

    /// Stops the trace of the surroundings, passes it on with the late activations, and restarts it.
    fn explain(&mut self, all: &[&Finished]) {
        let most = all.first().map_or(0, |late| late.activation.response_ns());
        let frozen_ns = punctual_sys::clock::monotonic().0;
        let before = punctual_sys::usage::thread_cpu_time();
        let is_pause = (self.surroundings.as_ref())
            .is_none_or(|around| frozen_ns < around.pause_until_ns && most <= around.latest_ns);
        let some = if is_pause { &[] } else { &all[..all.len().min(MOST_AT_ONCE)] };
        let late: Vec<LateActivation> = some.iter().filter_map(|one| self.late(one)).collect();
        let Some(surroundings) = &mut self.surroundings else { return };
        surroundings.latest_ns = surroundings.latest_ns.max(most);
        if late.is_empty() {
            self.results.pass_over(all.len(), all.first().map(|one| &one.activation));
            return;
        }
        self.results.pass_over(all.len() - late.len(), all.get(late.len()).map(|one| &one.activation));
        let used = surroundings.used.try_recv();
        let mut pages = used.unwrap_or_else(|_| vec![Vec::new(); surroundings.instance.n_cpus()]);
        pages.iter_mut().for_each(Vec::clear);
        let _ = surroundings.instance.stop();
        for (cpu, pages) in pages.iter_mut().enumerate() {
            if surroundings.instance.drain(cpu, surroundings.decoder.page_bytes(), pages).is_err() {
                pages.clear();
            }
        }
        let armed_ns = surroundings.armed_ns;
        let _ = surroundings.instance.start();
        let restarted_ns = punctual_sys::clock::monotonic().0;
        surroundings.armed_ns = restarted_ns + COVERAGE_MARGIN_NS;
        let took_ns = punctual_sys::usage::thread_cpu_time().ns().saturating_sub(before.ns());
        surroundings.pause_until_ns = restarted_ns + took_ns.saturating_mul(PAUSE);
        let mut names = self.threads.names.clone();
        for waker in late.iter().flat_map(|one| one.inside.activation.blocks.iter().filter_map(|block| block.waker)) {
            if let Some(name) = punctual_host::name_of_thread(waker.unsigned_abs(), waker.unsigned_abs()) {
                names.entry(waker).or_insert(name);
            }
        }
        let decoder = Arc::clone(&surroundings.decoder);
        let mut stopped = Stopped { decoder, pages, is_cut: false, own: Vec::new(), armed_ns, frozen_ns, names, late };
        stopped.own = stopped.cut(&self.recent, false);
        for stopped in surroundings.explaining.pass_on(Some(stopped)) {
            self.results.pass_over(stopped.late.len(), stopped.late.first().map(|late| &late.inside.activation));
        }
    }

    /// The information that is missing because of traces beside that of the threads.
    pub(super) fn missing(&self) -> impl Iterator<Item = String> {
        let untraced = |err: &TraceError| format!("packets that released threads: {err}");
        let packets = self.packets.as_ref().and_then(|packets| match packets {
            Ok(packets) => packets.missing(),
            Err(err) => Some(untraced(err)),
        });
        self.switches.iter().filter_map(Switches::missing).chain(packets)
    }

    /// What was read last about a thread.
    pub(super) fn facts(&self, tid: u32) -> Option<&ThreadFacts> {
        self.facts.get(&i32::try_from(tid).ok()?)
    }
}

/// The row of an activation in a file.
fn row(one: &Finished, started: MonoTime) -> ActivationRow {
    let activation = &one.activation;
    ActivationRow {
        tid: one.pid.unsigned_abs(),
        activation: activation.index,
        released_by: match activation.release {
            Release::Timer => 0,
            Release::Thread(_) => 1,
            Release::Interrupt => 2,
            Release::Immediate => 3,
        },
        cpu: activation.cpu,
        release_ns: activation.release_ns.cast_signed().wrapping_sub_unsigned(started.0),
        latency_ns: activation.latency_ns(),
        run_ns: activation.run_ns,
        preempted_ns: activation.waited_ns(),
        blocked_ns: activation.blocked_ns(),
        response_ns: activation.response_ns(),
        page_faults: activation.faults,
        migrations: activation.migrations,
    }
}

/// Priority of a thread as the kernel counts (include/linux/sched/prio.h): lower is more.
fn kernel_priority(pid: i32) -> Option<i32> {
    punctual_sys::sched::known_policy(pid.unsigned_abs()).map(Policy::kernel_priority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_throttled_no_longer_than_its_groups_count() {
        let facts = |policy, before, now| ThreadFacts {
            process: 1,
            policy,
            observed: Observed::default(),
            groups: CpuGroups::default(),
            throttled_ns: [None, now],
            throttled_before_ns: before,
        };
        let other = Some(Policy::Other(Nice::default()));
        let [fifo, deadline] = ["fifo:50", "deadline:1ms/2ms/2ms"].map(|text| text.parse::<Policy>().ok());
        assert!(fifo.is_some() && deadline.is_some());
        const LIMITED: ThrottledTime = ThrottledTime { at_least: Span(3), at_most: Span(7) };
        for (facts, held_ns, expected) in [
            (facts(other, Some(10), Some(10)), None, Some((0, 0))),
            (facts(other, Some(10), Some(40)), Some(20), Some((20, 30))),
            (facts(other, Some(10), Some(40)), Some(90), Some((30, 30))),
            (facts(other, Some(10), Some(500)), Some(90), Some((90, 100))),
            (facts(other, Some(10), Some(40)), None, None),
            (facts(other, None, Some(40)), Some(20), None),
            (facts(other, Some(10), None), Some(20), None),
            (facts(fifo, Some(10), Some(40)), Some(20), Some((3, 7))),
            (facts(deadline, Some(10), Some(40)), Some(20), None),
            (facts(None, Some(10), Some(40)), Some(20), None),
        ] {
            let throttled = facts.throttled(Span(100), held_ns, Some(LIMITED));
            assert_eq!(throttled.map(|one| (one.at_least.ns(), one.at_most.ns())), expected, "{facts:?} {held_ns:?}");
        }
    }
}
