//! Explanation of late wake-ups while a cell runs.
//!
//! One thread off the measured CPUs takes the frozen trace and restarts it; another one finds the causes.

mod analyzer;
mod results;
mod trace_queue;
mod trace_reader;

use super::on_spike::OnSpike;
use crate::trace::{Instance, PageSource, StackRequest, TraceError};
use analyzer::Analyzer;
pub(super) use analyzer::{kernel_pid, name_measured};
use punctual_analysis::explain::{Answered, Answers, Facts, Stages, Taker, WaitsFor, Watched as WatchedThread};
use punctual_ftrace::Decoder;
use punctual_model::{
    AnswerStages, CpuSet, Explain, ExplainRecord, Explanation, Host, IrqLatency, Kernel, MonoTime, NotCovered,
    OnSpikeRecord, OwnName, Policy, Schedule, Span, Task,
};
use punctual_rt::{LateReader, SpikeWatch};
use results::Results;
use std::cell::OnceCell;
use std::io::{self, PipeReader};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread::{Builder, JoinHandle};
use trace_queue::TraceQueue;
use trace_reader::{TraceReader, TraceStatistics};

/// Margin after a restart of the trace before a wake-up is covered: its timer is started earlier than its due time.
const COVERAGE_MARGIN: Span = Span(100_000);
/// Time before a late wake-up that is looked at, for the usual length of each phase: ns and periods, whichever is more.
const BEFORE_NS: u64 = 50_000_000;
const BEFORE_PERIODS: u64 = 20;

/// A measured thread whose late wake-ups are explained.
#[derive(Debug)]
pub(super) struct MeasuredThread {
    pub(super) cpu: u32,
    /// Its thread ID, gettid(2).
    pub(super) tid: u32,
    pub(super) policy: Policy,
    pub(super) slack: Span,
    /// Its due times.
    pub(super) schedule: Schedule,
    /// Its measured cycles.
    pub(super) cycles: Range<u64>,
}

/// One late wake-up, where they are passed on as they are explained.
#[derive(Debug, Clone)]
pub enum SpikeReport {
    /// Explained.
    Explained(Box<Explanation>),
    /// Not covered by a trace.
    NotCovered(NotCovered),
}

/// The explanations, and the record of the command that runs at spikes.
type Explained = (ExplainRecord, Option<OnSpikeRecord>);

/// The running threads: the one that takes traces, and the one that explains them. They end without a result if they
/// are never told what to do.
type Threads = (
    JoinHandle<Option<(TraceStatistics, Stages, Answers, Instance)>>,
    JoinHandle<Option<(Analyzer, Option<OnSpikeRecord>)>>,
);

/// What has begun before the due times are known: the trace, and both threads, which wait for what they are to do.
#[derive(Debug)]
struct Begun {
    instance: Instance,
    decoder: Decoder,
    wake_rx: PipeReader,
    has_own_cpu: bool,
    to_reader: Sender<TraceReader<Instance>>,
    to_analyzer: Sender<Analyzer>,
}

/// The trace of a cell, before and during the measurement. Dropping it removes the trace.
#[derive(Debug)]
pub(super) struct Explainer {
    request: Explain,
    watch: Arc<SpikeWatch>,
    is_over: Arc<AtomicBool>,
    facts: Facts,
    /// Whether the CPUs have idle states to tell apart.
    idle_states: bool,
    /// Perf ticks on the measured CPUs, if requested.
    witnesses: Vec<OwnedFd>,
    /// The command that runs at spikes.
    on_spike: Option<OnSpike>,
    /// The receiver of each spike in a measurement without an end: nothing is collected then.
    reports: Option<SyncSender<SpikeReport>>,
    /// `Some` until tracing starts.
    ready: Option<(Instance, Option<Decoder>, PipeReader)>,
    /// `Some` from the start of tracing until the due times are known.
    begun: Option<Begun>,
    /// `Some` once tracing has started.
    threads: Option<Threads>,
    /// `Some` at the end. The last field, because an instance cannot be removed while one of its files is open.
    instance: Option<Instance>,
}

impl Explainer {
    /// Creates the trace, stopped. Errors: without tracefs, or without permission to use it.
    pub(super) fn create(request: Explain, kernel: &Kernel, host: &Host) -> Result<Explainer, TraceError> {
        Explainer::create_in(Instance::create()?, request, kernel, host)
    }

