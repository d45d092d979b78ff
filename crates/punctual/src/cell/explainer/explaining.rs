//! The thread that takes each frozen trace, lets it go on, and says what made the late wake-ups late.

use super::kept::Kept;
use super::{Found, MARGIN, Measured};
use crate::cell::on_spike::OnSpike;
use crate::host::{self, KernelSymbols};
use crate::trace::{Decoder, Export, Instance};
use analysis::explain::{self, Answers, Facts, Stages, Subject, WaitsFor, What};
use model::{AnswerStages, ClockId, Explanation, IrqLatency, MonoTime, Nice, Policy};
use rt::{Late, LateReader, SpikeWatch, sys};
use std::cell::OnceCell;
use std::io::{PipeReader, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// How often the running trace is emptied, for what is said of every wake-up: before it is overwritten.
const OFTEN: Duration = Duration::from_millis(200);
/// The same where that is done on a measured CPU.
const SELDOM: Duration = Duration::from_secs(1);

/// Bytes of traces that are taken before they are explained, at most, where explaining would disturb what is measured.
const LATER: usize = 64 << 20;

/// What the explaining thread holds.
pub(super) struct Explaining {
    pub(super) instance: Instance,
    pub(super) decoder: Decoder,
    pub(super) bell: PipeReader,
    pub(super) watch: Arc<SpikeWatch>,
    pub(super) is_over: Arc<AtomicBool>,
    pub(super) facts: Facts,
    pub(super) stacks: bool,
    pub(super) clock: ClockId,
    pub(super) waits_for: WaitsFor,
    pub(super) first_cycle: u64,
    pub(super) started: MonoTime,
    pub(super) measured: Vec<Measured>,
    /// Of each CPU, since the trace began again.
    pub(super) pages: Vec<Vec<u8>>,
    /// Whether older ones were dropped.
    pub(super) is_cut: bool,
    pub(super) stages: Stages,
    /// Of what waits for answers; nothing is taken where timers are waited for.
    pub(super) answers: Answers,
    /// Traces that are explained when nothing is measured any more; `None` where there is a CPU to do it on meanwhile.
    pub(super) later: Option<Vec<Taken>>,
    pub(super) symbols: OnceCell<KernelSymbols>,
    /// Where each kept spike is written to, if that is asked.
    pub(super) export: Option<Export>,
    /// What runs at each explained spike, if that is asked.
    pub(super) on_spike: Option<OnSpike>,
    pub(super) kept: Kept,
}

impl Explaining {
    pub(super) fn run(mut self) -> (Found, Instance) {
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
        let measured = self.measured.iter().map(|thread| thread.cpu).zip(self.answers.histograms());
        let answers = measured.filter(|(_, [handler, _])| handler.n > 0);
        self.kept.answers = answers.map(|(cpu, [handler, queue])| AnswerStages { cpu, handler, queue }).collect();
        if let Some(lost) = self.export.as_mut().and_then(Export::failure) {
            self.kept.missed(lost);
        }
        ((self.kept.finish(&self.watch), self.on_spike.map(OnSpike::finish)), self.instance)
    }

    /// Takes the frozen trace, lets it go on, and explains what is in it, now or later.
    fn look(&mut self) {
        self.kept.threshold(self.watch.above_ns());
        self.gather();
        self.stages.stood_still();
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
        let mut fresh = (self.waits_for != WaitsFor::Timer).then(|| self.decoder.begin(self.pages.len()));
        for (cpu, pages) in self.pages.iter_mut().enumerate() {
            let before = pages.len();
            if self.instance.drain(cpu, page_bytes, pages).is_err() {
                pages.clear();
            }
            let new = pages.get(before..).unwrap_or_default();
            match &mut fresh {
                None => self.decoder.timers(new, |event| timers.push(event)),
                Some(fresh) => drop(self.decoder.read(fresh, cpu, new)),
            }
            let surplus = pages.len().saturating_sub(most).next_multiple_of(page_bytes);
            if surplus > 0 {
                pages.drain(..surplus);
                self.is_cut = true;
            }
        }
        self.stages.take(&mut timers);
        if let Some(mut fresh) = fresh {
            fresh.imply_switches();
            self.answers.take(&fresh);
        }
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
            for Late { due, latency } in samples {
                let cycle = thread.schedule.containing(due).index;
                let due_ns = due.0.wrapping_add_signed(-ahead_ns);
                let subject = Subject {
                    pid,
                    waits_for: self.waits_for,
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
pub(super) struct Taken {
    /// Of each CPU.
    pages: Vec<Vec<u8>>,
    /// Whether older ones were dropped.
    is_cut: bool,
    /// Of each measured thread.
    late: Vec<Vec<Late>>,
    /// From when on the trace is whole, `CLOCK_MONOTONIC`, ns.
    armed_ns: u64,
    /// By how much the clock of the method is ahead of that one, ns.
    ahead_ns: i64,
}

fn taken(log: &mut LateReader) -> Vec<Late> {
    let mut late = Vec::new();
    log.drain(|one| late.push(one));
    late
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
