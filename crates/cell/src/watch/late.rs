//! Explanation of late activations: another trace holds what happened around them, and stops when one is seen.

use super::handover::Waiting;
use super::interpreted::locked;
use super::stacks::Sampled;
use crate::on_spike::OnSpike;
use crate::worst_spikes::WorstSpikes;
use punctual_analysis::explain::{Case, CodeSample, Facts, Inside, Trace};
use punctual_code::{RawSample, Resolver};
use punctual_ftrace::{Decoder, Window};
use punctual_host::KernelSymbols;
use punctual_model::{ExplainRecord, MonoTime, NotCovered, OnSpikeRecord, Owner, Policy, SampledAt, Span};
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender};

/// A late activation with what is known of its thread.
#[derive(Debug, Default)]
pub(super) struct LateActivation {
    pub(super) pid: i32,
    pub(super) name: String,
    /// Priority of the thread, as the kernel counts.
    pub(super) priority: i32,
    /// The activation; its samples are not resolved yet.
    pub(super) inside: Inside,
    pub(super) has_cpu_quota: bool,
    pub(super) throttled_ns: Option<u64>,
    /// Samples of its stack meanwhile.
    pub(super) sampled: Sampled,
}

/// What was traced around some late activations.
#[derive(Debug)]
pub(super) struct Stopped {
    /// Decoder of all pages.
    pub(super) decoder: Arc<Decoder>,
    /// Pages of each CPU of the trace of the surroundings, and whether some are left out.
    pub(super) pages: Vec<Vec<u8>>,
    pub(super) is_cut: bool,
    /// Pages of each CPU of the trace of the watched threads, of the time of its activations.
    pub(super) own: Vec<Vec<u8>>,
    /// Start and end of that of the surroundings, `CLOCK_MONOTONIC`, ns.
    pub(super) armed_ns: u64,
    pub(super) frozen_ns: u64,
    pub(super) names: HashMap<i32, String>,
    pub(super) late: Vec<LateActivation>,
}

impl Stopped {
    /// Times of the events that explain its activations, ns.
    fn times_ns(&self) -> Range<u64> {
        Case::times_ns(self.late.iter().map(|late| &late.inside.activation))
    }

    /// Pages of these times.
    pub(super) fn cut(&self, pages: &[Vec<u8>], is_cut: bool) -> Vec<Vec<u8>> {
        Window::cut(&self.decoder, &self.times_ns(), pages, is_cut)
    }
}

impl Waiting for Stopped {
    /// Its longest response time, ns.
    fn rank(&self) -> u64 {
        self.late.iter().map(|late| late.inside.activation.response_ns()).max().unwrap_or(0)
    }

    fn bytes(&self) -> usize {
        let samples = self.late.iter().flat_map(|late| &late.sampled.samples).map(|(_, sample)| sample.stack.len());
        let names = self.names.len() * size_of::<(i32, String)>();
        let pages = self.pages.iter().chain(&self.own).map(Vec::capacity);
        pages.sum::<usize>() + samples.sum::<usize>() + names
    }

    /// Keeps the pages that explain.
    fn shrink(&mut self) {
        if self.is_cut {
            return;
        }
        self.pages = self.cut(&self.pages, false);
        self.is_cut = true;
    }
}

/// The state of the explaining thread.
pub(super) struct Explaining {
    /// The ID of this thread, once it runs.
    pub(super) tid: Arc<AtomicU32>,
    /// Takes back the memory of what is explained.
    pub(super) used: Sender<Vec<Vec<u8>>>,
    /// Set by a stop request: functions and lines are not looked up any more.
    pub(super) is_stopped: Arc<AtomicBool>,
    pub(super) facts: Facts,
    pub(super) started: MonoTime,
    pub(super) symbols: OnceCell<KernelSymbols>,
    pub(super) on_spike: Option<OnSpike>,
    /// Response time, ns, above which an activation would still be kept.
    pub(super) floor_ns: Arc<AtomicU64>,
    pub(super) kept: WorstSpikes,
    pub(super) events: u64,
}

impl Explaining {
    /// Explains until no more arrives. Also returns the record of the command that runs at late activations.
    pub(super) fn run(mut self, taken: &Receiver<Stopped>) -> (Explaining, Option<OnSpikeRecord>, Option<u64>) {
        // The watched program comes first, and all others.
        let _ = punctual_sys::sched::set_policy(0, Policy::Idle);
        self.tid.store(punctual_sys::thread::id(), Relaxed);
        let before = punctual_sys::usage::thread().ok();
        // Functions and lines of the watched programs.
        let mut code = Resolver::new(Arc::clone(&self.is_stopped));
        while let Ok(stopped) = taken.recv() {
            let pages = self.explain(stopped, &mut code);
            // Nothing is lost if the reader does not want them any more.
            let _ = self.used.send(pages);
        }
        let used = before
            .zip(punctual_sys::usage::thread().ok())
            .map(|(before, after)| punctual_sys::usage::since(&before, &after));
        let ran = self.on_spike.take().map(OnSpike::finish);
        (self, ran, used.map(|used| used.user_us + used.system_us))
    }

