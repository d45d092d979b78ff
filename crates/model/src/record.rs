//! The raw result of one cell: counts and samples, never derived numbers.

mod cost;
mod lab;
mod load;
mod machine;
mod response;
mod tracers;

use crate::{Cell, CellId, CpuSet, ExplainRecord, Histogram, Host, MonoTime, Policy, Span};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub use cost::{CostRecord, OperationRecord, SkippedOperation};
pub use lab::LabRecord;
pub use load::{LoadFailure, LoadRecord, LoadSecond, ProgramRecord};
pub use machine::MachineSecond;
pub use response::{AnswerParts, OwnExchange, ResponseRecord, TargetRecord};
pub use tracers::{OsnoiseRecord, TimerlatRecord, TracersRecord};

/// The version of [`Record`] that this program writes.
pub const RECORD_FORMAT: u32 = 1;

/// What one cell measured, complete and raw, so that an old record gets tomorrow's statistics.
///
/// Invariant, for each thread: `recorded + missed + lost + passed over + censored = cycles_due`, where `censored` counts 1 for a wait
/// still open at the end, unless that wait began in the warm-up ([`ThreadRecord::is_consistent`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// [`RECORD_FORMAT`] of the program that wrote it.
    pub format: u32,
    /// Name and version of the program that wrote it.
    pub tool: String,
    /// What was asked.
    pub cell: Cell,
    /// Identity of the cell.
    pub cell_id: CellId,
    /// Wall-clock time of the first measured cycle, ms since 1970-01-01 UTC.
    #[serde(deserialize_with = "crate::date::started")]
    pub started_unix_ms: u64,
    /// When the first measured cycle was due, `CLOCK_MONOTONIC`, ns.
    #[serde(rename = "started_mono_ns")]
    pub started: MonoTime,
    /// Time really measured, ns; shorter than asked when interrupted.
    #[serde(rename = "measured_ns")]
    pub measured: Span,
    /// How it came to its end.
    pub ended: Ended,
    /// One entry for each measured CPU.
    pub threads: Vec<ThreadRecord>,
    /// When somebody set the clock that the threads waited by; empty for a clock that nobody can set.
    #[serde(default)]
    pub clock_steps: Vec<ClockStep>,
    /// Median time, ns, between two readings in a row of the clock that its due times are known by, after the last cycle: the
    /// smallest latency that can be told. `null` in records of versions that did not read it.
    #[serde(rename = "clock_reading_ns", default, skip_serializing_if = "Option::is_none")]
    pub clock_reading: Option<Span>,
    /// The language whose sleep was measured; `null` for every method but `sleep`.
    #[serde(default)]
    pub runtime: Option<RuntimeRecord>,
    /// What came over the link beside answers in time; `null` for every method but `response`, and where a device triggers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseRecord>,
    /// What each part of the load did; empty without one.
    #[serde(rename = "loads", alias = "load", default, deserialize_with = "load::one_or_many")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<LoadRecord>"))]
    pub loads: Vec<LoadRecord>,
    /// The guest that it was measured in; `null` for the kernel that runs on this machine.
    #[serde(default)]
    pub lab: Option<LabRecord>,
    /// What made late wake-ups late; `null` unless that was asked for.
    #[serde(default)]
    pub explained: Option<ExplainRecord>,
    /// How the command fared that runs at spikes; `null` unless one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_spike: Option<OnSpikeRecord>,
    /// What the kernel's tracers saw after the cell, under the same load; `null` unless that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracers: Option<TracersRecord>,
    /// What the operations of the cost suite took; `null` for every method but `cost`, which has no threads that wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostRecord>,
    /// Settings of the machine that were changed for the cell; empty when none were.
    #[serde(default)]
    pub prepared: Vec<PreparedSetting>,
    /// What the machine did in each second.
    pub machine: Vec<MachineSecond>,
    /// The machine before the cell. Thousands of records say the same of it, and share that.
    pub host_before: Arc<Host>,
    /// The machine after the cell.
    pub host_after: Arc<Host>,
}

