//! What made a wake-up late: its time divided into phases and owners, and what is said to be the cause.

mod asked;
mod cause;

use crate::{Histogram, Span};
use serde::{Deserialize, Serialize};

pub use asked::Explain;
pub use cause::{Cause, Evidence};

/// A stretch between the due time of a wake-up and its first reading of the clock. They follow each other in this order,
/// and any of them may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// From the due time until the thread had begun to wait: it was not asleep when it was due.
    NotAsleep,
    /// Of an answer: from the sending of the trigger until the thread had begun to wait.
    Sending,
    /// Of an answer: from then until it came to this machine. The way, and who answers.
    Away,
    /// From the due time until the kernel was to let the timer expire: what timer slack allows.
    Slack,
    /// From the expiry of the timer, or from when a device was due, until its interrupt began.
    Expiry,
    /// From the interrupt until the thread was being woken.
    Handler,
    /// From the waking until the thread was switched in.
    Queue,
    /// From the switch until the clock was read.
    Return,
    /// A stretch in which the events are missing that would divide it.
    Undivided,
}

/// Who had the CPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Owner {
    /// Name of the program, interrupt or softirq: `stress-ng-vm`, `interrupt 36 virtio1-req`, `softirq RCU`, `idle`.
    pub name: String,
    /// Id of the thread; `null` for what is no thread.
    pub pid: Option<i32>,
}

/// A stretch of a late wake-up with one owner and one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Segment {
    /// When it began, ns after the due time.
    #[serde(rename = "at_ns")]
    pub at: Span,
    /// Its length, ns.
    #[serde(rename = "length_ns")]
    pub length: Span,
    /// The phase that it is part of.
    pub phase: Phase,
    /// Who had the CPU.
    pub owner: Owner,
    /// Why the wake-up had to wait for it.
    pub cause: Cause,
    /// The other reading, if there are two.
    pub or: Option<Cause>,
    /// How sure that is.
    pub evidence: Evidence,
    /// Where in the kernel the owner was, or what was found, in words; `null` when there is nothing to say.
    pub place: Option<String>,
}

/// What one cause, with one owner, took of a late wake-up in all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Share {
    /// The phase in which it took most.
    pub phase: Phase,
    /// Who had the CPU; of several threads of one program the one with the longest stretch.
    pub owner: Owner,
    /// Threads of that name; 1 for what is no thread.
    pub threads: u32,
    /// Why the wake-up had to wait.
    pub cause: Cause,
    /// The other reading, if there are two.
    pub or: Option<Cause>,
    /// How sure that is: the weakest of its stretches.
    pub evidence: Evidence,
    /// Its time in all, ns.
    #[serde(rename = "total_ns")]
    pub total: Span,
    /// Its longest stretch, ns.
    #[serde(rename = "longest_ns")]
    pub longest: Span,
    /// Of how many stretches it is the sum.
    pub pieces: u32,
    /// Where in the kernel the owner was, or what was found, at the longest stretch.
    pub place: Option<String>,
}

/// The length of one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseLength {
    /// Which.
    pub phase: Phase,
    /// How long, ns; never 0.
    #[serde(rename = "length_ns")]
    pub length: Span,
}

/// One late wake-up, explained.
///
/// Invariant: the phases add up to the latency, and so do the shares ([`Explanation::is_complete`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// The CPU that the thread was made for.
    pub cpu: u32,
    /// Index of the cycle, counted from the first measured one; negative in the warm-up.
    pub cycle: i64,
    /// When it was due, ns after the first measured cycle of the record was due; negative in the warm-up.
    pub due_ns: i64,
    /// How late it was, ns.
    #[serde(rename = "latency_ns")]
    pub latency: Span,
    /// The phases in their order, those without length left out.
    pub phases: Vec<PhaseLength>,
    /// What took the time, largest first; the first is the blame.
    pub shares: Vec<Share>,
    /// The longest stretches, in time, for a picture: up to [`Explanation::STRETCHES`]. They need not cover the latency.
    pub segments: Vec<Segment>,
    /// What makes the explanation less sure, in words; empty when nothing does.
    pub doubts: Vec<String>,
}

impl Explanation {
    /// Stretches that are kept of one explanation.
    pub const STRETCHES: usize = 40;

