//! What the kernel's tracers of latency and noise saw, raw.

use crate::Histogram;
use serde::{Deserialize, Serialize};

/// What `timerlat` and `osnoise` saw after a cell, one after the other, under the load of the cell, for as long as it measured
/// (Documentation/trace/timerlat-tracer.rst and osnoise-tracer.rst).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TracersRecord {
    /// One entry for each measured CPU; `null`: the kernel has no such tracer.
    pub timerlat: Option<Vec<TimerlatRecord>>,
    /// One entry for each measured CPU; `null`: the kernel has no such tracer.
    pub osnoise: Option<Vec<OsnoiseRecord>>,
}

/// How late the kernel's own periodic timer was on one CPU, at the period of the cell, and how late the thread that it wakes,
/// which had the policy of the cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimerlatRecord {
    /// Which.
    pub cpu: u32,
    /// From the due time to the timer's handler.
    pub irq: Histogram,
    /// From the due time to the thread; it holds the way to the handler.
    pub thread: Histogram,
    /// Lines of either that the trace had no room for.
    pub lost: u64,
}

/// What kept a thread from running that always wants to (`other` at nice 0), on one CPU: sums over `samples`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OsnoiseRecord {
    /// Which.
    pub cpu: u32,
    /// Stretches that ended and were told.
    pub samples: u64,
    /// Their length, us.
    pub runtime_us: u64,
    /// Time of it that the thread did not have, us.
    pub noise_us: u64,
    /// The longest single interference, us; `null` without samples.
    pub max_single_us: Option<u64>,
    /// Interferences that no work of the kernel explains: hardware and firmware, or the virtual machine.
    pub hardware: u64,
    /// Interferences by non-maskable interrupts.
    pub nmi: u64,
    /// By interrupts.
    pub irq: u64,
    /// By soft interrupts; with PREEMPT_RT they run in threads.
    pub softirq: u64,
    /// By other threads.
    pub thread: u64,
}