/// How a cell came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// After the time that was asked.
    Completed,
    /// Earlier, by a signal.
    Interrupted,
    /// Earlier, by a wake-up later than the cell allows ([`Conditions::stop_above`](crate::Conditions::stop_above)).
    Stopped,
}

/// How the command fared that runs at spikes ([`Conditions::on_spike`](crate::Conditions::on_spike)).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OnSpikeRecord {
    /// How often it was started.
    pub runs: u64,
    /// Spikes at which it was not, because it still ran for one before.
    pub skipped: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Why the first of them did, with what it said; `null` when none did.
    pub reason: Option<String>,
}

/// The clock of the method was set while measuring: due times by it moved against all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockStep {
    /// When it was noticed, ns after the first measured cycle was due, by `CLOCK_MONOTONIC`.
    #[serde(rename = "at_ns")]
    pub at: Span,
    /// By how much, ns; negative when it was set back.
    pub step_ns: i64,
}

/// A language as it was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RuntimeRecord {
    /// Name and version that the implementation gives itself, like `CPython 3.11.2`; for C that of its library.
    pub version: String,
    /// Path of the interpreter or virtual machine; for compiled languages of the compiler.
    pub program: String,
}

/// What one measured thread recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadRecord {
    /// The CPU it was pinned to; for a deadline thread, which cannot be pinned, the CPU it was made for.
    pub cpu: u32,
    /// When its first measured cycle was due, ns after that of the record ([`Record::started`]).
    #[serde(rename = "offset_ns", default)]
    pub offset: Span,
    /// How much later than known, ns, the kernel's due times may all be: where they count from a moment inside a
    /// system call (`itimer`) or a wake-up (`deadline`). `null`: known exactly, or not known.
    #[serde(rename = "origin_uncertainty_ns", default)]
    pub origin_uncertainty: Option<Span>,
    /// Expirations that the kernel counted as overrun, `timer_getoverrun(2)`; `null` for methods without, or when the
    /// thread never came to its end.
    #[serde(default)]
    pub timer_overruns: Option<u64>,
    /// Its settings, read back from the kernel.
    pub achieved: Achieved,
    /// Due times in the measured window.
    pub cycles_due: u64,
    /// Wake-ups recorded.
    pub recorded: u64,
    /// Due times already past when the thread could sleep again; of a cell that measures answers, those whose trigger was
    /// not sent in time.
    pub missed: u64,
    /// Samples for which there was no room.
    pub lost: u64,
    /// Due times passed over because the thread was stopping the trace of a late wake-up: neither missed nor late.
    #[serde(default)]
    pub passed_over: u64,
    /// Wake-ups before their due time; they are among the recorded.
    pub early: u64,
    /// The wait that had not ended when the cell did; `null` when none was open.
    pub censored: Option<Censored>,
    /// All recorded latencies.
    pub histogram: Histogram,
    /// One row a second, those without any due time left out.
    pub seconds: Vec<Second>,
    /// Histograms of consecutive stretches of the window.
    pub slices: Vec<Slice>,
    /// Triggers that were never answered, by how long each was waited for: its latency is at least this. In slices as above, without
    /// the empty ones. `null` of a cell that measures no answers, and in records of versions that left late answers out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<Vec<Slice>>,
    /// The largest latencies, largest first.
    pub worst: Vec<Worst>,
    /// Wake-ups later than the deadline, joined to episodes.
    pub episodes: Episodes,
    /// What the thread itself used; `null` when it never came to its end.
    pub usage: Option<Usage>,
}

impl ThreadRecord {
    /// How many triggers were never answered.
    #[must_use]
    pub fn never_answered(&self) -> u64 {
        self.unanswered.iter().flatten().fold(0, |sum, slice| sum.saturating_add(slice.histogram.n))
    }

