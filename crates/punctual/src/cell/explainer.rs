//! Explaining late wake-ups while a cell runs.
//!
//! A thread off the measured CPUs takes the frozen trace, lets it go on, and says what made them late.

mod kept;

use super::on_spike::OnSpike;
use crate::host::{self, KernelSymbols};
use crate::trace::{Decoder, Export, Instance, TraceError, Watched};
use analysis::explain::{self, Facts, Stages, Subject, Taker, What};
use kept::Kept;
use model::{
    Cell, ClockId, Explain, ExplainRecord, Explanation, Host, IrqLatency, Kernel, MonoTime, Nice, OnSpikeRecord,
    Policy, Schedule, Span,
};
use rt::{LogReader, Sample, SpikeWatch, sys};
use std::cell::OnceCell;
use std::io::{PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How long after the trace goes on a wake-up may be due to be covered: its timer is started before that.
const MARGIN: Span = Span(100_000);
/// How often the running trace is emptied, for what is said of every wake-up: before it is overwritten.
const OFTEN: Duration = Duration::from_millis(200);
/// The same where that is done on a measured CPU.
const SELDOM: Duration = Duration::from_secs(1);

/// Bytes of traces that are taken before they are explained, at most, where explaining would disturb what is measured.
const LATER: usize = 64 << 20;

/// A measured thread whose late wake-ups are explained.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) cpu: u32,
    /// Its id, gettid(2).
    pub(super) tid: u32,
    pub(super) policy: Policy,
    pub(super) slack: Span,
    /// Its due times.
    pub(super) schedule: Schedule,
    pub(super) late: LogReader,
}

/// What was explained, and how the command fared that runs at spikes.
type Found = (ExplainRecord, Option<OnSpikeRecord>);

/// The trace of a cell, before and while it is measured. Dropping it removes the trace.
#[derive(Debug)]
pub(super) struct Explainer {
    asked: Explain,
    watch: Arc<SpikeWatch>,
    is_over: Arc<AtomicBool>,
    facts: Facts,
    /// Whether the CPUs have idle states to tell apart.
    idle_states: bool,
    /// What ticks on the measured CPUs, if that is asked.
    witnesses: Vec<OwnedFd>,
    /// What runs at spikes.
    on_spike: Option<OnSpike>,
    /// Until it is started.
    ready: Option<(Instance, Option<Decoder>, PipeReader)>,
    /// From then on.
    thread: Option<JoinHandle<(Found, Instance)>>,
    /// At the end. Last, because it cannot be removed while a file of it is open.
    instance: Option<Instance>,
}

impl Explainer {
    /// Makes the trace, which does not run yet.
    ///
    /// # Errors
    /// Without tracefs, or the right to use it.
    pub(super) fn create(asked: Explain, kernel: &Kernel, host: &Host) -> Result<Explainer, TraceError> {
        let instance = Instance::create()?;
        let (marker, tracing_on) = instance.freezer()?;
        let (watch, bell) = SpikeWatch::new(marker, tracing_on).map_err(TraceError::Process)?;
        let taker = match &host.hypervisor {
            _ if kernel.is_virtual() => Taker::Nobody,
            Some(_) => Taker::Hypervisor,
            None => Taker::Firmware,
        };
        let has_cpu_quota = host.scheduling.cpu_quota_us.is_some_and(|us| us > 0);
        let facts = Facts { taker, has_cpu_quota, ..Facts::default() };
        let is_over = Arc::default();
        Ok(Explainer {
            asked,
            watch,
            is_over,
            facts,
            idle_states: !host.power.idle_states.is_empty(),
            witnesses: Vec::new(),
            on_spike: None,
            ready: Some((instance, None, bell)),
            thread: None,
            instance: None,
        })
    }

    /// Runs this at every spike that is explained.
    pub(super) fn tell(&mut self, on_spike: Option<OnSpike>) {
        self.on_spike = on_spike;
    }

    /// What the measured threads tell their late wake-ups to.
    pub(super) fn watch(&self) -> &Arc<SpikeWatch> {
        &self.watch
    }