    /// As [`Explainer::create`], for a measurement without an end: each spike goes to `reports`, or is dropped where it
    /// has no room, and the trace is small, because each stop reads all of it. Errors: as [`Explainer::create`].
    pub(super) fn create_endless(host: &Host, reports: SyncSender<SpikeReport>) -> Result<Explainer, TraceError> {
        /// Memory of the trace of one CPU, KiB: 15 000 events.
        const TRACE_KIB: usize = 512;
        let request = Explain::default();
        let instance = Instance::create_sized(TRACE_KIB)?;
        let mut explainer = Explainer::create_in(instance, request, &Kernel::Running, host)?;
        explainer.reports = Some(reports);
        Ok(explainer)
    }

    fn create_in(instance: Instance, request: Explain, kernel: &Kernel, host: &Host) -> Result<Explainer, TraceError> {
        let (marker, tracing_on) = instance.freezer()?;
        let (watch, wake_rx) = SpikeWatch::new(marker, tracing_on).map_err(TraceError::Process)?;
        let taker = taker(kernel, host);
        let has_cpu_quota = host.scheduling.cpu_quota_us.is_some_and(|us| us > 0);
        let facts = Facts { taker, has_cpu_quota, ..Facts::default() };
        let is_over = Arc::default();
        Ok(Explainer {
            request,
            watch,
            is_over,
            facts,
            idle_states: !host.power.idle_states.is_empty(),
            witnesses: Vec::new(),
            on_spike: None,
            reports: None,
            ready: Some((instance, None, wake_rx)),
            begun: None,
            threads: None,
            instance: None,
        })
    }

    /// Sets the command that runs at every explained spike.
    pub(super) fn set_command(&mut self, on_spike: Option<OnSpike>) {
        self.on_spike = on_spike;
    }

    /// The channel by which measured threads report late wake-ups.
    pub(super) fn watch(&self) -> &Arc<SpikeWatch> {
        &self.watch
    }

    /// Enables the events of the threads with these IDs. The kernel patches its code for that on all CPUs, so it is
    /// done before anything is measured.
    pub(super) fn enable(&mut self, tids: &[u32]) -> Result<(), TraceError> {
        let Some((instance, decoder, _)) = &mut self.ready else { return Ok(()) };
        let stacks = if self.request.stacks { StackRequest::WakeUps } else { StackRequest::Nowhere };
        let enabled = instance.enable_for(tids, stacks, self.idle_states)?;
        self.facts.sees_page_faults = enabled.sees_page_faults();
        *decoder = Some(enabled);
        Ok(())
    }

    /// Starts the trace and the threads that take and explain it, which inherit the affinity of the caller. Takes as
    /// long as the machine lets it, so the due times of the threads on `cpus` are chosen afterwards. Errors: when the
    /// trace or a thread cannot be started.
    pub(super) fn begin(&mut self, cpus: &CpuSet) -> Result<(), TraceError> {
        let has_own_cpu = punctual_sys::sched::affinity(0).is_ok_and(|mine| !mine.minus(cpus).is_empty());
        let Some((mut instance, Some(decoder), wake_rx)) = self.ready.take() else { return Ok(()) };
        if let Some(period) = self.request.witness {
            let ticks = cpus.iter().map(|cpu| punctual_sys::perf::tick(cpu, period.ns()));
            self.witnesses = ticks.collect::<Result<_, _>>().map_err(TraceError::Witness)?;
            self.facts.witness_ns = Some(period.ns());
        }
        instance.start()?;
        let (to_analyzer, analyzer) = waiting(OwnName::Explain, Analyzer::run).map_err(TraceError::Process)?;
        let (to_reader, reader) = waiting(OwnName::Trace, TraceReader::run).map_err(TraceError::Process)?;
        self.threads = Some((reader, analyzer));
        self.begun = Some(Begun { instance, decoder, wake_rx, has_own_cpu, to_reader, to_analyzer });
        Ok(())
    }

