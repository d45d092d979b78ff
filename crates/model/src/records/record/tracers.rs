//! Raw results of the kernel's tracers of latency and noise.

use crate::Histogram;
use serde::{Deserialize, Serialize};

/// The kernel's tracers that follow a cell, in the order in which they run.
pub const TRACERS: [&str; 3] = ["timerlat", "osnoise", "hwlat"];

/// Results of `timerlat`, `osnoise` and `hwlat` after a cell, one after the other, under the load of the cell, each for
/// its measured time (Documentation/trace/timerlat-tracer.rst, osnoise-tracer.rst and hwlat_detector.rst).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TracersRecord {
    /// One entry for each measured CPU; `null`: the kernel has no such tracer.
    pub timerlat: Option<Vec<TimerlatRecord>>,
    /// One entry for each measured CPU; `null`: the kernel has no such tracer.
    pub osnoise: Option<Vec<OsnoiseRecord>>,
    /// One entry for each measured CPU; `null`: the kernel has no such tracer, or the record is older than this entry.
    #[serde(default)]
    pub hwlat: Option<Vec<HwlatRecord>>,
}

/// Gaps of a loop that reads the clock with interrupts off, in windows of 10 ms every 20 ms, on one CPU: what is below
/// the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HwlatRecord {
    /// The CPU.
    pub cpu: u32,
    /// What its loop saw.
    #[serde(flatten)]
    pub gaps: HwlatGaps,
}

/// Gaps that the loop of `hwlat` saw.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HwlatGaps {
    /// CPU time of the loop's thread, us; `null`: not readable.
    pub watched_us: Option<u64>,
    /// A gap is longer than this, us.
    pub threshold_us: u64,
    /// Number of gaps; of a kernel that does not count them (before 5.9), of windows with a gap.
    pub gaps: u64,
    /// The longest gap, us; `null` without one.
    pub longest_us: Option<u64>,
    /// Non-maskable interrupts within windows with a gap, which interrupts that are off do not hold back.
    pub nmi: u64,
    /// Lines that did not fit into the trace buffer.
    pub lost: u64,
}

/// Latency of the kernel's own periodic timer on one CPU, at the period of the cell, and of the thread that it wakes,
/// which had the policy of the cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TimerlatRecord {
    /// The CPU.
    pub cpu: u32,
    /// From the due time to the timer's handler.
    pub irq: Histogram,
    /// From the due time to the thread; includes the time to the handler.
    pub thread: Histogram,
    /// Lines of either that did not fit into the trace buffer.
    pub lost: u64,
}

/// Noise seen by a thread that is always runnable (`other` at nice 0), on one CPU: sums over `samples`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OsnoiseRecord {
    /// The CPU.
    pub cpu: u32,
    /// Number of completed and reported samples.
    pub samples: u64,
    /// Their length, us.
    pub runtime_us: u64,
    /// Time of it in which the thread did not run, us.
    pub noise_us: u64,
    /// The longest single interference, us; `null` without samples.
    pub max_single_us: Option<u64>,
    /// Interferences without a cause in the kernel: hardware and firmware, or the virtual machine.
    pub hardware: u64,
    /// Interferences by non-maskable interrupts.
    pub nmi: u64,
    /// Interferences by interrupts.
    pub irq: u64,
    /// Interferences by soft interrupts; with PREEMPT_RT they run in threads.
    pub softirq: u64,
    /// Interferences by other threads.
    pub thread: u64,
}
