//! Explanation of a late wake-up: its latency divided into phases and owners, each with a cause.

mod capture;
mod cause;
mod guest;
mod options;

use crate::words::word::words;
use crate::{Histogram, LayerTotal, Span};
use serde::{Deserialize, Deserializer, Serialize};

pub use capture::{CaptureFile, Captures};
pub use cause::{Cause, CodeFrame, CodePlace, Evidence, SampledAt};
pub use guest::{ClockMark, ClockTie, GuestStop, GuestTids, HostLanes, HostPiece, HostState};
pub use options::Explain;

words! {
    /// An interval between the due time of a wake-up and its first clock reading. Phases follow each other in this
    /// order, and any of them may be missing.
    json Phase {
        /// From the due time until the thread began to wait: it was not asleep at the due time.
        #[serde(alias = "not_asleep")]
        NotYetWaiting = "not yet waiting",
        /// Of an answer: from the sending of the trigger until the thread began to wait.
        Sending = "sending",
        /// Of an answer: from then until its arrival at this machine, which includes the link and the peer.
        Away = "away",
        /// From the due time until the latest timer expiry that timer slack allows.
        #[serde(alias = "slack")]
        TimerSlack = "timer slack",
        /// From the expiry of the timer, or from the due time of a device, until its interrupt began.
        #[serde(alias = "expiry")]
        ExpiryToInterrupt = "expiry to interrupt",
        /// From the interrupt until the wake-up of the thread began.
        #[serde(alias = "handler")]
        InterruptToWakeup = "interrupt to wakeup",
        /// From the wake-up until the thread was switched in.
        #[serde(alias = "queue")]
        WakeupToSwitch = "wakeup to switch",
        /// From the switch until the clock reading.
        #[serde(alias = "return")]
        SwitchToUser = "switch to user",
        /// An interval that cannot be divided, because events are missing.
        #[serde(alias = "undivided")]
        WholeWakeUp = "whole wake-up",
        /// Of a watched thread: from its return to the program until its next wait.
        Activation = "activation",
        /// Of a thread that never waits: between two readings of its counter.
        Gap = "gap",
    }
}

/// The thread, interrupt or other code that had the CPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Owner {
    /// Name of the program, interrupt or softirq: `stress-ng-vm`, `interrupt 36 virtio1-req`, `softirq RCU`, `idle`.
    #[serde(deserialize_with = "name_of_owner")]
    pub name: String,
    /// Thread id; `null` for an owner that is not a thread.
    pub pid: Option<i32>,
}

/// Reads the name of an owner.
fn name_of_owner<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer).map(of_today)
}

/// The name of an owner: format 1 has another one for what every wake-up costs.
fn of_today(name: String) -> String {
    if name == "the wake-up itself" { Cause::UsualWakeUp.name().to_owned() } else { name }
}

/// An interval of a late wake-up with one owner and one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Segment {
    /// Start, ns after the due time.
    #[serde(rename = "at_ns")]
    pub at: Span,
    /// Its length, ns.
    #[serde(rename = "length_ns")]
    pub length: Span,
    /// Phase that it is part of.
    pub phase: Phase,
    /// Owner of the CPU.
    pub owner: Owner,
    /// Cause of the delay.
    pub cause: Cause,
    /// The alternative cause, if the trace allows two.
    pub or: Option<Cause>,
    /// Strength of the evidence.
    pub evidence: Evidence,
    /// Place in the kernel where the owner was, or a further observation, as text; `null` when there is none.
    pub place: Option<String>,
}

/// Total share of one cause with one owner in a late wake-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Share {
    /// Phase with most of it.
    pub phase: Phase,
    /// Owner of the CPU; of several threads of one program the one with the longest interval.
    pub owner: Owner,
    /// Number of threads of that name; 1 for an owner that is not a thread.
    pub threads: u32,
    /// Cause of the delay.
    pub cause: Cause,
    /// The alternative cause, if the trace allows two.
    pub or: Option<Cause>,
    /// Strength of the evidence: the weakest of its intervals.
    pub evidence: Evidence,
    /// Total time, ns.
    #[serde(rename = "total_ns")]
    pub total: Span,
    /// Longest interval, ns.
    #[serde(rename = "longest_ns")]
    pub longest: Span,
    /// Number of intervals in the sum.
    pub pieces: u32,
    /// Place in the kernel where the owner was, or a further observation, at the longest interval.
    pub place: Option<String>,
    /// Place in the code of the watched program; `null` without samples of its stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<CodePlace>,
}