    /// Turns on the events, of the threads with these ids. The kernel patches its code for that on all CPUs: so it is done
    /// before anything is measured.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn enable(&mut self, tids: &[u32]) -> Result<(), TraceError> {
        let Some((instance, decoder, _)) = &mut self.ready else { return Ok(()) };
        let pids: Option<Vec<i32>> = host::is_initial_pid_namespace()
            .then(|| tids.iter().map(|tid| i32::try_from(*tid).unwrap_or(-1)).collect());
        let enabled = instance.enable(Watched {
            pids: pids.as_deref(),
            stacks: self.asked.stacks,
            idle_states: self.idle_states,
        })?;
        self.facts.sees_page_faults = enabled.sees_page_faults();
        *decoder = Some(enabled);
        Ok(())
    }

    /// Begins to trace, and starts the thread that explains. It runs where the caller may run.
    ///
    /// # Errors
    /// When the trace or the thread cannot be started.
    pub(super) fn start(&mut self, cell: &Cell, started: MonoTime, measured: Vec<Measured>) -> Result<(), TraceError> {
        let has_own_cpu = sys::sched::affinity(0).is_ok_and(|mine| !mine.minus(&cell.cpus).is_empty());
        let Some((mut instance, Some(decoder), bell)) = self.ready.take() else { return Ok(()) };
        if let Some(period) = self.asked.witness {
            let ticks = measured.iter().map(|thread| sys::perf::tick(thread.cpu, period.ns()));
            self.witnesses = ticks.collect::<Result<_, _>>().map_err(TraceError::Witness)?;
            self.facts.witness_ns = Some(period.ns());
        }
        instance.start()?;
        let export = self.asked.export.as_deref().map(|dir| Export::new(dir, &instance)).transpose()?;
        let missing = std::mem::take(&mut instance.missing);
        let (first, end) = (cell.first_cycle(), cell.end_cycle());
        let watched = measured.iter().filter_map(|thread| {
            Some(explain::Watched {
                pid: i32::try_from(thread.tid).ok().filter(|_| host::is_initial_pid_namespace())?,
                schedule: thread.schedule,
                cycles: (first, end),
            })
        });
        let explaining = Explaining {
            stages: Stages::new(watched),
            is_cut: false,
            kept: Kept::new(self.asked.keep, missing),
            pages: vec![Vec::new(); instance.n_cpus()],
            later: (!has_own_cpu).then(Vec::new),
            instance,
            decoder,
            bell,
            watch: Arc::clone(&self.watch),
            is_over: Arc::clone(&self.is_over),
            facts: Facts { armed_ns: sys::clock::monotonic().plus(MARGIN).0, ..self.facts },
            stacks: self.asked.stacks,
            clock: cell.method.clock(),
            first_cycle: cell.first_cycle(),
            started,
            measured,
            symbols: OnceCell::new(),
            export,
            on_spike: self.on_spike.take(),
        };
        if let Some(above) = self.asked.above {
            self.set_threshold(above);
        }
        self.watch.arm();
        let thread = Builder::new().name("explainer".to_owned()).spawn(move || explaining.run());
        self.thread = Some(thread.map_err(TraceError::Process)?);
        Ok(())
    }

    /// Whether the threshold is still to be found.
    pub(super) fn wants_threshold(&self) -> bool {
        self.watch.above_ns() == i64::MAX
    }

    /// Sets the first threshold.
    pub(super) fn set_threshold(&self, above: Span) {
        self.watch.set_above_ns(i64::try_from(above.ns()).unwrap_or(i64::MAX));
    }

    /// Ends it, with what was found.
    pub(super) fn finish(&mut self) -> Option<Found> {
        self.witnesses.clear();
        self.is_over.store(true, Relaxed);
        self.watch.ring();
        let (found, instance) = self.thread.take()?.join().ok()?;
        self.instance = Some(instance);
        Some(found)
    }
}

impl Drop for Explainer {
    fn drop(&mut self) {
        self.finish();
    }
}

/// What the explaining thread holds.
struct Explaining {
    instance: Instance,
    decoder: Decoder,
    bell: PipeReader,
    watch: Arc<SpikeWatch>,
    is_over: Arc<AtomicBool>,
    facts: Facts,
    stacks: bool,
    clock: ClockId,
    first_cycle: u64,
    started: MonoTime,
    measured: Vec<Measured>,
    /// Of each CPU, since the trace began again.
    pages: Vec<Vec<u8>>,
    /// Whether older ones were dropped.
    is_cut: bool,
    stages: Stages,
    /// Traces that are explained when nothing is measured any more; `None` where there is a CPU to do it on meanwhile.
    later: Option<Vec<Taken>>,
    symbols: OnceCell<KernelSymbols>,
    /// Where each kept spike is written to, if that is asked.
    export: Option<Export>,
    /// What runs at each explained spike, if that is asked.
    on_spike: Option<OnSpike>,
    kept: Kept,
}

