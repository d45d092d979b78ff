//! Explanation of the gaps of threads that never wait: the trace is never stopped, and every gap is explained.

use crate::explainer::{MeasuredThread, kernel_pid, name_measured, taker, waiting};
use crate::trace::{Instance, PageSource, StackRequest, TraceError};
use crate::worst_spikes::WorstSpikes;
use punctual_analysis::explain::{Below, Case, Facts, Subject, Taker, Trace, WaitsFor, is_silent};
use punctual_ftrace::{Decoder, Window};
use punctual_host::{BelowKernel, KernelSymbols};
use punctual_model::{
    CpuSet, Explain, ExplainRecord, Explanation, Host, Kernel, MonoTime, Nice, NotCovered, OwnName, Policy, Span,
};
use punctual_rt::{LateReader, LateWakeup, SpikeWatch};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval of reading: the kernel keeps 4 MiB of events meanwhile.
const INTERVAL: Duration = Duration::from_millis(50);
/// Time before the first gap of a reading whose events are decoded, ns: they show what ran then.
const BEFORE_NS: u64 = 5_000_000;
/// Most bytes of the trace of one CPU that are kept for gaps that are not over yet.
const MOST_BYTES: usize = 8 << 20;

/// A gap with its explanation, or the CPU of one that no trace covers.
type Explained = (LateWakeup, Result<(Case, Explanation), u32>);

/// The trace of a cell whose threads never wait. Dropping it removes the trace.
#[derive(Debug)]
pub(super) struct GapExplainer {
    request: Explain,
    watch: Arc<SpikeWatch>,
    facts: Facts,
    idle_states: bool,
    /// Read in advance: on the only CPU, that would be a gap of 0.1 s.
    symbols: KernelSymbols,
    is_over: Arc<AtomicBool>,
    /// `Some` until the gaps are followed.
    ready: Option<(Instance, Option<Decoder>)>,
    /// `Some` from the start of the thread until it gets what it is to do.
    begun: Option<(Sender<GapReader>, BelowKernel)>,
    thread: Option<JoinHandle<Option<(ExplainRecord, Instance)>>>,
    /// `Some` at the end.
    instance: Option<Instance>,
}

impl GapExplainer {
    /// Creates the trace, stopped. Errors: without tracefs, or without permission to use it.
    pub(super) fn create(request: Explain, kernel: &Kernel, host: &Host) -> Result<GapExplainer, TraceError> {
        Ok(GapExplainer {
            request,
            watch: SpikeWatch::of_gaps().map_err(TraceError::Process)?,
            facts: Facts {
                taker: taker(kernel, host),
                has_cpu_quota: host.scheduling.cpu_quota_us.is_some_and(|us| us > 0),
                frozen_ns: u64::MAX,
                ..Facts::default()
            },
            idle_states: !host.power.idle_states.is_empty(),
            symbols: KernelSymbols::read(),
            is_over: Arc::default(),
            ready: Some((Instance::create()?, None)),
            begun: None,
            thread: None,
            instance: None,
        })
    }

    /// The channel by which measured threads report gaps.
    pub(super) fn watch(&self) -> &Arc<SpikeWatch> {
        &self.watch
    }

    /// Enables the events of the threads with these IDs, and starts the trace. Errors: as of the trace.
    pub(super) fn enable(&mut self, tids: &[u32]) -> Result<(), TraceError> {
        let Some((instance, decoder)) = &mut self.ready else { return Ok(()) };
        let enabled = instance.enable_for(tids, StackRequest::Nowhere, self.idle_states)?;
        self.facts.sees_page_faults = enabled.sees_page_faults();
        // Without all interrupts, silence tells nothing about what is below the kernel.
        self.facts.lacks_interrupts = !enabled.sees_interrupts() || instance.lacks_vectors();
        *decoder = Some(enabled);
        instance.start()
    }

    /// Starts the thread that explains the gaps of threads on `cpus`. Takes as long as the machine lets it, so the due
    /// times are chosen afterwards. Errors: when no thread can be started.
    pub(super) fn begin(&mut self, cpus: &CpuSet) -> Result<(), TraceError> {
        let (to_reader, thread) = waiting(OwnName::Explain, GapReader::run).map_err(TraceError::Process)?;
        (self.begun, self.thread) = (Some((to_reader, BelowKernel::begin(cpus))), Some(thread));
        Ok(())
    }