/// The length of one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PhaseLength {
    /// The phase.
    pub phase: Phase,
    /// Its length, ns; never 0.
    #[serde(rename = "length_ns")]
    pub length: Span,
}

/// One late wake-up, explained.
///
/// Invariant: the phases add up to the latency, and so do the shares ([`Explanation::is_complete`]).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Explanation {
    /// CPU that the thread belongs to.
    pub cpu: u32,
    /// Index of the cycle, counted from the first measured one; negative in the warm-up.
    pub cycle: i64,
    /// Due time, ns after the first measured due time of the record; negative in the warm-up.
    pub due_ns: i64,
    /// The watched thread; `null` for a measured one. Its latency is the response time, and its due time the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<Owner>,
    /// Latency, ns.
    #[serde(rename = "latency_ns")]
    pub latency: Span,
    /// Phases in their order, without empty ones.
    pub phases: Vec<PhaseLength>,
    /// Shares of the latency, largest first; the first is the main cause.
    pub shares: Vec<Share>,
    /// The longest intervals, in order of time, for a timeline: up to [`Explanation::STRETCHES`]. They need not cover
    /// the latency.
    pub segments: Vec<Segment>,
    /// Reasons that weaken the explanation, as text; empty when there are none.
    pub doubts: Vec<String>,
    /// The guest's threads on the host meanwhile; `null` unless it was measured in a guest that the host traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostLanes>,
    /// Phases into which marks of the program cut a watched activation, by their first passes; none without marks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<MarkTime>,
    /// File below `captures/` with the events that it is made from; `null`: they were not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<String>,
}

impl Explanation {
    /// The most intervals that are kept of one explanation.
    pub const STRETCHES: usize = 40;

    /// Whether phases and shares add up to the latency.
    pub fn is_complete(&self) -> bool {
        let sum = |spans: &mut dyn Iterator<Item = Span>| spans.map(|span| u128::from(span.ns())).sum::<u128>();
        let latency = u128::from(self.latency.ns());
        sum(&mut self.phases.iter().map(|phase| phase.length)) == latency
            && sum(&mut self.shares.iter().map(|share| share.total)) == latency
    }

    /// The time, ns, with this evidence.
    pub fn time_with(&self, evidence: Evidence) -> Span {
        Span(self.shares.iter().filter(|share| share.evidence == evidence).map(|share| share.total.ns()).sum())
    }

    /// The largest share.
    pub fn blame(&self) -> Option<&Share> {
        self.shares.first()
    }
}

/// A mark in one activation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MarkTime {
    /// The mark.
    pub mark: String,
    /// Number of passes.
    pub n: u64,
    /// From the release to the first pass, ns.
    #[serde(rename = "since_release_ns")]
    pub since_release: Span,
    /// From each pass to that of another mark, or to the end, added up, ns.
    #[serde(rename = "length_ns")]
    pub length: Span,
}

/// Share of a cause in all explained wake-ups of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CauseTotal {
    /// The cause.
    pub cause: Cause,
    /// The alternative cause, if the trace allows two.
    pub or: Option<Cause>,
    /// Total time in all of them, ns.
    #[serde(rename = "total_ns")]
    pub total: Span,
    /// Largest time in one of them, ns.
    #[serde(rename = "worst_ns")]
    pub worst: Span,
    /// Number of wake-ups with this cause.
    pub wakeups: u64,
    /// Number of wake-ups in which it is the largest share.
    pub blamed: u64,
    /// The owners with most of its time, largest first, up to five.
    pub owners: Vec<OwnerTotal>,
}

/// Time of one owner with one cause in all explained wake-ups of a cell. Old runs have a name only, as a string.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "NameOrOwner", into = "NameOrOwner")]
pub struct OwnerTotal {
    /// Its name, as in [`Owner::name`].
    pub name: String,
    /// Its time, ns; `None` in old runs.
    pub total: Option<Span>,
    /// Number of wake-ups, or gaps, with it; `None` in old runs.
    pub wakeups: Option<u64>,
}

/// Forms of an owner in runs.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
enum NameOrOwner {
    /// Its name, in old runs.
    Name(String),
    /// Its name, its time, ns, and the number of wake-ups or gaps with it; `null` in old runs.
    Owner {
        name: String,
        total_ns: Span,
        #[serde(default)]
        wakeups: Option<u64>,
    },
}