impl Explaining {
    fn run(mut self) -> (Found, Instance) {
        // Under load, whoever comes soon takes the next spike, too. Without the right to, it comes later.
        let _ = sys::sched::set_policy(0, Policy::Other(Nice::HIGHEST));
        if self.stacks && self.later.is_none() {
            self.symbols.get_or_init(KernelSymbols::read);
        }
        let before = sys::usage::thread().ok();
        while !self.is_over.load(Relaxed) {
            let patience = if self.later.is_some() { SELDOM } else { OFTEN };
            match sys::pipe::wait_readable(self.bell.as_fd(), patience) {
                Ok(true) if self.bell.read(&mut [0]).is_ok() && !self.is_over.load(Relaxed) => self.look(),
                Ok(false) => self.gather(),
                _ => {}
            }
        }
        // A trace that somebody has just stopped is looked at, too.
        if self.watch.disarm() {
            self.look();
        }
        self.gather();
        self.explain_later();
        let used = before.zip(sys::usage::thread().ok()).map(|(before, after)| sys::usage::since(&before, &after));
        self.kept.explaining_us = used.map(|used| used.user_us + used.system_us);
        let rest: Vec<_> = self.measured.iter_mut().map(|thread| taken(&mut thread.late)).collect();
        let lost: u64 = self.measured.iter().map(|thread| thread.late.lost()).sum();
        self.kept.not_covered(rest.iter().map(Vec::len).sum::<usize>() as u64 + lost);
        let measured = self.measured.iter().map(|thread| thread.cpu);
        let irq = measured.zip(self.stages.histograms()).filter(|(_, histogram)| histogram.n > 0);
        self.kept.irq = irq.map(|(cpu, histogram)| IrqLatency { cpu, histogram }).collect();
        if let Some(lost) = self.export.as_mut().and_then(Export::failure) {
            self.kept.missed(lost);
        }
        ((self.kept.finish(&self.watch), self.on_spike.map(OnSpike::finish)), self.instance)
    }

    /// Takes the frozen trace, lets it go on, and explains what is in it, now or later.
    fn look(&mut self) {
        self.kept.threshold(self.watch.above_ns());
        self.gather();
        let pages = std::mem::take(&mut self.pages);
        let is_cut = std::mem::take(&mut self.is_cut);
        let late = self.measured.iter_mut().map(|thread| taken(&mut thread.late)).collect();
        let (armed_ns, ahead_ns) = (self.facts.armed_ns, host::ahead_of_monotonic_ns(self.clock));
        let taken = Taken { pages, is_cut, late, armed_ns, ahead_ns };
        if !self.is_over.load(Relaxed) && self.instance.start().is_ok() {
            self.facts.armed_ns = sys::clock::monotonic().plus(MARGIN).0;
            self.watch.arm();
        }
        let Some(later) = &mut self.later else {
            self.pages = self.explain(taken);
            self.pages.iter_mut().for_each(Vec::clear);
            return;
        };
        self.pages = vec![Vec::new(); taken.pages.len()];
        later.push(taken);
        if later.iter().flat_map(|taken| &taken.pages).map(Vec::len).sum::<usize>() > LATER {
            self.explain_later();
        }
    }

    /// Takes what the trace holds by now, and looks at the timers in it. As much is kept as the kernel's own memory has room for.
    fn gather(&mut self) {
        self.stages.set_ahead_ns(host::ahead_of_monotonic_ns(self.clock));
        let (page_bytes, most) = (self.decoder.page_bytes(), self.instance.buffer_bytes());
        let mut timers = Vec::new();
        for (cpu, pages) in self.pages.iter_mut().enumerate() {
            let before = pages.len();
            if self.instance.drain(cpu, page_bytes, pages).is_err() {
                pages.clear();
            }
            self.decoder.timers(pages.get(before..).unwrap_or_default(), |event| timers.push(event));
            let surplus = pages.len().saturating_sub(most).next_multiple_of(page_bytes);
            if surplus > 0 {
                pages.drain(..surplus);
                self.is_cut = true;
            }
        }
        self.stages.take(&mut timers);
    }

