//! Explanation of a late wake-up: from kernel events to phases, owners of the CPU, causes, and the evidence for each.
//!
//! Pure: events in, explanation out. The events of the wake-up cut the time between the due time and the reading of the
//! clock into phases. The owners of the CPU cut each phase into stretches, and each stretch gets a cause. No time is
//! left over, so phases and shares add up to the latency to the nanosecond.

mod activation;
mod answers;
mod baseline;
mod case;
mod causes;
mod clock_tie;
mod code;
mod excess;
mod expiry;
mod gap;
mod judge;
mod lanes;
mod layers;
mod locate;
mod locks;
mod missing_switches;
mod on_host;
mod priority_boost;
mod shares;
mod sleep;
mod stack;
mod stages;
mod thread_state;
mod timeline;
mod totals;
mod untraced_gap;
mod wording;

pub use crate::events::{Context, CpuEvents, Event, MarkNames, Trace, What, flags, has_room_for_name, state};
pub use activation::explain_activation;
pub use answers::{Answered, Answers};
pub use case::Case;
pub use causes::{CauseRow, row_of};
pub use clock_tie::GuestClock;
pub use code::{CodeSample, READING_PERIOD_NS, SAMPLE_PERIOD_NS};
pub use excess::Inside;
pub use gap::{Below, is_silent};
pub use lanes::{LanePiece, LaneState, Lanes};
pub use layers::layer_of;
pub use locate::{Subject, WaitsFor};
pub use on_host::{join, subjects, with_stops};
pub use stages::{Stages, Watched};
pub use timeline::{Slice, slices};
pub use totals::{Totals, merged};
pub use wording::{blame, cause_name, code_line, marks_line, share_line};
pub(crate) use wording::{main_cause, not_caught};

use crate::events as event;
use baseline::Baseline;
use judge::Scene;
use locate::{Piece, Wake};
use priority_boost::Inherited;
use punctual_model::{Explanation, PhaseLength, Segment, Span};
use serde::{Deserialize, Serialize};

/// Facts about the machine and the trace that the events do not contain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Layer below the kernel that can take a CPU away.
    pub taker: Taker,
    /// Whether the control group of the measured threads has a CPU quota.
    pub has_cpu_quota: bool,
    /// Time, ns, in which that quota held threads back around the wake-up; `None` if it is not known.
    pub throttled_ns: Option<u64>,
    /// Whether the trace contains page faults.
    pub sees_page_faults: bool,
    /// Whether the trace has no system calls, as the file of another program may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_calls: bool,
    /// The same of interrupts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_interrupts: bool,
    /// The same of the flags that say whether a reschedule was requested.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_flags: bool,
    /// Whether [`What::Ran`] leaves out the time that a hypervisor took.
    pub counts_stolen: bool,
    /// Period, ns, of the witness: an interrupt that shows whether a CPU runs with interrupts on.
    pub witness_ns: Option<u64>,
    /// What was counted below the kernel; of gaps only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<Below>,
    /// Start of the complete trace, `CLOCK_MONOTONIC`, ns: the last restart of tracing.
    pub armed_ns: u64,
    /// Stop of the trace, `CLOCK_MONOTONIC`, ns.
    pub frozen_ns: u64,
}

/// Layer below the kernel that can take a CPU away without an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Taker {
    /// The firmware only.
    #[default]
    Firmware,
    /// A hypervisor.
    Hypervisor,
    /// None: the clock counts instructions.
    Nobody,
}

impl Facts {
    /// Whether a silent CPU is likely to have been taken away.
    fn may_be_taken(&self) -> bool {
        self.taker == Taker::Hypervisor
    }

    /// Whether a CPU is never taken away.
    fn never_stands_still(&self) -> bool {
        self.taker == Taker::Nobody
    }
}

/// The names of kernel functions by address.
pub type Symbols<'a> = &'a dyn Fn(u64) -> Option<String>;