    /// Explains the gaps of `measured` from their first one on, in a cell that begins at `started`.
    pub(super) fn follow(&mut self, started: MonoTime, measured: Vec<(MeasuredThread, LateReader)>) {
        let Some((to_reader, below)) = self.begun.take() else { return };
        let Some((mut instance, Some(decoder))) = self.ready.take() else { return };
        let (measured, logs): (Vec<_>, Vec<_>) = measured.into_iter().unzip();
        let missing = std::mem::take(&mut instance.missing);
        let reader = GapReader {
            pages: vec![Vec::new(); instance.n_cpus()],
            is_cut: false,
            kept: WorstSpikes::new(&self.request, instance.layouts().clone(), Vec::new()),
            missing,
            instance,
            decoder,
            facts: self.facts,
            is_over: Arc::clone(&self.is_over),
            started,
            pending: vec![Vec::new(); measured.len()],
            measured,
            logs,
            symbols: std::mem::take(&mut self.symbols),
            below,
            events: 0,
        };
        // A thread that has ended meanwhile has panicked, which `finish` finds out.
        let _ = to_reader.send(reader);
    }

    /// Stops the thread, and returns the explanations; `None` if none was started, or it panicked.
    pub(super) fn finish(&mut self) -> Option<ExplainRecord> {
        self.is_over.store(true, Relaxed);
        self.begun = None;
        let (record, instance) = self.thread.take()?.join().ok().flatten()?;
        self.instance = Some(instance);
        Some(record)
    }
}

impl Drop for GapExplainer {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The state of the thread that reads and explains.
struct GapReader {
    instance: Instance,
    decoder: Decoder,
    facts: Facts,
    is_over: Arc<AtomicBool>,
    started: MonoTime,
    measured: Vec<MeasuredThread>,
    /// The gaps of each measured thread, and those that are not explained yet.
    logs: Vec<LateReader>,
    pending: Vec<Vec<LateWakeup>>,
    /// Latest pages of each CPU, and whether older ones were dropped.
    pages: Vec<Vec<u8>>,
    is_cut: bool,
    symbols: KernelSymbols,
    below: BelowKernel,
    kept: WorstSpikes,
    missing: Vec<String>,
    events: u64,
}

impl GapReader {
    fn run(mut self) -> (ExplainRecord, Instance) {
        // Without the permission, this thread keeps its policy and reads later.
        let _ = punctual_sys::sched::set_policy(0, Policy::Other(Nice::HIGHEST));
        let before = punctual_sys::usage::thread().ok();
        loop {
            let is_last = self.is_over.load(Relaxed);
            self.read(is_last);
            if is_last {
                break;
            }
            std::thread::sleep(INTERVAL);
        }
        let used = before
            .zip(punctual_sys::usage::thread().ok())
            .map(|(before, after)| punctual_sys::usage::since(&before, &after));
        let lost: u64 = self.logs.iter().map(LateReader::lost).sum();
        let record = self.kept.record(self.missing);
        let record = ExplainRecord {
            spikes: record.spikes + lost,
            not_covered: record.not_covered + lost,
            events: self.events,
            explaining_us: used.map(|used| used.user_us + used.system_us),
            ..record
        };
        (record, self.instance)
    }

    /// Explains the gaps up to now.
    fn read(&mut self, is_last: bool) {
        // What is counted below the kernel belongs to the gaps that were over when it was read.
        let now_ns = punctual_sys::clock::monotonic().0;
        let counts = self.below.read();
        for (log, pending) in self.logs.iter_mut().zip(&mut self.pending) {
            log.drain(|gap| pending.push(gap));
        }
        for (cpu, pages) in self.pages.iter_mut().enumerate() {
            if self.instance.drain(cpu, self.decoder.page_bytes(), pages).is_err() {
                pages.clear();
            }
            let surplus = pages.len().saturating_sub(MOST_BYTES).next_multiple_of(self.decoder.page_bytes());
            if surplus > 0 {
                pages.drain(..surplus);
                self.is_cut = true;
            }
        }
        let is_over = |gap: &LateWakeup| is_last || end_ns(gap) < now_ns;
        let over: Vec<Vec<LateWakeup>> =
            self.pending.iter_mut().map(|all| all.extract_if(.., |gap| is_over(gap)).collect()).collect();
        let Some(first_ns) = over.iter().flatten().map(|gap| gap.due.0).min() else { return };
        let from_ns = first_ns.saturating_sub(BEFORE_NS);
        let around = Window::cut(&self.decoder, &(from_ns..u64::MAX), &self.pages, self.is_cut);
        let window = Window { from_ns, around, own: Vec::new() };
        let (mut trace, n_events) = window.trace(&self.decoder, |trace| name_measured(&self.measured, trace));
        self.events += n_events;
        let mut explained = Vec::new();
        for (index, gaps) in over.iter().enumerate() {
            let Some(thread) = self.measured.get(index) else { continue };
            let below = Below { smis: counts.smis, stolen_ns: counts.stolen_ns(thread.cpu), ..Below::default() };
            explained.extend(self.of_thread(thread, &over, index, below, &mut trace, gaps));
        }
        let symbols = |address| self.symbols.name(address);
        let mut whole = Vec::new();
        for (gap, case) in explained {
            match case {
                Ok(one) => whole.push(one),
                Err(cpu) => self.kept.take_not_covered(NotCovered {
                    cpu,
                    due_ns: gap.due.0.cast_signed().wrapping_sub_unsigned(self.started.0),
                    latency: Span(gap.latency.0.unsigned_abs()),
                }),
            }
        }
        self.kept.take(&window, &trace, &symbols, whole);
    }

