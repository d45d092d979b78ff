//! Costs of the operations of the cost suite, batch by batch.

use crate::{CpuSet, Policy};
use serde::{Deserialize, Serialize};

/// The record of a cell of method `cost`, or of a load `cost` that timed its operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CostRecord {
    /// The policy of the suite's processes, `sched_getattr(2)`.
    pub policy: Policy,
    /// The CPU shared by them, `sched_getaffinity(2)`; of a load its CPUs, each with a process of its own.
    pub cpus: CpuSet,
    /// Value read from `/dev/cpu_dma_latency` while it was held open, us; `null` when not set, and for a load.
    pub cpu_dma_latency_us: Option<u32>,
    /// Time, ns, between two successive clock readings, the median of many: the part of every batch that the clock
    /// takes.
    pub clock_ns: u64,
    /// Measured operations, in the order of the suite.
    pub operations: Vec<OperationRecord>,
    /// Operations that were not measured.
    pub skipped: Vec<SkippedOperation>,
}

/// The batches of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OperationRecord {
    /// Group and name: `syscall/read`.
    pub name: String,
    /// Operations in a batch, at least 1.
    pub per_batch: u64,
    /// Time of each batch, ns, including the clock; ascending, not in the order of time. Never empty.
    pub batches_ns: Vec<u64>,
    /// Sums over every batch, of which `batches_ns` may be a random sample; `null` where it holds all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<AllBatches>,
}

/// Sums over every batch of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AllBatches {
    /// Number of batches, at least 1.
    pub batches: u64,
    /// Time of all of them, ns, including the clock for each.
    pub total_ns: u64,
    /// Time of the longest, ns, including the clock.
    pub worst_ns: u64,
}

/// An operation that could not be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SkippedOperation {
    /// Group and name.
    pub name: String,
    /// Reason.
    pub reason: String,
}