    /// Explains what was taken so far.
    fn explain_later(&mut self) {
        for taken in self.later.as_mut().map(std::mem::take).unwrap_or_default() {
            self.explain(taken);
        }
    }

    /// Explains what is in a trace; returns its pages, to be used again.
    fn explain(&mut self, taken: Taken) -> Vec<Vec<u8>> {
        let Taken { pages: all, is_cut, late, armed_ns, ahead_ns } = taken;
        let mut trace = self.decoder.begin(all.len());
        for (cpu, pages) in all.iter().enumerate() {
            self.kept.events += self.decoder.read(&mut trace, cpu, pages).events;
        }
        trace.cpus.iter_mut().for_each(|cpu| cpu.is_cut |= is_cut);
        trace.imply_switches();
        let marks = trace.cpus.iter().flat_map(|cpu| &cpu.events).filter(|event| event.what == What::Mark);
        // Without the mark, nobody knows when the trace was stopped.
        let frozen_ns = marks.map(|event| event.at_ns).max().unwrap_or(0);
        let facts = Facts { armed_ns, frozen_ns, ..self.facts };
        let symbols = |address| self.symbols.get_or_init(KernelSymbols::read).name(address);
        for (thread, samples) in self.measured.iter().zip(late) {
            let Some(pid) = kernel_pid(thread, &trace) else {
                self.kept.not_covered(samples.len() as u64);
                continue;
            };
            for Sample { cycle, latency } in samples {
                let due_ns = thread.schedule.cycle(cycle).due.0.wrapping_add_signed(-ahead_ns);
                let subject = Subject {
                    pid,
                    cpu: thread.cpu,
                    priority: kernel_priority(thread.policy),
                    due_ns,
                    woke_ns: due_ns.saturating_add_signed(latency.0),
                    slack_ns: thread.slack.ns(),
                };
                let Some(explanation) = explain::explain(&trace, &subject, &facts, &symbols) else {
                    self.kept.not_covered(1);
                    continue;
                };
                let explanation = Explanation {
                    cycle: cycle.cast_signed().wrapping_sub_unsigned(self.first_cycle),
                    due_ns: due_ns.cast_signed().wrapping_sub_unsigned(self.started.0),
                    ..explanation
                };
                if let Some(export) = &mut self.export {
                    export.write(&explanation, &subject, &trace, &all, &symbols);
                }
                if let Some(on_spike) = &mut self.on_spike {
                    on_spike.tell(&explanation);
                }
                let dropped = self.kept.take(explanation);
                if let (Some(export), Some(dropped)) = (&mut self.export, dropped) {
                    export.remove(&dropped);
                }
            }
        }
        if let Some(above_ns) = self.kept.raised() {
            self.watch.set_above_ns(above_ns.max(self.watch.above_ns()));
        }
        all
    }
}

/// A trace as it was when a spike stopped it, and the spikes.
struct Taken {
    /// Of each CPU.
    pages: Vec<Vec<u8>>,
    /// Whether older ones were dropped.
    is_cut: bool,
    /// Of each measured thread.
    late: Vec<Vec<Sample>>,
    /// From when on the trace is whole, `CLOCK_MONOTONIC`, ns.
    armed_ns: u64,
    /// By how much the clock of the method is ahead of that one, ns.
    ahead_ns: i64,
}

fn taken(log: &mut LogReader) -> Vec<Sample> {
    let mut samples = Vec::new();
    log.drain(|sample| samples.push(sample));
    samples
}

/// The number of a thread in the trace. In a container it has another one: there it is known by its name.
fn kernel_pid(thread: &Measured, trace: &explain::Trace) -> Option<i32> {
    if host::is_initial_pid_namespace() {
        return i32::try_from(thread.tid).ok();
    }
    let name = format!("measured/{}", thread.cpu);
    trace.names.iter().find(|(_, known)| **known == name).map(|(pid, _)| *pid)
}

/// The priority of a policy as the kernel counts it (include/linux/sched/prio.h): lower is more.
fn kernel_priority(policy: Policy) -> i32 {
    match policy {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => 99 - priority.get().cast_signed(),
        Policy::Deadline(_) => -1,
        Policy::Other(nice) => 120 + nice.get(),
        Policy::Batch | Policy::Idle => 120,
    }
}