/// Explains a late wake-up; `None` if the trace does not cover it.
///
/// `cycle` and `due_ns` of the result are 0; the caller fills them in.
pub fn explain(trace: &Trace, subject: &Subject, facts: &Facts, symbols: Symbols<'_>) -> Option<Explanation> {
    if !is_covered(trace, subject, facts, subject.woke_ns) {
        return None;
    }
    let (asked, subject) = (subject.priority, &subject.as_shown(trace));
    let (wake, pieces, baseline) = match subject.waits_for {
        WaitsFor::Nothing => (Wake::default(), vec![subject.gap()], Baseline::default()),
        _ => {
            let wake = Wake::find(trace, subject);
            (wake, wake.pieces(subject), Baseline::of(trace, subject))
        }
    };
    let inherited = Inherited::of(trace);
    let scene = Scene {
        trace,
        subject,
        asked,
        facts,
        symbols,
        baseline,
        inherited,
        wake: &wake,
        inside: None,
        activations: Vec::new(),
    };
    Some(explanation(&scene, &pieces, subject.woke_ns))
}

/// Whether the trace covers a wake-up and what follows it until `end_ns`.
fn is_covered(trace: &Trace, subject: &Subject, facts: &Facts, end_ns: u64) -> bool {
    let (due, woke) = (subject.due_ns, subject.woke_ns);
    let is_in_order = due <= woke && woke <= end_ns;
    let is_whole = |cpu: &CpuEvents| !cpu.lacks(due, end_ns);
    is_in_order
        && facts.armed_ns <= due
        && facts.frozen_ns >= end_ns
        && trace.covers(subject.cpu, due)
        && (subject.waits_for != WaitsFor::Nothing || trace.cpu(subject.cpu).is_some_and(is_whole))
}

/// The explanation of these pieces, which end at `end_ns`.
fn explanation(scene: &Scene<'_>, pieces: &[Piece], end_ns: u64) -> Explanation {
    let mut segments: Vec<Segment> = pieces.iter().flat_map(|piece| scene.judge(piece)).collect();
    let mut shares = shares::roll_up(&segments);
    if let Some(inside) = scene.inside {
        code::place(&mut shares, &segments, &inside.activation, &inside.samples, scene.subject.due_ns);
    }
    shares::keep_longest(&mut segments, |segment| (segment.at, segment.length));
    Explanation {
        cpu: scene.subject.cpu,
        latency: Span(end_ns - scene.subject.due_ns),
        phases: pieces.iter().map(Piece::length).fold(Vec::new(), joined),
        shares,
        segments,
        doubts: doubts(scene.trace, scene.subject, end_ns, pieces),
        ..Explanation::default()
    }
}

/// Joins consecutive phases of the same kind.
fn joined(mut phases: Vec<PhaseLength>, next: PhaseLength) -> Vec<PhaseLength> {
    match phases.last_mut().filter(|last| last.phase == next.phase) {
        Some(last) => last.length = Span(last.length.ns() + next.length.ns()),
        None => phases.push(next),
    }
    phases
}

/// Sentences on gaps in the events that make the explanation less certain.
fn doubts(trace: &Trace, subject: &Subject, end_ns: u64, pieces: &[Piece]) -> Vec<String> {
    let mut cpus: Vec<u32> = pieces.iter().map(|piece| piece.cpu).chain([subject.cpu]).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let mut doubts = Vec::new();
    for cpu in cpus {
        let Some(events) = trace.cpu(cpu) else { continue };
        if events.lacks(subject.due_ns, end_ns) {
            doubts.push(format!("events of CPU {cpu} were lost meanwhile"));
        }
        let broken = timeline::broken_switches(events, subject.due_ns, end_ns);
        if broken > 0 {
            let what = crate::wording::things(broken, "switch");
            doubts.push(format!("{what} of CPU {cpu} left no event"));
        }
    }
    doubts
}

#[cfg(test)]
mod tests;