    /// Explains the late activations of a trace; returns its pages for reuse.
    fn explain(&mut self, mut stopped: Stopped, code: &mut Resolver) -> Vec<Vec<u8>> {
        let around = stopped.cut(&stopped.pages, stopped.is_cut);
        let window = Window { from_ns: stopped.times_ns().start, around, own: std::mem::take(&mut stopped.own) };
        let (trace, n_events) = window.trace(&stopped.decoder, |trace| {
            trace.names.extend(std::mem::take(&mut stopped.names));
            name_others(trace);
        });
        self.events += n_events;
        let symbols = |address| self.symbols.get_or_init(KernelSymbols::read).name(address);
        let (mut explained, mut not_covered) = (Vec::new(), Vec::new());
        for late in std::mem::take(&mut stopped.late) {
            let case = self.case(&stopped, &trace, late, code);
            let Some(explanation) = case.explain(&trace, &symbols) else {
                let latency = Span(case.end_ns().saturating_sub(case.subject.due_ns));
                not_covered.push(NotCovered { cpu: case.subject.cpu, due_ns: case.due_ns, latency });
                continue;
            };
            if let Some(on_spike) = &mut self.on_spike {
                on_spike.start_for(&explanation);
            }
            explained.push((case, explanation));
        }
        self.kept.take(&window, &trace, &symbols, explained);
        not_covered.into_iter().for_each(|one| self.kept.take_not_covered(one));
        if let Some(floor_ns) = self.kept.floor_ns() {
            self.floor_ns.store(floor_ns, Relaxed);
        }
        stopped.pages
    }

    fn case(&self, stopped: &Stopped, trace: &Trace, late: LateActivation, code: &mut Resolver) -> Case {
        let LateActivation { pid, name, priority, inside, has_cpu_quota, throttled_ns, sampled } = late;
        let (armed_ns, frozen_ns) = (stopped.armed_ns, stopped.frozen_ns);
        let facts = Facts { armed_ns, frozen_ns, has_cpu_quota, throttled_ns, ..self.facts };
        let mut made = sampled.made.as_deref().map(locked);
        made.iter_mut().for_each(|map| map.refresh());
        let resolved = |(kind, sample): &(SampledAt, RawSample)| CodeSample {
            at_ns: sample.at_ns,
            kind: *kind,
            stack: code.stack(sample, &sampled.mapped, made.as_deref()),
        };
        let read = sampled.frames.iter().map(|one| CodeSample {
            at_ns: one.at_ns,
            kind: if one.is_still { SampledAt::Asleep } else { SampledAt::Running },
            stack: one.frames.to_vec(),
        });
        let inside = Inside { samples: sampled.samples.iter().map(resolved).chain(read).collect(), ..inside };
        Case::of_activation(trace, Owner { name, pid: Some(pid) }, priority, inside, facts, self.started.0)
    }

    pub(super) fn record(self, above: Option<Span>, missing: Vec<String>, used_us: Option<u64>) -> ExplainRecord {
        let floor = self.floor_ns.load(Relaxed);
        ExplainRecord {
            above,
            above_at_end: Some(Span(floor)).filter(|_| floor > 0).or(above),
            events: self.events,
            explaining_us: used_us,
            ..self.kept.record(missing)
        }
    }
}

/// Whether the scheduler leaves out the time that a hypervisor took: the kernel is built so, and the hypervisor, which
/// took `steal_ms` so far, tells.
pub(super) fn counts_stolen(steal_ms: Option<u64>) -> bool {
    let is_built_in = |text: &str| text.lines().any(|line| line == "CONFIG_PARAVIRT_TIME_ACCOUNTING=y");
    let config = || punctual_host::kernel_config(&punctual_host::HostFs::here());
    steal_ms.is_some_and(|steal_ms| steal_ms > 0) && config().is_some_and(|(_, text)| is_built_in(&text))
}

/// Names the threads that ran all the time, and therefore have no switch in the trace.
fn name_others(trace: &mut Trace) {
    let current = trace.cpus.iter().flat_map(|cpu| cpu.events.iter().map(|event| event.pid));
    let unnamed: BTreeSet<i32> = current.filter(|pid| *pid > 0 && !trace.names.contains_key(pid)).collect();
    let named = unnamed.into_iter().filter_map(|pid| {
        let tid = pid.unsigned_abs();
        Some((pid, punctual_host::name_of_thread(tid, tid)?.trim().to_owned()))
    });
    trace.names.extend(named.collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::watch::{Activation, Release};

    fn late(release_ns: u64, end_ns: u64, idle_ns: u64) -> LateActivation {
        let mut activation = Activation::default();
        (activation.release, activation.release_ns, activation.end_ns) = (Release::Interrupt, release_ns, end_ns);
        (activation.start_ns, activation.user_ns, activation.idle_ns) = (release_ns, release_ns, idle_ns);
        let inside = Inside { activation, ..Inside::default() };
        LateActivation { pid: 1, priority: 120, inside, ..LateActivation::default() }
    }

    #[test]
    fn a_trace_ranks_as_the_longest_response_in_it() {
        let stopped = |late| Stopped {
            decoder: Arc::new(punctual_ftrace::testing::decoder()),
            pages: vec![],
            is_cut: false,
            own: vec![],
            armed_ns: 0,
            frozen_ns: 0,
            names: HashMap::new(),
            late,
        };
        assert_eq!(stopped(vec![late(100, 500, 0), late(100, 900, 100), late(800, 1000, 0)]).rank(), 700);
        assert_eq!(stopped(vec![]).rank(), 0);
    }
}
