//! Explanation of late activations: another trace holds what happened around them, and stops when one is seen.

use super::handover::Waiting;
use crate::on_spike::OnSpike;
use crate::trace::{Decoder, Export, pages_since};
use analysis::explain::{self, CodeSample, Event, Facts, Inside, Subject, Totals, Trace, WaitsFor, What, flags};
use analysis::watch::{Activation, Release, Usual};
use code::{RawSample, Resolver};
use host::{KernelSymbols, MappedCode};
use model::{ExplainRecord, Explanation, MonoTime, NotCovered, OnSpikeRecord, Owner, Policy, SampledAt, Span};
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender};

/// Timer slack of a normal thread, ns, where the start of its timer is not in the trace.
const SLACK_NS: u64 = 50_000;

/// Time before the first release that is kept of a trace, ns: for the usual length of each phase.
const BEFORE_NS: u64 = 50_000_000;

/// A late activation with what is known of its thread.
#[derive(Debug)]
pub(super) struct LateActivation {
    pub(super) pid: i32,
    pub(super) name: String,
    pub(super) activation: Activation,
    pub(super) usual: Usual,
    /// Priority of the thread, as the kernel counts.
    pub(super) priority: i32,
    /// Priorities of the threads that woke it.
    pub(super) priorities: HashMap<i32, i32>,
    /// Names of the files behind its descriptors.
    pub(super) files: HashMap<u64, String>,
    pub(super) has_cpu_quota: bool,
    pub(super) throttled_ns: Option<u64>,
    /// Samples of its stack meanwhile, with the files of its process.
    pub(super) samples: Vec<(SampledAt, RawSample)>,
    pub(super) mapped: Arc<Vec<MappedCode>>,
}

/// What was traced around some late activations.
#[derive(Debug)]
pub(super) struct Stopped {
    /// Pages of each CPU of the trace of the surroundings, of this size, and whether some are left out.
    pub(super) pages: Vec<Vec<u8>>,
    pub(super) page_bytes: usize,
    pub(super) is_cut: bool,
    /// Start and end of that trace, `CLOCK_MONOTONIC`, ns.
    pub(super) armed_ns: u64,
    pub(super) frozen_ns: u64,
    /// Events of the watched threads, with their CPUs, in the order of time.
    pub(super) own: Vec<(u32, Event)>,
    pub(super) names: HashMap<i32, String>,
    pub(super) late: Vec<LateActivation>,
}

impl Waiting for Stopped {
    /// Its longest response time, ns.
    fn rank(&self) -> u64 {
        self.late.iter().map(|late| late.activation.response_ns()).max().unwrap_or(0)
    }

    fn bytes(&self) -> usize {
        let samples = self.late.iter().flat_map(|late| &late.samples).map(|(_, sample)| sample.stack.len());
        let names = self.names.len() * size_of::<(i32, String)>();
        let own = self.own.len() * size_of::<(u32, Event)>();
        self.pages.iter().map(Vec::capacity).sum::<usize>() + samples.sum::<usize>() + names + own
    }

    /// Keeps the pages that explain.
    fn shrink(&mut self) {
        if self.is_cut {
            return;
        }
        self.is_cut = true;
        let since_ns = explained_since_ns(self.late.iter().map(|late| &late.activation));
        self.pages.iter_mut().for_each(|pages| *pages = pages_since(pages, self.page_bytes, since_ns).to_vec());
    }
}

/// The state of the explaining thread.
pub(super) struct Explaining {
    /// The ID of this thread, once it runs.
    pub(super) tid: Arc<AtomicU32>,
    /// Takes back the memory of what is explained.
    pub(super) used: Sender<Vec<Vec<u8>>>,
    pub(super) decoder: Decoder,
    pub(super) facts: Facts,
    pub(super) started: MonoTime,
    pub(super) keep: usize,
    pub(super) symbols: OnceCell<KernelSymbols>,
    pub(super) export: Option<Export>,
    pub(super) on_spike: Option<OnSpike>,
    /// Response time, ns, above which an activation would still be kept.
    pub(super) floor_ns: Arc<AtomicU64>,
    pub(super) totals: Totals,
    pub(super) worst: Vec<Explanation>,
    pub(super) not_covered: u64,
    pub(super) latest_not_covered: Option<NotCovered>,
    pub(super) events: u64,
}

impl Explaining {
    /// Explains until no more arrives. Also returns the record of the command that runs at late activations.
    pub(super) fn run(mut self, taken: &Receiver<Stopped>) -> (Explaining, Option<OnSpikeRecord>, Option<u64>) {
        // The watched program comes first, and all others.
        let _ = sys::sched::set_policy(0, Policy::Idle);
        self.tid.store(sys::thread::id(), Relaxed);
        let before = sys::usage::thread().ok();
        // Functions and lines of the watched programs.
        let mut code = Resolver::default();
        while let Ok(stopped) = taken.recv() {
            self.explain(&stopped, &mut code);
            // Nothing is lost if the reader does not want them any more.
            let _ = self.used.send(stopped.pages);
        }
        let used = before.zip(sys::usage::thread().ok()).map(|(before, after)| sys::usage::since(&before, &after));
        let ran = self.on_spike.take().map(OnSpike::finish);
        (self, ran, used.map(|used| used.user_us + used.system_us))
    }

