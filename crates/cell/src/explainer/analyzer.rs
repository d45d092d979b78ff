//! The thread that explains late wake-ups, from the traces that another thread takes.

use super::MeasuredThread;
use super::results::Results;
use super::trace_queue::{Pages, TakenTrace, TraceQueue};
use crate::on_spike::OnSpike;
use punctual_analysis::explain::{Case, Facts, Subject, Trace, WaitsFor, What};
use punctual_ftrace::{Decoder, Window};
use punctual_host::KernelSymbols;
use punctual_model::{ExplainRecord, MonoTime, Nice, NotCovered, OnSpikeRecord, Policy, Span};
use punctual_rt::{LateWakeup, SpikeWatch};
use std::cell::OnceCell;
use std::sync::Arc;

/// The state of the explaining thread.
pub(super) struct Analyzer {
    pub(super) decoder: Decoder,
    pub(super) queue: Arc<TraceQueue>,
    pub(super) watch: Arc<SpikeWatch>,
    pub(super) facts: Facts,
    /// Time before the first due time that is looked at, ns.
    pub(super) before_ns: u64,
    pub(super) waits_for: WaitsFor,
    pub(super) started: MonoTime,
    pub(super) measured: Vec<MeasuredThread>,
    pub(super) symbols: OnceCell<KernelSymbols>,
    /// The command that runs at each explained spike, if requested.
    pub(super) on_spike: Option<OnSpike>,
    pub(super) results: Results,
}

impl Analyzer {
    /// Explains until no more traces arrive. Also returns the record of the command that runs at spikes: it is waited
    /// for here, because the kernel kills it when the thread that started it ends (`PR_SET_PDEATHSIG(2const)`).
    pub(super) fn run(mut self) -> (Analyzer, Option<OnSpikeRecord>) {
        // Without the permission, this thread keeps its policy and may run later. A measurement without an end can
        // wait, and takes the time of no other program.
        if !self.results.are_passed_on() {
            let _ = punctual_sys::sched::set_policy(0, Policy::Other(Nice::HIGHEST));
        }
        let before = punctual_sys::usage::thread().ok();
        while let Some(taken) = self.queue.next() {
            let pages = self.explain(taken);
            self.queue.reuse(pages);
        }
        let used = before
            .zip(punctual_sys::usage::thread().ok())
            .map(|(before, after)| punctual_sys::usage::since(&before, &after));
        self.results.explaining_us = used.map(|used| used.user_us + used.system_us);
        for (late, ahead_ns) in self.queue.dropped() {
            self.not_covered(&late, ahead_ns);
        }
        let ran = self.on_spike.take().map(OnSpike::finish);
        (self, ran)
    }

    pub(super) fn finish(self) -> ExplainRecord {
        self.results.finish(&self.watch)
    }

    /// Records the late wake-ups of each thread that no trace covers.
    pub(super) fn not_covered(&mut self, late: &[Vec<LateWakeup>], ahead_ns: i64) {
        for (thread, samples) in self.measured.iter().zip(late) {
            for sample in samples {
                self.results.not_covered(one_not_covered(thread.cpu, self.started, *sample, ahead_ns));
            }
        }
    }

    /// Explains the late wake-ups of a trace; returns its pages for reuse.
    fn explain(&mut self, taken: TakenTrace) -> Pages {
        let TakenTrace { pages: all, is_cut, late, armed_ns, ahead_ns } = taken;
        let on_trace_clock = |late: &LateWakeup| late.due.0.wrapping_add_signed(-ahead_ns);
        let first_due_ns = late.iter().flatten().map(on_trace_clock).min().unwrap_or(0);
        let from_ns = first_due_ns.saturating_sub(self.before_ns);
        let around = Window::cut(&self.decoder, &(from_ns..u64::MAX), &all, is_cut);
        let window = Window { from_ns, around, own: Vec::new() };
        let (trace, n_events) = window.trace(&self.decoder, |trace| name_measured(&self.measured, trace));
        self.results.events += n_events;
        let marks = trace.cpus.iter().flat_map(|cpu| &cpu.events).filter(|event| event.what == What::Mark);
        // Without the mark, the time at which the trace stopped is unknown.
        let frozen_ns = marks.map(|event| event.at_ns).max().unwrap_or(0);
        let facts = Facts { armed_ns, frozen_ns, ..self.facts };
        let symbols = |address| self.symbols.get_or_init(KernelSymbols::read).name(address);
        let mut explained = Vec::new();
        for (thread, samples) in self.measured.iter().zip(late) {
            let pid = kernel_pid(thread, &trace);
            for sample in samples {
                let due_ns = on_trace_clock(&sample);
                let subject = pid.map(|pid| Subject {
                    pid,
                    waits_for: self.waits_for,
                    cpu: thread.cpu,
                    priority: thread.policy.kernel_priority(),
                    due_ns,
                    woke_ns: due_ns.saturating_add_signed(sample.latency.0),
                    slack_ns: thread.slack.ns(),
                });
                let cycle = thread.schedule.containing(sample.due).index.cast_signed();
                let case = subject.map(|subject| Case {
                    cycle: cycle.wrapping_sub_unsigned(thread.cycles.start),
                    due_ns: due_ns.cast_signed().wrapping_sub_unsigned(self.started.0),
                    thread: None,
                    subject,
                    facts,
                    inside: None,
                });
                let one = case.and_then(|case| case.explain(&trace, &symbols).map(|explanation| (case, explanation)));
                let Some((case, explanation)) = one else {
                    self.results.not_covered(one_not_covered(thread.cpu, self.started, sample, ahead_ns));
                    continue;
                };
                if let Some(on_spike) = &mut self.on_spike {
                    on_spike.start_for(&explanation);
                }
                explained.push((case, explanation));
            }
        }
        self.results.take(&window, &trace, &symbols, explained);
        if let Some(above_ns) = self.results.raised_threshold_ns() {
            self.watch.set_above_ns(above_ns.max(self.watch.above_ns()));
        }
        all
    }
}

/// A late wake-up that no trace covers.
fn one_not_covered(cpu: u32, started: MonoTime, LateWakeup { due, latency }: LateWakeup, ahead_ns: i64) -> NotCovered {
    let due_ns = due.0.wrapping_add_signed(-ahead_ns).cast_signed().wrapping_sub_unsigned(started.0);
    NotCovered { cpu, due_ns, latency: Span(u64::try_from(latency.0).unwrap_or(0)) }
}

/// Names measured threads, which may have no switch in the trace.
pub(crate) fn name_measured(measured: &[MeasuredThread], trace: &mut Trace) {
    for thread in measured.iter().filter(|_| punctual_host::is_initial_pid_namespace()) {
        let Ok(pid) = i32::try_from(thread.tid) else { continue };
        trace.names.entry(pid).or_insert_with(|| name_of(thread));
    }
}

fn name_of(thread: &MeasuredThread) -> String {
    format!("measured/{}", thread.cpu)
}

/// The ID of a thread in the trace. In a container the kernel's ID differs, so that the thread is found by its name.
pub(crate) fn kernel_pid(thread: &MeasuredThread, trace: &Trace) -> Option<i32> {
    if punctual_host::is_initial_pid_namespace() {
        return i32::try_from(thread.tid).ok();
    }
    let name = name_of(thread);
    trace.names.iter().find(|(_, known)| **known == name).map(|(pid, _)| *pid)
}
