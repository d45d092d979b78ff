//! What made a wake-up late: from the kernel's events to phases, owners, causes, and how sure each is.
//!
//! Pure: events in, explanation out. The time between the due time and the reading of the clock is cut into phases by
//! the events of the wake-up itself, each phase into stretches by who had the CPU, and each stretch is judged. Nothing is
//! left over, so phases and shares add up to the latency to the nanosecond.

mod advice;
mod answers;
mod baseline;
mod event;
mod expiry;
mod implied;
mod inherited;
mod judge;
mod locate;
mod own;
mod shares;
mod silence;
mod stack;
mod stages;
mod story;
mod timeline;
mod totals;
mod wording;

pub use advice::{Advice, advice};
pub use answers::{Answered, Answers};
pub use event::{Context, CpuEvents, Event, Trace, What, flags, state};
pub use locate::{Subject, WaitsFor};
pub use stages::{Stages, Watched};
pub use story::{Slice, slices};
pub use totals::{Totals, merged};
pub use wording::{blame, cause_name, evidence_name, not_caught, phase_name, share_line};

use baseline::Baseline;
use inherited::Inherited;
use judge::Scene;
use locate::{Piece, Wake};
use model::{Explanation, PhaseLength, Segment, Span};

/// What else is known of the machine and the trace.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts {
    /// Who may take a CPU away from the kernel.
    pub taker: Taker,
    /// Whether the control group of the measured threads may have only a part of the CPUs' time.
    pub has_cpu_quota: bool,
    /// Whether page faults are in the trace.
    pub sees_page_faults: bool,
    /// Period, ns, of the interrupt that shows whether a CPU runs with interrupts on.
    pub witness_ns: Option<u64>,
    /// Earliest instant, `CLOCK_MONOTONIC`, ns, from which the trace is whole: when tracing began again.
    pub armed_ns: u64,
    /// When the trace was stopped, `CLOCK_MONOTONIC`, ns.
    pub frozen_ns: u64,
}

/// Who may take a CPU away from the kernel, unseen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Taker {
    /// Only its firmware.
    #[default]
    Firmware,
    /// A hypervisor.
    Hypervisor,
    /// Nobody: its instructions are the clock.
    Nobody,
}

impl Facts {
    /// Whether a CPU that left no event may well have been taken away.
    fn may_be_taken(&self) -> bool {
        self.taker == Taker::Hypervisor
    }

    /// Whether no CPU ever stands still.
    fn never_stands_still(&self) -> bool {
        self.taker == Taker::Nobody
    }
}

/// The names of kernel functions by address.
pub type Symbols<'a> = &'a dyn Fn(u64) -> Option<String>;

/// Explains a late wake-up; `None` when the trace does not cover it.
///
/// `cycle` and `due_ns` of the result are 0: whoever asks knows them.
#[must_use]
pub fn explain(trace: &Trace, subject: &Subject, facts: &Facts, symbols: Symbols<'_>) -> Option<Explanation> {
    let (due, woke) = (subject.due_ns, subject.woke_ns);
    if woke < due || facts.armed_ns > due || facts.frozen_ns < woke || !trace.covers(subject.cpu, due) {
        return None;
    }
    let wake = Wake::find(trace, subject);
    let pieces = wake.pieces(subject);
    let baseline = Baseline::of(trace, subject);
    let inherited = Inherited::of(trace);
    let scene = Scene { trace, subject, facts, symbols, baseline, inherited, wake: &wake };
    let mut segments: Vec<Segment> = pieces.iter().flat_map(|piece| scene.judge(piece)).collect();
    let shares = shares::roll_up(&segments);
    shares::keep_longest(&mut segments);
    Some(Explanation {
        cpu: subject.cpu,
        cycle: 0,
        due_ns: 0,
        latency: Span(woke - due),
        phases: pieces.iter().map(Piece::length).fold(Vec::new(), joined),
        shares,
        segments,
        doubts: doubts(trace, subject, &pieces),
    })
}

/// Phases of the same kind that follow each other are one.
fn joined(mut phases: Vec<PhaseLength>, next: PhaseLength) -> Vec<PhaseLength> {
    match phases.last_mut().filter(|last| last.phase == next.phase) {
        Some(last) => last.length = Span(last.length.ns() + next.length.ns()),
        None => phases.push(next),
    }
    phases
}

/// What makes the explanation less sure.
fn doubts(trace: &Trace, subject: &Subject, pieces: &[Piece]) -> Vec<String> {
    let mut cpus: Vec<u32> = pieces.iter().map(|piece| piece.cpu).chain([subject.cpu]).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let mut doubts = Vec::new();
    for cpu in cpus {
        let Some(events) = trace.cpu(cpu) else { continue };
        if events.lost_ns.iter().any(|at| (subject.due_ns..=subject.woke_ns).contains(at)) {
            doubts.push(format!("events of CPU {cpu} were lost meanwhile"));
        }
        let broken = timeline::broken_switches(events, subject.due_ns, subject.woke_ns);
        if broken > 0 {
            let what = crate::wording::things(broken, "switch");
            doubts.push(format!("{what} of CPU {cpu} left no event"));
        }
    }
    doubts
}

#[cfg(test)]
mod tests;