    /// The explanations of the gaps of one thread; without one, its CPU.
    fn of_thread(
        &self,
        thread: &MeasuredThread,
        over: &[Vec<LateWakeup>],
        index: usize,
        below: Below,
        trace: &mut Trace,
        gaps: &[LateWakeup],
    ) -> Vec<Explained> {
        let symbols = |address| self.symbols.name(address);
        let pid = kernel_pid(thread, trace);
        let mut explain = |case: Case| {
            let (from_ns, to_ns) = (case.subject.due_ns.saturating_sub(BEFORE_NS), case.subject.woke_ns);
            let explained = trace.within(&(from_ns..to_ns), |trace| case.explain(trace, &symbols));
            explained.map(|explanation| (case, explanation)).ok_or(thread.cpu)
        };
        let case = |gap: &LateWakeup| {
            let below = Below { others_stopped: stopped(over, index, gap), ..below };
            let others = u32::try_from(over.len() - 1).unwrap_or(u32::MAX);
            let facts = Facts { below: Some(Below { others, ..below }), ..self.facts };
            self.case(thread, pid?, gap, facts)
        };
        let mut all: Vec<Explained> =
            gaps.iter().map(|gap| (*gap, case(gap).ok_or(thread.cpu).and_then(&mut explain))).collect();
        // The firmware is named only if it was counted at least as often as nothing else was seen.
        if self.facts.taker == Taker::Firmware && below.smis.is_some_and(|smis| smis > 0) {
            let is_open = |(_, one): &Explained| {
                one.as_ref().is_ok_and(|(case, explanation)| is_silent(explanation, &case.facts))
            };
            let silent = all.iter().filter(|one| is_open(one)).count() as u64;
            for (_, one) in all.iter_mut().filter(|one| is_open(one)) {
                if let Ok((case, _)) = one {
                    let below = case.facts.below.map(|below| Below { silent, ..below });
                    *one = explain(Case { facts: Facts { below, ..case.facts }, ..case.clone() });
                }
            }
        }
        all
    }

    fn case(&self, thread: &MeasuredThread, pid: i32, gap: &LateWakeup, facts: Facts) -> Option<Case> {
        Some(Case {
            cycle: thread.schedule.containing(gap.due).index.cast_signed(),
            due_ns: gap.due.0.cast_signed().wrapping_sub_unsigned(self.started.0),
            thread: None,
            subject: Subject {
                pid,
                waits_for: WaitsFor::Nothing,
                cpu: thread.cpu,
                priority: thread.policy.kernel_priority(),
                due_ns: gap.due.0,
                woke_ns: end_ns(gap),
                slack_ns: 0,
            },
            facts,
            inside: None,
        })
    }
}

fn end_ns(gap: &LateWakeup) -> u64 {
    gap.due.0.saturating_add_signed(gap.latency.0)
}

/// Number of other threads with a gap of about the same instant: each covers at least half of the other.
fn stopped(over: &[Vec<LateWakeup>], index: usize, gap: &LateWakeup) -> u32 {
    let is_same = |other: &LateWakeup| {
        let common = end_ns(gap).min(end_ns(other)).saturating_sub(gap.due.0.max(other.due.0));
        common * 2 >= gap.latency.0.max(other.latency.0).unsigned_abs()
    };
    let has = |gaps: &Vec<LateWakeup>| {
        let first = gaps.partition_point(|other| end_ns(other) <= gap.due.0);
        let later = gaps.get(first..).unwrap_or_default().iter();
        later.take_while(|other| other.due.0 < end_ns(gap)).any(is_same)
    };
    let others = over.iter().enumerate().filter(|(other, _)| *other != index);
    u32::try_from(others.filter(|(_, gaps)| has(gaps)).count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::{ClockTime, Nanos};

    #[test]
    fn cpus_stopped_together_if_half_of_both_gaps_is_common() {
        let gap = |at, length| LateWakeup { due: ClockTime(at), latency: Nanos(length) };
        let over = [vec![gap(1_000, 100)], vec![gap(500, 100), gap(1_050, 100)], vec![gap(1_051, 100)], vec![]];
        for (index, one, others) in
            [(0, gap(1_000, 100), 1), (1, gap(1_050, 100), 2), (2, gap(1_051, 100), 1), (1, gap(500, 100), 0)]
        {
            assert_eq!(stopped(&over, index, &one), others, "{one:?}");
        }
    }
}