    /// Explains the late wake-ups of `measured` from now on, in a cell of `task` whose first due time is `started`.
    pub(super) fn follow(&mut self, task: &Task, started: MonoTime, measured: Vec<(MeasuredThread, LateReader)>) {
        let Some(begun) = self.begun.take() else { return };
        let Begun { mut instance, decoder, wake_rx, has_own_cpu, to_reader, to_analyzer } = begun;
        let (measured, late): (Vec<_>, Vec<_>) = measured.into_iter().unzip();
        let missing = std::mem::take(&mut instance.missing);
        let watched = measured.iter().filter_map(|thread| {
            Some(WatchedThread {
                pid: i32::try_from(thread.tid).ok().filter(|_| punctual_host::is_initial_pid_namespace())?,
                schedule: thread.schedule,
                cycles: (thread.cycles.start, thread.cycles.end),
            })
        });
        let waits_for = match task.link() {
            None => WaitsFor::Timer,
            Some(link) if link.is_timers() => WaitsFor::Device,
            Some(_) => WaitsFor::Answer,
        };
        let answered = measured.iter().filter_map(|thread| {
            let measured =
                thread.schedule.cycle(thread.cycles.start).due.0..thread.schedule.cycle(thread.cycles.end).due.0;
            let pid = i32::try_from(thread.tid).ok().filter(|_| punctual_host::is_initial_pid_namespace())?;
            Some(Answered { pid, measured_ns: measured })
        });
        let is_endless = self.reports.is_some();
        let layouts = instance.layouts().clone();
        let longest = measured.iter().map(|thread| thread.schedule.period.ns()).max().unwrap_or(0);
        let queue = Arc::new(TraceQueue::new(has_own_cpu || is_endless));
        let reader = TraceReader {
            stages: Stages::new(watched),
            answers: Answers::new(answered),
            is_cut: false,
            pages: vec![Vec::new(); instance.n_cpus()],
            source: instance,
            decoder: decoder.clone(),
            wake_rx,
            watch: Arc::clone(&self.watch),
            is_over: Arc::clone(&self.is_over),
            queue: Arc::clone(&queue),
            has_own_cpu,
            keeps_statistics: !is_endless,
            clock: task.clock(),
            waits_for,
            late,
            armed_ns: punctual_sys::clock::monotonic().plus(COVERAGE_MARGIN).0,
            statistics: TraceStatistics::default(),
        };
        let analyzer = Analyzer {
            decoder,
            queue,
            watch: Arc::clone(&self.watch),
            facts: self.facts,
            before_ns: BEFORE_NS.max(longest.saturating_mul(BEFORE_PERIODS)),
            waits_for,
            started,
            measured,
            symbols: OnceCell::new(),
            on_spike: self.on_spike.take(),
            results: Results::new(&self.request, layouts, missing, self.reports.take()),
        };
        if let Some(above) = self.request.above {
            self.set_threshold(above);
        }
        self.watch.arm();
        // A thread that has ended meanwhile has panicked, which `finish` finds out.
        let _ = (to_analyzer.send(analyzer), to_reader.send(reader));
    }

    /// Whether the threshold is not set yet.
    pub(super) fn needs_threshold(&self) -> bool {
        self.watch.above_ns() == i64::MAX
    }

    /// Sets the first threshold.
    pub(super) fn set_threshold(&self, above: Span) {
        self.watch.set_above_ns(i64::try_from(above.ns()).unwrap_or(i64::MAX));
    }

    /// Stops the threads, and returns the results.
    pub(super) fn finish(&mut self) -> Option<Explained> {
        self.witnesses.clear();
        self.is_over.store(true, Relaxed);
        self.watch.wake();
        let (reader, analyzer) = self.threads.take()?;
        if let Some(Begun { instance, .. }) = self.begun.take() {
            self.instance = Some(instance);
        }
        let (statistics, stages, answers, instance) = reader.join().ok().flatten()?;
        self.instance = Some(instance);
        let (mut analyzer, ran) = analyzer.join().ok().flatten()?;
        analyzer.not_covered(&statistics.rest, statistics.ahead_ns);
        let cpus: Vec<u32> = analyzer.measured.iter().map(|thread| thread.cpu).collect();
        let irq = cpus.iter().zip(stages.histograms()).filter(|(_, histogram)| histogram.n > 0);
        analyzer.results.irq = irq.map(|(cpu, histogram)| IrqLatency { cpu: *cpu, histogram }).collect();
        let answers = cpus.iter().zip(answers.histograms()).filter(|(_, [handler, _])| handler.n > 0);
        let answers = answers.map(|(cpu, [interrupt_to_wakeup, wakeup_to_switch])| AnswerStages {
            cpu: *cpu,
            interrupt_to_wakeup,
            wakeup_to_switch,
        });
        analyzer.results.answers = answers.collect();
        analyzer.results.statistics = statistics;
        Some((analyzer.finish(), ran))
    }
}

/// Starts a thread that runs `run` on what is sent to it; it ends when nothing is.
pub(super) fn waiting<T: Send + 'static, R: Send + 'static>(
    name: OwnName,
    run: fn(T) -> R,
) -> io::Result<(Sender<T>, JoinHandle<Option<R>>)> {
    let (sender, receiver) = mpsc::channel();
    let thread = Builder::new().name(name.to_string()).spawn(move || receiver.recv().ok().map(run))?;
    Ok((sender, thread))
}

/// The layer below `kernel` on this machine that can take a CPU away.
pub(super) fn taker(kernel: &Kernel, host: &Host) -> Taker {
    match &host.hypervisor {
        _ if kernel.is_virtual() => Taker::Nobody,
        Some(_) => Taker::Hypervisor,
        None => Taker::Firmware,
    }
}

impl Drop for Explainer {
    fn drop(&mut self) {
        self.finish();
    }
}
