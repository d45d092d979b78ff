//! The raw result of one cell: counts and samples, never derived numbers.

mod cobalt;
mod cost;
mod instrument;
mod lab;
mod ledger;
mod load;
mod machine;
mod noise;
mod packets;
mod refused;
mod response;
mod tracers;
mod watch;

use crate::{
    Cell, CellId, CpuSet, ExplainRecord, Histogram, Host, Method, MonoTime, Period, Policy, Slice, Span, Task,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub use cobalt::{CobaltRecord, SwitchReason};
pub use cost::{AllBatches, CostRecord, OperationRecord, SkippedOperation};
pub use instrument::{InstrumentRecord, InstrumentThread};
pub use lab::{GuestThread, HostSideRecord, LabRecord};
pub use ledger::Ledger;
pub use load::{LoadFailure, LoadRecord, LoadSecond, ProgramRecord};
pub use machine::MachineSecond;
pub use noise::NoiseRecord;
pub use packets::PacketReleases;
pub use refused::{CallLimit, RefusedCall, StartPlace};
pub use response::{AnswerParts, OwnExchange, ResponseRecord, TargetRecord};
pub use tracers::{HwlatGaps, HwlatRecord, OsnoiseRecord, TRACERS, TimerlatRecord, TracersRecord};
pub use watch::{
    ChainRecord, ChainStage, CountedName, FoundPeriod, InterruptTime, NamedTime, OpenActivation, OpenKind, OtherThread,
    PhaseKind, PhaseRecord, Releases, SettingChange, SleepTime, ThreadState, ThrottledTime, TimeAccount, WatchRecord,
    WatchedThread,
};

/// The version of [`Record`] that this program writes.
pub const RECORD_FORMAT: u32 = 2;

/// The measurement of one cell, complete and raw, so that later versions can apply their statistics to old records.
///
/// Invariant: the [`Ledger`] of each thread is balanced ([`ThreadRecord::is_consistent`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Record {
    /// [`RECORD_FORMAT`] of the program that wrote it.
    pub format: u32,
    /// Name and version of the program that wrote it.
    pub tool: String,
    /// The cell as requested.
    pub cell: Cell,
    /// Identity of the cell.
    pub cell_id: CellId,
    /// Wall-clock time of the first measured cycle, ms since 1970-01-01 UTC.
    #[serde(deserialize_with = "crate::words::units::started")]
    pub started_unix_ms: u64,
    /// Due time of the first measured cycle, `CLOCK_MONOTONIC`, ns.
    #[serde(rename = "started_mono_ns")]
    pub started: MonoTime,
    /// Measured time, ns; shorter than requested when interrupted.
    #[serde(rename = "measured_ns")]
    pub measured: Span,
    /// Reason of the end.
    pub ended: Ended,
    /// One entry for each measured CPU.
    pub threads: Vec<ThreadRecord>,
    /// Settings of the clock that the threads waited by; empty for a clock that cannot be set.
    #[serde(default)]
    pub clock_steps: Vec<ClockStep>,
    /// Median time, ns, between two successive readings of the clock of its due times, after the last cycle: the
    /// smallest measurable latency. `null` in records of versions that did not measure it.
    #[serde(rename = "clock_reading_ns", default, skip_serializing_if = "Option::is_none")]
    pub clock_reading: Option<Span>,
    /// The language whose sleep was measured; `null` for every method but `sleep`.
    #[serde(default)]
    pub runtime: Option<RuntimeRecord>,
    /// The outside program that measured, with its result; `null` for every method but `program`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instrument: Option<Box<InstrumentRecord>>,
    /// Messages over the link besides answers in time; `null` for every method but `response`, and where a device
    /// triggers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseRecord>,
    /// Activity of each part of the load; empty without a load.
    #[serde(rename = "loads", alias = "load", default, deserialize_with = "load::one_or_many")]
    #[schemars(with = "Vec<LoadRecord>")]
    pub loads: Vec<LoadRecord>,
    /// Guest of the measurement; `null` for the running kernel of this machine.
    #[serde(default)]
    pub lab: Option<LabRecord>,
    /// Explanations of late wake-ups; `null` unless requested.
    #[serde(default)]
    pub explained: Option<ExplainRecord>,
    /// Runs of the command for spikes; `null` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_spike: Option<OnSpikeRecord>,
    /// Results of the kernel's tracers after the cell, under the same load; `null` unless requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracers: Option<TracersRecord>,
    /// Costs of the operations of the cost suite; `null` for every method but `cost`, which has no waiting threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostRecord>,
    /// Activations of the watched threads; `null` for every method but `watch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Box<WatchRecord>>,
    /// Settings of the machine that were changed for the cell; empty when none were.
    #[serde(default)]
    pub prepared: Vec<PreparedSetting>,
    /// Activity of the machine in each second.
    pub machine: Vec<MachineSecond>,
    /// The machine before the cell. Shared, because thousands of records have the same snapshot.
    pub host_before: Arc<Host>,
    /// The machine after the cell.
    pub host_after: Arc<Host>,
}