    /// Whether the counts add up: every due time left a sample, was missed, found no room, was passed over, was never answered,
    /// or is still waited for.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        let open = u64::from(self.censored.is_some_and(|wait| wait.cycle >= 0));
        let accounted = [self.recorded, self.missed, self.lost, self.passed_over, self.never_answered(), open];
        let accounted = accounted.into_iter().try_fold(0, u64::checked_add);
        accounted == Some(self.cycles_due) && self.recorded == self.histogram.n && self.early <= self.recorded
    }
}

/// The settings of a measured thread as the kernel reports them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Achieved {
    /// `sched_getattr(2)`.
    pub policy: Policy,
    /// `sched_getaffinity(2)`.
    pub cpus: CpuSet,
    /// `PR_GET_TIMERSLACK`, ns; 0 for real-time threads, which have none.
    pub timer_slack_ns: u64,
    /// Locked memory of the process, bytes (`VmLck`); 0 when nothing is locked.
    pub memory_locked_bytes: u64,
    /// What `/dev/cpu_dma_latency` said while it was held, us; `null` when left alone.
    pub cpu_dma_latency_us: Option<u32>,
}

/// A setting of the machine that was changed for the cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PreparedSetting {
    /// The file, or the process, that was changed.
    pub what: String,
    /// What it was before.
    pub before: String,
    /// What it was set to, and read back as.
    pub during: String,
    /// What it was when the cell had ended, before it was put back; `null` when it could not be read.
    pub at_end: Option<String>,
}

/// A wait that was still open when the cell ended: its latency is at least this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Censored {
    /// Index of the cycle waited for, counted from the first measured one; negative during warm-up.
    pub cycle: i64,
    /// How late the thread was already, ns.
    pub at_least_ns: u64,
}

/// One second of one thread, by due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Second {
    /// Which second of the measured window, from 0.
    pub second: u64,
    /// Wake-ups recorded.
    pub n: u64,
    /// Largest latency, ns; `null` without wake-ups.
    pub max_ns: Option<i64>,
    /// Index of the cycle with the largest latency, counted from the first measured one.
    pub max_cycle: Option<u64>,
    /// Sum of the latencies, ns.
    pub sum_ns: i64,
    /// Wake-ups later than the deadline.
    pub over_deadline: u64,
    /// Due times missed by wake-ups of this second, and triggers of it that were never answered.
    pub missed: u64,
}

/// The latencies of one stretch of the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slice {
    /// First cycle, counted from the first measured one.
    pub first_cycle: u64,
    /// Cycles in the slice.
    pub cycles: u64,
    /// Latencies whose due time lies in the slice.
    pub histogram: Histogram,
}

/// One of the largest latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Worst {
    /// Latency, ns.
    pub latency_ns: i64,
    /// Index of its cycle, counted from the first measured one.
    pub cycle: u64,
}

/// Misses of the deadline, joined when they are closer than a second.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Episodes {
    /// All episodes, also those not listed.
    pub count: u64,
    /// The first of them, up to 1000.
    pub first: Vec<Episode>,
}

/// A stretch of wake-ups later than the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Episode {
    /// Cycle of its first late wake-up, counted from the first measured one.
    pub first_cycle: u64,
    /// Cycle of its last late wake-up.
    pub last_cycle: u64,
    /// Late wake-ups in it.
    pub count: u64,
    /// Largest latency, ns.
    pub worst_ns: i64,
    /// When its last late wake-up came, ns after the first measured cycle was due.
    pub ended_ns: u64,
}

/// What a measured thread used between the barrier and its end, `getrusage(2)` with `RUSAGE_THREAD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// CPU time in user space, us.
    pub user_us: u64,
    /// CPU time in the kernel, us.
    pub system_us: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Switches because the thread waited.
    pub voluntary_switches: u64,
    /// Switches because something else had to run.
    pub involuntary_switches: u64,
    /// Calls of the memory allocator; anything but 0 is a defect of this program.
    pub allocations: u64,
}
