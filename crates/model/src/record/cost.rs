//! What the operations of the cost suite took, batch by batch.

use crate::{CpuSet, Policy};
use serde::{Deserialize, Serialize};

/// What a cell of method `cost` measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CostRecord {
    /// The policy of the suite's processes, `sched_getattr(2)`.
    pub policy: Policy,
    /// The CPU that they shared, `sched_getaffinity(2)`.
    pub cpus: CpuSet,
    /// What `/dev/cpu_dma_latency` said while it was held, us; `null` when left alone.
    pub cpu_dma_latency_us: Option<u32>,
    /// Time, ns, between two readings of the clock with nothing in between, the median of many: so much of every batch is
    /// the clock's.
    pub clock_ns: u64,
    /// What was measured, in the order of the suite.
    pub operations: Vec<OperationRecord>,
    /// What was not.
    pub skipped: Vec<SkippedOperation>,
}

/// The batches of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationRecord {
    /// Group and name: `syscall/read`.
    pub name: String,
    /// Operations in a batch, 1 at least.
    pub per_batch: u64,
    /// Time of each batch, ns, with that of the clock; ascending, not in the order of time. Never empty.
    pub batches_ns: Vec<u64>,
}

/// An operation that could not be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SkippedOperation {
    /// Group and name.
    pub name: String,
    /// Why.
    pub reason: String,
}
