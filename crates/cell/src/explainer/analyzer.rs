//! The thread that explains late wake-ups, from the traces that another thread takes.

use super::MeasuredThread;
use super::results::Results;
use super::trace_queue::{Pages, TakenTrace, TraceQueue};
use crate::on_spike::OnSpike;
use crate::trace::{Decoder, Export};
use analysis::explain::{self, Facts, Subject, WaitsFor, What};
use host::KernelSymbols;
use model::{ExplainRecord, Explanation, MonoTime, Nice, NotCovered, OnSpikeRecord, Policy, Span};
use rt::{LateWakeup, SpikeWatch};
use std::cell::OnceCell;
use std::sync::Arc;

/// The state of the explaining thread.
pub(super) struct Analyzer {
    pub(super) decoder: Decoder,
    pub(super) queue: Arc<TraceQueue>,
    pub(super) watch: Arc<SpikeWatch>,
    pub(super) facts: Facts,
    pub(super) waits_for: WaitsFor,
    pub(super) started: MonoTime,
    pub(super) measured: Vec<MeasuredThread>,
    pub(super) symbols: OnceCell<KernelSymbols>,
    /// Export of each kept spike, if requested.
    pub(super) export: Option<Export>,
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
            let _ = sys::sched::set_policy(0, Policy::Other(Nice::HIGHEST));
        }
        let before = sys::usage::thread().ok();
        while let Some(taken) = self.queue.next() {
            let pages = self.explain(taken);
            self.queue.reuse(pages);
        }
        let used = before.zip(sys::usage::thread().ok()).map(|(before, after)| sys::usage::since(&before, &after));
        self.results.explaining_us = used.map(|used| used.user_us + used.system_us);
        for (late, ahead_ns) in self.queue.dropped() {
            self.not_covered(&late, ahead_ns);
        }
        let ran = self.on_spike.take().map(OnSpike::finish);
        (self, ran)
    }

    /// The record of all explanations.
    pub(super) fn finish(mut self) -> ExplainRecord {
        if let Some(lost) = self.export.as_mut().and_then(Export::failure) {
            self.results.missed(lost);
        }
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
        let mut trace = self.decoder.begin(all.len());
        for (cpu, pages) in all.iter().enumerate() {
            self.results.events += self.decoder.read(&mut trace, cpu, pages).events;
        }
        trace.cpus.iter_mut().for_each(|cpu| cpu.is_cut |= is_cut);
        trace.imply_switches();
        let marks = trace.cpus.iter().flat_map(|cpu| &cpu.events).filter(|event| event.what == What::Mark);
        // Without the mark, the time at which the trace stopped is unknown.
        let frozen_ns = marks.map(|event| event.at_ns).max().unwrap_or(0);
        let facts = Facts { armed_ns, frozen_ns, ..self.facts };
        let symbols = |address| self.symbols.get_or_init(KernelSymbols::read).name(address);
        for (thread, samples) in self.measured.iter().zip(late) {
            let pid = kernel_pid(thread, &trace);
            for sample in samples {
                let LateWakeup { due, latency } = sample;
                let cycle = thread.schedule.containing(due).index;
                let due_ns = due.0.wrapping_add_signed(-ahead_ns);
                let subject = pid.map(|pid| Subject {
                    pid,
                    waits_for: self.waits_for,
                    cpu: thread.cpu,
                    priority: thread.policy.kernel_priority(),
                    due_ns,
                    woke_ns: due_ns.saturating_add_signed(latency.0),
                    slack_ns: thread.slack.ns(),
                });
                let explained =
                    subject.and_then(|subject| Some((subject, explain::explain(&trace, &subject, &facts, &symbols)?)));
                let Some((subject, explanation)) = explained else {
                    self.results.not_covered(one_not_covered(thread.cpu, self.started, sample, ahead_ns));
                    continue;
                };
                let explanation = Explanation {
                    cycle: cycle.cast_signed().wrapping_sub_unsigned(thread.cycles.start),
                    due_ns: due_ns.cast_signed().wrapping_sub_unsigned(self.started.0),
                    ..explanation
                };
                if let Some(export) = &mut self.export {
                    export.write(&explanation, &subject, &trace, &all, &symbols);
                }
                if let Some(on_spike) = &mut self.on_spike {
                    on_spike.start_for(&explanation);
                }
                let dropped = self.results.take(explanation);
                if let (Some(export), Some(dropped)) = (&mut self.export, dropped) {
                    export.remove(&dropped);
                }
            }
        }
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

/// The ID of a thread in the trace. In a container the kernel's ID differs, so that the thread is found by its name.
fn kernel_pid(thread: &MeasuredThread, trace: &explain::Trace) -> Option<i32> {
    if host::is_initial_pid_namespace() {
        return i32::try_from(thread.tid).ok();
    }
    let name = format!("measured/{}", thread.cpu);
    trace.names.iter().find(|(_, known)| **known == name).map(|(pid, _)| *pid)
}