impl From<NameOrOwner> for OwnerTotal {
    fn from(form: NameOrOwner) -> OwnerTotal {
        match form {
            NameOrOwner::Name(name) => OwnerTotal { name: of_today(name), total: None, wakeups: None },
            NameOrOwner::Owner { name, total_ns, wakeups } => {
                OwnerTotal { name: of_today(name), total: Some(total_ns), wakeups }
            }
        }
    }
}

impl From<OwnerTotal> for NameOrOwner {
    fn from(owner: OwnerTotal) -> NameOrOwner {
        match owner.total {
            Some(total_ns) => NameOrOwner::Owner { name: owner.name, total_ns, wakeups: owner.wakeups },
            None => NameOrOwner::Name(owner.name),
        }
    }
}

/// Delay of the timer interrupts of a thread's wake-ups: of all that the trace covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct IrqLatency {
    /// CPU that the thread belongs to.
    pub cpu: u32,
    /// From the due time to the handler of the timer.
    pub histogram: Histogram,
}

/// Stages of answers to triggers and to device interrupts within this machine: of all that the trace covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AnswerStages {
    /// CPU that the thread belongs to.
    pub cpu: u32,
    /// From the interrupt until the wake-up of the thread began.
    #[serde(alias = "handler")]
    pub interrupt_to_wakeup: Histogram,
    /// From then until the thread was switched in.
    #[serde(alias = "queue")]
    pub wakeup_to_switch: Histogram,
}

/// A late wake-up that no trace covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotCovered {
    /// CPU that the thread belongs to.
    pub cpu: u32,
    /// Due time, ns after the first measured due time of the record; negative in the warm-up.
    pub due_ns: i64,
    /// Latency, ns.
    #[serde(rename = "latency_ns")]
    pub latency: Span,
}

/// Results of explaining a cell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ExplainRecord {
    /// First threshold, ns: a later wake-up is a spike. `null`: none was known before the cell ended.
    #[serde(rename = "above_ns")]
    pub above: Option<Span>,
    /// Last threshold, ns; it rises once the requested number of spikes is kept.
    #[serde(rename = "above_at_end_ns")]
    pub above_at_end: Option<Span>,
    /// Number of wake-ups later than the threshold at that time.
    pub spikes: u64,
    /// Number of explained spikes.
    pub explained: u64,
    /// Number of spikes that the trace did not cover: it was stopped for another spike, or had just restarted.
    pub not_covered: u64,
    /// The latest of those; `null` when the trace covered all, and in old runs.
    #[serde(default)]
    pub latest_not_covered: Option<NotCovered>,
    /// The latest of those, as many as explanations are kept, latest first; only where a host may explain them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others_not_covered: Vec<NotCovered>,
    /// Total time, ns, in which the trace was stopped: `irq` lacks wake-ups of this time. `null` in old runs.
    #[serde(default, rename = "stood_still_ns")]
    pub stood_still: Option<Span>,
    /// Number of times that events were overwritten before they were read: `irq` lacks wake-ups then, too. `null` in
    /// old runs.
    #[serde(default)]
    pub overwritten: Option<u64>,
    /// Longest time, ns, that a thread took to stop the trace; `null` when none did.
    #[serde(rename = "longest_freeze_ns")]
    pub longest_freeze: Option<Span>,
    /// Number of events read.
    #[serde(default)]
    pub events: u64,
    /// CPU time, us, of the thread that reads and explains them; `null` when it cannot be read.
    #[serde(default)]
    pub explaining_us: Option<u64>,
    /// Total latency, ns, of all explained wake-ups.
    #[serde(rename = "late_ns")]
    pub late: Span,
    /// That time by evidence, ns: direct, inferred, ambiguous, undetermined.
    pub evidence_ns: [u64; 4],
    /// Delay of the interrupt of every wake-up; empty where the kernel has no timer events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub irq: Vec<IrqLatency>,
    /// Stages of every answer, with methods that wait for answers; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<AnswerStages>,
    /// Largest error, ns, of the guest's times on its host; `null` unless the host explains them, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_error_ns: Option<u64>,
    /// Events that could not be traced here, with the explanations that this makes impossible.
    pub missing: Vec<String>,
    /// Causes, largest first.
    pub causes: Vec<CauseTotal>,
    /// What each layer of the machine took; empty in old runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerTotal>,
    /// The worst explained wake-ups, worst first.
    pub worst: Vec<Explanation>,
    /// Captures on their way to the directory of the run; empty in the run itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<CaptureFile>,
}

#[cfg(test)]
mod tests;