/// Reason of the end of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// At the end of the requested time.
    #[default]
    Completed,
    /// Earlier, by a signal.
    Interrupted,
    /// Earlier, by a wake-up later than the cell allows ([`Conditions::stop_above`](crate::Conditions::stop_above)).
    Stopped,
}

/// Runs of the command for spikes ([`Conditions::on_spike`](crate::Conditions::on_spike)).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OnSpikeRecord {
    /// Number of runs.
    pub runs: u64,
    /// Number of spikes without a run, because the previous one had not ended.
    pub skipped: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Reason of the first failure, with its output; `null` when none failed.
    pub reason: Option<String>,
}

/// A step of the method's clock during the measurement: due times by it moved against other clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClockStep {
    /// Time of detection, ns after the first measured due time, by `CLOCK_MONOTONIC`.
    #[serde(rename = "at_ns")]
    pub at: Span,
    /// Size of the step, ns; negative when the clock was set back.
    pub step_ns: i64,
}

/// The implementation of the measured language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RuntimeRecord {
    /// Name and version that the implementation reports, like `CPython 3.11.2`; for C that of its library.
    pub version: String,
    /// Path of the interpreter or virtual machine; for compiled languages of the compiler.
    pub program: String,
}

/// The record of one measured thread.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThreadRecord {
    /// CPU that it was pinned to; for a deadline thread, which cannot be pinned, the CPU that it belongs to.
    pub cpu: u32,
    /// Its period, ns, if it differs from that of the cell ([`Conditions::period_step`](crate::Conditions)).
    /// `null`: the period of the cell.
    #[serde(rename = "period_ns", default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Period>,
    /// Length, ns, of the stretches of time from [`Record::started`] that its slices divide, where the threads of the
    /// cell have different periods: a slice holds the cycles due in one stretch. `null`: slices have equal numbers of
    /// cycles.
    #[serde(rename = "stretch_ns", default, skip_serializing_if = "Option::is_none")]
    pub stretch: Option<Span>,
    /// First measured due time, ns after that of the record ([`Record::started`]).
    #[serde(rename = "offset_ns", default)]
    pub offset: Span,
    /// Upper bound, ns, of the unknown delay of all due times of the kernel, where they count from a moment inside a
    /// system call (`itimer`) or a wake-up (`deadline`). `null`: exact, or unknown.
    #[serde(rename = "origin_uncertainty_ns", default)]
    pub origin_uncertainty: Option<Span>,
    /// Expirations that the kernel counted as overrun, `timer_getoverrun(2)`; `null` for methods without, or when the
    /// thread did not end.
    #[serde(default)]
    pub timer_overruns: Option<u64>,
    /// Its settings, read back from the kernel.
    pub achieved: Achieved,
    /// Due times in the measured window.
    pub cycles_due: u64,
    /// Wake-ups recorded.
    pub recorded: u64,
    /// Due times without a wake-up of their own, already past when the thread could wait again; of a cell that measures
    /// answers, those whose trigger was not sent in time. [`ThreadRecord::ledger`] tells how many of them were seen.
    pub missed: u64,
    /// Samples lost because the buffer was full.
    pub lost: u64,
    /// Due times passed over while the thread stopped the trace of a late wake-up, or for which its waker made no
    /// hand-off: neither missed nor late.
    #[serde(default)]
    pub passed_over: u64,
    /// Wake-ups before their due time; part of the recorded ones.
    pub early: u64,
    /// The wait still open when the cell ended; `null` when none was open.
    pub censored: Option<Censored>,
    /// All recorded latencies.
    pub histogram: Histogram,
    /// One row a second, without seconds that have no due time.
    pub seconds: Vec<Second>,
    /// Histograms of consecutive intervals of the window.
    pub slices: Vec<Slice>,
    /// Triggers that were never answered, by the length of the wait: a lower bound of the latency. In slices as above,
    /// without empty ones. `null` for a cell that measures no answers, and in records of versions that omitted late
    /// answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<Vec<Slice>>,
    /// The largest latencies, largest first.
    pub worst: Vec<Worst>,
    /// Wake-ups later than the deadline, joined into episodes.
    pub episodes: Episodes,
    /// Resources used by the thread; `null` when it did not end.
    pub usage: Option<Usage>,
    /// Counters of Cobalt between the first and the last cycle; `null` for every method but `cobalt` and
    /// `response:oob`, or when the thread did not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cobalt: Option<CobaltRecord>,
    /// Counts of a loop that never waits; `null` for every method but `noise`, or when the thread did not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseRecord>,
}

impl ThreadRecord {
    /// Its period, in a record of `cell`.
    pub fn period_in(&self, cell: &Cell) -> Period {
        self.period.unwrap_or(cell.period)
    }

