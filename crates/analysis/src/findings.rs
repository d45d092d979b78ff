//! Doubts and causes as values that travel with the numbers.

mod cell;
mod coincidence;
mod cost;
mod importance;
mod imported;
mod load;
pub(crate) mod machine;
mod prepared;
mod run;
mod stalls;
mod steadiness;
mod turns;
mod uncertainty;
mod wording;

use crate::stats::course::Measure;
use crate::summary::cell::CellSummary;
use crate::summary::pool::Pool;
use model::{Entry, Header, Level, Policy, Preemption};
use serde::Serialize;

pub use imported::ImportedFinding;
pub(crate) use imported::of_imported;
pub(crate) use run::progress as run_progress;
pub use steadiness::{Changed, Drifted};
pub(crate) use turns::Realtime;

/// Something a reader has to know before believing a number, with the numbers that say so.
///
/// `Display` is one plain sentence of at most about 160 characters: what, how much, and what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Finding {
    /// This program called its allocator inside the measured section: a defect.
    Allocations {
        /// Calls.
        allocations: u64,
    },
    /// Samples had no room and are in no number.
    Lost {
        /// Samples.
        lost: u64,
    },
    /// The machine was not the same during the whole run.
    HostChanged {
        /// Which fact.
        fact: &'static str,
        /// What it was.
        before: Option<String>,
        /// What it became.
        after: Option<String>,
    },
    /// A condition, or a fact about the machine, is not what it was in the run that this one is compared with.
    BaselineDiffers {
        /// Which.
        fact: &'static str,
        /// What it was there.
        baseline: Option<String>,
        /// What it is in this run.
        now: Option<String>,
        /// Whether it prevents a comparison, which was forced.
        prevents: bool,
    },
    /// A load was not what it says during all of the measured time.
    LoadFailed {
        /// Which part of the load.
        load: String,
        /// What happened.
        reason: String,
        /// When it was first noticed, ms into its measurement.
        at_ms: u64,
        /// In how many measurements.
        measurements: u64,
    },
    /// A load did less than at its start.
    LoadFell {
        /// Which part of the load.
        load: String,
        /// The lowest of its rates, as a share of the first one.
        share: f64,
        /// In how many measurements it was below what it had to hold, or half.
        measurements: u64,
    },
    /// A load did nothing at all: no operation, or of an outside program no CPU time.
    LoadDidNothing {
        /// Which part of the load.
        load: String,
        /// In how many measurements.
        measurements: u64,
    },
    /// A setting that was made for the cells did not stay: something sets it, too.
    SettingLost {
        /// The file or process.
        what: String,
        /// What it was set to.
        set: String,
        /// What it was when a cell had ended; `None` when it could not be read.
        found: Option<String>,
        /// In how many measurements.
        measurements: u64,
    },
    /// Measurements were ended early by a signal.
    Interrupted {
        /// How many.
        measurements: u64,
    },
    /// Measurements were ended early by a wake-up later than they allow.
    Stopped {
        /// How many.
        measurements: u64,
    },
    /// The command that runs at spikes failed.
    OnSpikeFailed {
        /// How often.
        failed: u64,
        /// How often it was started.
        runs: u64,
        /// Why, the first time.
        reason: String,
    },
    /// Fewer measurements were done than the plan asks for.
    NotAllCellsDone {
        /// Measurements done.
        done: u64,
        /// Measurements asked for.
        planned: u64,
    },
    /// Measurements of a cell that failed each time they were tried, for one reason.
    MeasurementsFailed {
        /// Name of the cell.
        cell: String,
        /// How many.
        measurements: u64,
        /// Why, the last time.
        reason: String,
    },
    /// Combinations of the plan that could not be measured, for one reason.
    Skipped {
        /// Their names.
        cells: Vec<String>,
        /// Why, and what would allow it.
        reason: String,
    },
    /// Threads were still waiting when their block ended.
    Starved {
        /// Waits that were open.
        waits: u64,
        /// The longest was already late by this much, ns.
        at_least_ns: u64,
        /// Wake-ups that were recorded all the same.
        samples: u64,
    },
    /// Threads woke for less than half of their due times: they did not get the CPU.
    StarvedOfCpu {
        /// Due times they woke for.
        woke: u64,
        /// Due times there were.
        due: u64,
    },
    /// Due times were past before the thread could sleep again.
    Missed {
        /// Due times missed.
        missed: u64,
        /// Wake-ups later than a period, at the histogram's resolution.
        stalls: u64,
        /// The longest, ns.
        longest_ns: i64,
        /// Whether the longest had not ended.
        at_least: bool,
        /// p99 with the missed due times filled in, ns; `None` when refused or only a lower bound.
        p99_by_due_time_ns: Option<i64>,
    },
    /// Answers came when the next trigger was due already.
    LateAnswers {
        /// How many.
        late: u64,
        /// Triggers that were sent.
        triggers: u64,
    },
    /// Triggers were never answered.
    NeverAnswered {
        /// How many.
        never: u64,
        /// Triggers that were sent.
        triggers: u64,
        /// The shortest time for which one of them was waited for, ns; `null` where that is not known.
        at_least_ns: Option<i64>,
        /// p99 with them, ns, which is a lower bound; `null` when refused.
        p99_by_due_time_ns: Option<i64>,
    },
    /// Due times had no trigger.
    NotSent {
        /// How many.
        unsent: u64,
        /// Due times there were.
        due: u64,
    },
    /// Records of an older version leave late answers out, and those that never came.
    AnswersLeftOut {
        /// How many.
        left_out: u64,
    },
    /// Relative waits begin when the thread is ready, so each period is longer than asked.
    Drift {
        /// Periods that a program with due times would have had, and this one did not.
        periods: u64,
        /// Periods in the measured time.
        due: u64,
    },
    /// The clock that was waited by was set.
    ClockSet {
        /// How often.
        steps: u64,
        /// By how much at most, ns; negative when it was set back.
        largest_ns: i64,
    },
    /// The kernel's due times count from a moment that is not known exactly.
    OriginUncertain {
        /// Latencies are at most this much smaller than shown, ns.
        at_most_ns: u64,
    },
    /// A normal thread was late under a load that left a real-time one on time: it is one of many that want the CPU.
    TakesTurns {
        /// Processes of the load.
        processes: u64,
        /// The largest latency, ns.
        max_ns: i64,
        /// The real-time policy it is compared with, measured under the same load.
        realtime: Policy,
        /// The largest latency with that policy, ns.
        realtime_max_ns: i64,
    },
    /// Misses of the deadline were not spread evenly.
    MissStorms {
        /// Episodes.
        episodes: u64,
        /// Upper limit of their rate at 95 %, from the differences within the run.
        upper_per_hour: f64,
    },
    /// How much the blocks of a cell differ from each other.
    ByBlock {
        /// Of which quantile: p99 where each block has enough wake-ups above it, else p50.
        level: Level,
        /// How many blocks.
        blocks: u64,
        /// The smallest of them, ns.
        least_ns: i64,
        /// The largest, ns.
        most_ns: i64,
    },
    /// Numbers changed once during the cell: no interval of them holds for the whole of it.
    LatencyChanged {
        /// Which, and when.
        changes: Vec<Changed>,
    },
    /// Numbers rise or fall during the cell.
    LatencyDrifts {
        /// Which.
        drifts: Vec<Drifted>,
    },
    /// Calm and rough stretches follow each other.
    LatencyInWaves {
        /// The numbers in which they do.
        what: Vec<Measure>,
    },
    /// The largest latencies come at regular distances.
    RegularSpikes {
        /// The distance, ns of measured time.
        every_ns: u64,
    },
    /// The largest latencies are apart from all others: an event with a rate, not the end of a tail.
    OwnPopulation {
        /// Blocks of time (seconds, or a few of them) with such a latency.
        seconds: u64,
        /// The largest of the others, ns.
        from_ns: u64,
        /// The smallest of them, ns.
        to_ns: u64,
    },
    /// How late it may get in a longer time, if the same causes act.
    TailLimit {
        /// How many times as long.
        times: f64,
        /// Upper limit of the level exceeded once in that time, at 95 %, ns.
        upper_ns: u64,
    },
    /// The largest latency is the time for which real-time threads are stopped, or normal ones are made to wait.
    MaxIsThrottleQuantum {
        /// The largest latency, ns.
        max_ns: i64,
        /// That time, us.
        quantum_us: u64,
        /// What sets it.
        limiter: Limiter,
        /// Whether it is about a real-time thread that is stopped.
        stops_realtime: bool,
    },
    /// The kernel stops real-time threads that use up their share.
    RtThrottling {
        /// What they may use of each period, us.
        runtime_us: u64,
        /// The period, us.
        period_us: u64,
    },
    /// Normal threads have a share of each CPU that real-time threads cannot take. What is said of it is the kernel's
    /// default, which cannot be read back without debugfs.
    FairServer {
        /// What normal threads get of each period, us.
        runtime_us: u64,
        /// The period, us.
        period_us: u64,
    },
    /// Part of each wake-up is the timer slack of normal threads.
    TimerSlack {
        /// The slack, ns.
        slack_ns: u64,
    },
    /// Measured in a guest whose time is its instructions.
    VirtualTime {
        /// How many cells.
        cells: u64,
    },
    /// Measured in a guest whose instructions are translated by a program of this machine.
    EmulatedTime {
        /// How many cells.
        cells: u64,
    },
    /// Measured in a guest of this machine.
    GuestTime {
        /// How many cells.
        cells: u64,
    },
    /// Measured inside a virtual machine.
    VirtualMachine {
        /// The hypervisor.
        hypervisor: String,
    },
    /// Measured inside a container.
    Container {
        /// Its kind.
        container: String,
    },
    /// A measured thread had page faults.
    PageFaults {
        /// Without I/O.
        minor: u64,
        /// With I/O.
        major: u64,
    },
    /// The hypervisor took time while measuring: a coincidence, never a proven cause.
    Steal {
        /// CPU time taken, ms.
        steal_ms: u64,
        /// Share of the CPU time there was, 0 to 1; `None` when the number of CPUs is not known.
        share: Option<f64>,
    },
    /// Something happened in most of the worst seconds, and seldom in the others: no proven cause.
    Coincidence {
        /// What.
        what: String,
        /// In how many of the worst seconds.
        in_worst: usize,
        /// How many those are.
        worst: usize,
        /// In how many of the other seconds.
        in_others: usize,
        /// How many those are.
        others: usize,
    },
    /// Wake-ups before their due time.
    Early {
        /// How many.
        early: u64,
        /// The earliest, ns before its due time.
        earliest_ns: u64,
    },
    /// A quantile is not shown.
    FewSamples {
        /// Which.
        level: Level,
        /// Independent samples the recorded ones are worth.
        n_eff: u64,
        /// Time to measure beyond what was measured, ns; `None` when nothing was.
        more_ns: Option<u64>,
    },
    /// Quantiles have no interval.
    FewSlices {
        /// Stretches of time recorded.
        slices: u64,
        /// How many it takes.
        need: u64,
    },
    /// The samples resemble their neighbours so much that they are worth far fewer independent ones.
    Dependent {
        /// Wake-ups recorded.
        samples: u64,
        /// Independent samples they are worth at p99.
        n_eff: u64,
    },
    /// The kernel is not `PREEMPT_RT`.
    NotRealtimeKernel {
        /// What it is instead.
        preemption: Preemption,
    },
    /// CPUs start slowly after idling.
    Governor {
        /// Governors in use.
        governors: Vec<String>,
    },
    /// The clock is slow to read.
    ClockSource {
        /// Its name.
        clock_source: String,
    },
    /// Operations of the cost suite that were not measured.
    OperationsSkipped {
        /// Which.
        operations: Vec<String>,
        /// Why.
        reason: String,
    },
    /// The CPU of the cost suite was not always as fast: costs are of a mixture.
    FrequencyChanged {
        /// Lowest frequency seen, kHz.
        lowest_khz: u64,
        /// Highest frequency seen, kHz.
        highest_khz: u64,
    },
    /// Memory was not locked.
    MemoryUnlocked,
    /// CPUs were free to sleep deeply.
    DmaLatencyLeft,
    /// What is too rare to have been seen.
    VisibilityFloor {
        /// Measured time of the least measured cell, ns.
        measured_ns: u64,
        /// A cause rarer than once in this time has more than a 5 % chance of not having been seen, ns.
        floor_ns: u64,
    },
}

/// What keeps real-time threads from using all of a CPU's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Limiter {
    /// Real-time throttling (`sched_rt_runtime_us`), before Linux 6.12.
    Throttling,
    /// The deadline server of normal threads, since Linux 6.12.
    FairServer,
}

/// What is true of the run as a whole, most important first.
pub(crate) fn of_run(header: &Header, entries: &[Entry], cells: &[CellSummary]) -> Vec<Finding> {
    let mut findings = run::findings(header, entries, cells);
    findings.extend(machine::findings(header, entries));
    findings.sort_by_key(Finding::importance);
    findings
}

/// What is true of one cell of the run, most important first.
pub(crate) fn of_cell(
    header: &Header,
    pool: &Pool<'_>,
    summary: &CellSummary,
    realtime: &Realtime<'_>,
) -> Vec<Finding> {
    let mut findings = cell::findings(header, pool, summary);
    findings.extend(turns::finding(&header.host, pool, summary, realtime));
    findings.sort_by_key(Finding::importance);
    findings
}