    /// Whether phases and shares add up to the latency.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let sum = |spans: &mut dyn Iterator<Item = Span>| spans.map(|span| u128::from(span.ns())).sum::<u128>();
        let latency = u128::from(self.latency.ns());
        sum(&mut self.phases.iter().map(|phase| phase.length)) == latency
            && sum(&mut self.shares.iter().map(|share| share.total)) == latency
    }

    /// The time, ns, that is said with this evidence.
    #[must_use]
    pub fn time_with(&self, evidence: Evidence) -> Span {
        Span(self.shares.iter().filter(|share| share.evidence == evidence).map(|share| share.total.ns()).sum())
    }

    /// What took most of the time.
    #[must_use]
    pub fn blame(&self) -> Option<&Share> {
        self.shares.first()
    }
}

/// What a cause took of all explained wake-ups of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CauseTotal {
    /// The cause.
    pub cause: Cause,
    /// The other reading, if there are two.
    pub or: Option<Cause>,
    /// Its time in all of them, ns.
    #[serde(rename = "total_ns")]
    pub total: Span,
    /// The most that it took of one, ns.
    #[serde(rename = "worst_ns")]
    pub worst: Span,
    /// Wake-ups of which it took something.
    pub wakeups: u64,
    /// Wake-ups of which it took most.
    pub blamed: u64,
    /// Names of those that took most by it, largest first, up to five.
    pub owners: Vec<String>,
}

/// How late the interrupts of a thread's wake-ups were: of all of them, as far as they were seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IrqLatency {
    /// The CPU that the thread was made for.
    pub cpu: u32,
    /// From the due time to the handler of the timer.
    pub histogram: Histogram,
}

/// What answers to triggers, and interrupts of devices, took within this machine: of all of them, as far as they were seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerStages {
    /// The CPU that the thread was made for.
    pub cpu: u32,
    /// From the interrupt until the thread was being woken.
    pub handler: Histogram,
    /// From then until it was switched in.
    pub queue: Histogram,
}

/// A late wake-up that no trace covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotCovered {
    /// The CPU that the thread was made for.
    pub cpu: u32,
    /// When it was due, ns after the first measured cycle of the record was due; negative in the warm-up.
    pub due_ns: i64,
    /// How late it was, ns.
    #[serde(rename = "latency_ns")]
    pub latency: Span,
}

/// What explaining a cell came to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplainRecord {
    /// The first threshold, ns: a later wake-up is a spike. `null`: none was known before the cell ended.
    #[serde(rename = "above_ns")]
    pub above: Option<Span>,
    /// The last threshold, ns; it rises once as many spikes are kept as were asked for.
    #[serde(rename = "above_at_end_ns")]
    pub above_at_end: Option<Span>,
    /// Wake-ups later than the threshold was when they came.
    pub spikes: u64,
    /// Those of them that were explained.
    pub explained: u64,
    /// Those that the trace did not cover: it stood still for another one, or had just begun again.
    pub not_covered: u64,
    /// The latest of those; `null` when the trace covered all, and in old runs.
    #[serde(default)]
    pub latest_not_covered: Option<NotCovered>,
    /// How long the trace stood still in all, ns: wake-ups meanwhile are not among those of `irq`. `null` in old runs.
    #[serde(default, rename = "stood_still_ns")]
    pub stood_still: Option<Span>,
    /// How many times events were overwritten before they were read, for the same. `null` in old runs.
    #[serde(default)]
    pub overwritten: Option<u64>,
    /// The longest time, ns, that a thread took to stop the trace; `null` when none did.
    #[serde(rename = "longest_freeze_ns")]
    pub longest_freeze: Option<Span>,
    /// Events that were read.
    #[serde(default)]
    pub events: u64,
    /// CPU time, us, of the thread that read and explained them; `null` when that cannot be read.
    #[serde(default)]
    pub explaining_us: Option<u64>,
    /// Time, ns, of all explained wake-ups.
    #[serde(rename = "late_ns")]
    pub late: Span,
    /// That time by evidence, ns: direct, inferred, two readings, cannot tell.
    pub evidence_ns: [u64; 4],
    /// How late the interrupt of every wake-up was; empty where the kernel has no events of timers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub irq: Vec<IrqLatency>,
    /// Of methods that wait for answers, the stages of every one; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<AnswerStages>,
    /// What could not be traced here, and which answers that costs.
    pub missing: Vec<String>,
    /// What took the time, largest first.
    pub causes: Vec<CauseTotal>,
    /// The worst explained wake-ups, worst first.
    pub worst: Vec<Explanation>,
}

#[cfg(test)]
mod tests;