    /// The due time of `cycle` in a record of `cell`, ns after that of the record. Offsets of equal periods
    /// ([`Conditions::distance`](crate::Conditions)) are left out.
    pub fn due_ns(&self, cycle: u64, cell: &Cell) -> u64 {
        cycle.saturating_mul(self.period_in(cell).ns()).saturating_add(self.lead().ns())
    }

    /// The first measured due time of a thread with a period of its own, after that of the record; 0 for others.
    pub fn lead(&self) -> Span {
        if self.period.is_some() { self.offset } else { Span(0) }
    }

    /// The number of triggers that were never answered.
    pub fn never_answered(&self) -> u64 {
        self.unanswered.iter().flatten().fold(0, |sum, slice| sum.saturating_add(slice.histogram.n))
    }

    /// Whether the counts add up: its ledger is balanced, and every recorded wake-up is in the tables.
    pub fn is_consistent(&self) -> bool {
        // Which of the missed due times were seen makes no difference to the sum.
        self.ledger(&Task::Cyclic(Method::CLOCK_NANOSLEEP)).is_balanced()
            && self.recorded == self.histogram.n
            && self.early <= self.recorded
    }
}

/// The settings of a measured thread as the kernel reports them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Achieved {
    /// `sched_getattr(2)`.
    pub policy: Policy,
    /// `sched_getaffinity(2)`.
    pub cpus: CpuSet,
    /// Changes of both from outside, seen at a look once a second, up to ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<SettingChange>,
    /// `PR_GET_TIMERSLACK`, ns; 0 for real-time threads, which have none.
    pub timer_slack_ns: u64,
    /// Locked memory of the process, bytes (`VmLck`); 0 when nothing is locked.
    pub memory_locked_bytes: u64,
    /// Value read from `/dev/cpu_dma_latency` while it was held open, us; `null` when not set.
    pub cpu_dma_latency_us: Option<u32>,
}

/// A setting of the machine that was changed for the cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PreparedSetting {
    /// The changed file or process.
    pub what: String,
    /// Value before the cell.
    pub before: String,
    /// Value during the cell, as read back.
    pub during: String,
    /// Value at the end of the cell, before it was restored; `null` when it could not be read.
    pub at_end: Option<String>,
}

/// A wait still open when the cell ended: a lower bound of its latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Censored {
    /// Index of the cycle waited for, counted from the first measured one; negative during warm-up.
    pub cycle: i64,
    /// Latency so far, ns.
    pub at_least_ns: u64,
}

/// One second of one thread, by due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Second {
    /// Index of the second in the measured window, from 0.
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
    /// Due times missed by wake-ups of this second, plus its triggers that were never answered.
    pub missed: u64,
}

/// One of the largest latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Worst {
    /// Latency, ns.
    pub latency_ns: i64,
    /// Index of its cycle, counted from the first measured one.
    pub cycle: u64,
}

/// Misses of the deadline, joined when less than a second apart.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Episodes {
    /// Number of all episodes, listed or not.
    pub count: u64,
    /// The first episodes, up to 1000.
    pub first: Vec<Episode>,
}

impl Episodes {
    /// Most episodes that are listed, and the gap, ns, from which a late wake-up begins another one.
    const LISTED: usize = 1000;
    const GAP_NS: u64 = Span::SECOND.0;

    /// Adds a late wake-up that was due at `due_ns`, given as an episode of its own: it joins `open`, the last episode,
    /// or closes that one and takes its place.
    pub fn join(&mut self, open: &mut Option<Episode>, due_ns: u64, new: Episode) {
        match open {
            Some(open) if due_ns < open.ended_ns.saturating_add(Episodes::GAP_NS) => {
                open.last_cycle = new.last_cycle;
                open.count += new.count;
                open.worst_ns = open.worst_ns.max(new.worst_ns);
                open.ended_ns = new.ended_ns;
            }
            open => {
                let ended = open.replace(new);
                self.close(ended);
            }
        }
    }

    /// Counts an episode that has ended, if there is one, and lists it if there is room.
    pub fn close(&mut self, ended: Option<Episode>) {
        let Some(episode) = ended else { return };
        self.count += 1;
        if self.first.len() < Episodes::LISTED {
            self.first.push(episode);
        }
    }
}

/// A run of wake-ups later than the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Episode {
    /// Cycle of its first late wake-up, counted from the first measured one.
    pub first_cycle: u64,
    /// Cycle of its last late wake-up.
    pub last_cycle: u64,
    /// Late wake-ups in it.
    pub count: u64,
    /// Largest latency, ns.
    pub worst_ns: i64,
    /// Time of its last late wake-up, ns after the first measured due time.
    pub ended_ns: u64,
}

/// Resources used by a measured thread between the barrier and its end, `getrusage(2)` with `RUSAGE_THREAD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Usage {
    /// CPU time in user space, us.
    pub user_us: u64,
    /// CPU time in the kernel, us.
    pub system_us: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Calls of the memory allocator; any number but 0 is a defect of this program.
    pub allocations: u64,
}