    fn explain(&mut self, stopped: &Stopped, code: &mut Resolver) {
        let since = explained_since_ns(stopped.late.iter().map(|late| &late.activation));
        let mut trace = self.decoder.begin(stopped.pages.len());
        for (cpu, pages) in stopped.pages.iter().enumerate() {
            let recent = pages_since(pages, stopped.page_bytes, since);
            self.events += self.decoder.read(&mut trace, cpu, recent).events;
            if let Some(events) = trace.cpus.get_mut(cpu) {
                events.is_cut |= stopped.is_cut || recent.len() < pages.len();
            }
        }
        forget_before(&mut trace, since);
        add(&mut trace, &stopped.own);
        trace.names.extend(stopped.names.iter().map(|(pid, name)| (*pid, name.clone())));
        name_others(&mut trace);
        trace.imply_switches();
        for late in &stopped.late {
            self.one(stopped, &trace, late, code);
        }
    }

    fn one(&mut self, stopped: &Stopped, trace: &Trace, late: &LateActivation, code: &mut Resolver) {
        let one = &late.activation;
        let facts = Facts {
            armed_ns: stopped.armed_ns,
            frozen_ns: stopped.frozen_ns,
            has_cpu_quota: late.has_cpu_quota,
            throttled_ns: late.throttled_ns,
            ..self.facts
        };
        let subject = Subject {
            pid: late.pid,
            waits_for: waits_for(trace, late.pid, one),
            cpu: one.cpu,
            priority: late.priority,
            due_ns: one.release_ns,
            woke_ns: one.user_ns,
            slack_ns: if late.priority >= 100 { SLACK_NS } else { 0 },
        };
        let samples: Vec<CodeSample> = late
            .samples
            .iter()
            .map(|(kind, sample)| CodeSample {
                at_ns: sample.at_ns,
                kind: *kind,
                stack: code.stack(sample, &late.mapped),
            })
            .collect();
        let inside = Inside {
            activation: one,
            usual: &late.usual,
            priorities: &late.priorities,
            files: &late.files,
            samples: &samples,
        };
        let symbols = |address| self.symbols.get_or_init(KernelSymbols::read).name(address);
        let due_ns = one.release_ns.cast_signed().wrapping_sub_unsigned(self.started.0);
        let Some(explanation) = explain::explain_activation(trace, &subject, &inside, &facts, &symbols) else {
            self.not_covered(NotCovered { cpu: one.cpu, due_ns, latency: Span(one.response_ns()) });
            return;
        };
        let thread = Some(Owner { name: late.name.clone(), pid: Some(late.pid) });
        let explanation = Explanation { cycle: one.index.cast_signed(), due_ns, thread, ..explanation };
        if let Some(export) = &mut self.export {
            export.write(&explanation, &subject, trace, &stopped.pages, &symbols);
        }
        if let Some(on_spike) = &mut self.on_spike {
            on_spike.start_for(&explanation);
        }
        self.totals.add(&explanation);
        let at = self.worst.partition_point(|kept| kept.latency >= explanation.latency);
        self.worst.insert(at, explanation);
        if self.worst.len() > self.keep
            && let Some(dropped) = self.worst.pop()
            && let Some(export) = &mut self.export
        {
            export.remove(&dropped);
        }
        if let Some(least) = self.keep.checked_sub(1).and_then(|last| self.worst.get(last)) {
            self.floor_ns.store(least.latency.ns(), Relaxed);
        }
    }

    /// Counts a late activation that no trace covers.
    pub(super) fn not_covered(&mut self, one: NotCovered) {
        self.not_covered += 1;
        let latest = self.latest_not_covered.take().filter(|latest| latest.latency >= one.latency);
        self.latest_not_covered = latest.or(Some(one));
    }

    /// The record of all explanations.
    pub(super) fn record(mut self, above: Option<Span>, missing: Vec<String>, used_us: Option<u64>) -> ExplainRecord {
        let mut missing = missing;
        missing.extend(self.export.as_mut().and_then(Export::failure));
        let floor = self.floor_ns.load(Relaxed);
        ExplainRecord {
            above,
            above_at_end: Some(Span(floor)).filter(|_| floor > 0).or(above),
            spikes: self.totals.explained + self.not_covered,
            explained: self.totals.explained,
            not_covered: self.not_covered,
            latest_not_covered: self.latest_not_covered,
            events: self.events,
            explaining_us: used_us,
            late: Span(self.totals.late_ns),
            evidence_ns: self.totals.evidence_ns,
            missing,
            causes: self.totals.causes(),
            worst: self.worst,
            ..ExplainRecord::default()
        }
    }
}

/// Time from which events explain these activations, ns.
pub(super) fn explained_since_ns<'a>(late: impl Iterator<Item = &'a Activation>) -> u64 {
    late.map(|one| one.release_ns).min().unwrap_or(0).saturating_sub(BEFORE_NS)
}

/// Whether the scheduler leaves out the time that a hypervisor took: the kernel is built so, and the hypervisor, which
/// took `steal_ms` so far, tells.
pub(super) fn counts_stolen(steal_ms: Option<u64>) -> bool {
    let is_built_in = |text: &str| text.lines().any(|line| line == "CONFIG_PARAVIRT_TIME_ACCOUNTING=y");
    let config = || host::kernel_config(&host::HostFs::here());
    steal_ms.is_some_and(|steal_ms| steal_ms > 0) && config().is_some_and(|(_, text)| is_built_in(&text))
}

/// What its wake-up waited for: a timer only if that timer is the last one that the thread started before. A timer that
/// the kernel starts anew in the wait itself belongs to the next one.
fn waits_for(trace: &Trace, pid: i32, one: &Activation) -> WaitsFor {
    let starts = trace.cpus.iter().flat_map(|cpu| &cpu.events).filter(|event| {
        let is_thread = event.flags & (flags::HARDIRQ | flags::SOFTIRQ) == 0;
        let is_own = event.pid == pid && is_thread && event.at_ns <= one.user_ns;
        is_own && matches!(event.what, What::TimerStart { .. })
    });
    let last = starts.map(|event| event.at_ns).max();
    match one.release {
        Release::Timer if last.is_some() && last == one.timer_started_ns => WaitsFor::Timer,
        _ => WaitsFor::Device,
    }
}

/// Leaves out what was long before: it explains nothing, and looking through it takes time.
fn forget_before(trace: &mut Trace, since_ns: u64) {
    for cpu in &mut trace.cpus {
        let old = cpu.events.partition_point(|event| event.at_ns < since_ns);
        cpu.is_cut |= old > 0;
        cpu.events.drain(..old);
    }
}

/// Names the threads that ran all the time, and therefore have no switch in the trace.
fn name_others(trace: &mut Trace) {
    let current = trace.cpus.iter().flat_map(|cpu| cpu.events.iter().map(|event| event.pid));
    let unnamed: BTreeSet<i32> = current.filter(|pid| *pid > 0 && !trace.names.contains_key(pid)).collect();
    let named = unnamed.into_iter().filter_map(|pid| {
        let tid = pid.unsigned_abs();
        Some((pid, host::name_of_thread(tid, tid)?.trim().to_owned()))
    });
    trace.names.extend(named.collect::<Vec<_>>());
}

/// Adds the events of the watched threads to the trace of the surroundings. Both have the switches and the changes of
/// priorities.
fn add(trace: &mut Trace, own: &[(u32, Event)]) {
    let is_new = |event: &Event| !matches!(event.what, What::Switch { .. } | What::Inherit { .. });
    for (cpu, event) in own.iter().filter(|(_, event)| is_new(event)) {
        if let Some(events) = usize::try_from(*cpu).ok().and_then(|cpu| trace.cpus.get_mut(cpu)) {
            // Not before the surroundings begin: nothing else is known of that time.
            if events.events.first().is_some_and(|first| first.at_ns <= event.at_ns) {
                events.events.push(*event);
            }
        }
    }
    trace.cpus.iter_mut().for_each(|cpu| cpu.events.sort_by_key(|event| event.at_ns));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn late(release_ns: u64, end_ns: u64, idle_ns: u64) -> LateActivation {
        let activation = Activation {
            index: 0,
            release: Release::Interrupt,
            release_ns,
            start_ns: release_ns,
            user_ns: release_ns,
            end_ns,
            cpu: 0,
            priority: None,
            run_ns: 0,
            user_run_ns: 0,
            calls: BTreeMap::new(),
            waits: vec![],
            blocks: vec![],
            faults: 0,
            migrations: 0,
            timer_started_ns: None,
            hops: vec![],
            idle_ns,
        };
        LateActivation {
            pid: 1,
            name: String::new(),
            activation,
            usual: Usual::default(),
            priority: 120,
            priorities: HashMap::new(),
            files: HashMap::new(),
            has_cpu_quota: false,
            throttled_ns: None,
            samples: vec![],
            mapped: Arc::default(),
        }
    }

    #[test]
    fn a_trace_ranks_as_the_longest_response_in_it() {
        let stopped = |late| Stopped {
            pages: vec![],
            page_bytes: 4096,
            is_cut: false,
            armed_ns: 0,
            frozen_ns: 0,
            own: vec![],
            names: HashMap::new(),
            late,
        };
        assert_eq!(stopped(vec![late(100, 500, 0), late(100, 900, 100), late(800, 1000, 0)]).rank(), 700);
        assert_eq!(stopped(vec![]).rank(), 0);
    }
}
