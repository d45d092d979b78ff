//! Responses of a run: what one run contributes to a history.

use crate::stats::quantile::quantile;
use crate::summary::{due_time, threads};
use punctual_model::{Entry, Order};

/// Due times of a block below which its p99 would be its maximum.
const LEAST_DUE: u64 = 100;

/// Latencies of one block of a cell, over all of its CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockLatencies {
    /// Number of the block, from 0.
    pub block: u32,
    /// Wall-clock time of its first measured cycle, ms since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Wake-ups recorded.
    pub samples: u64,
    /// The 99 % quantile by due time, ns; `None` below 100 due times.
    pub p99_ns: Option<i64>,
    /// Largest latency, ns; a wait that was still open counts with the lateness it had reached.
    pub max_ns: Option<i64>,
}

/// Latencies of each block of the cell with this index, in the order of the blocks.
pub fn blocks(entries: &[Entry], cell_index: usize) -> Vec<BlockLatencies> {
    let of_cell = entries.iter().filter(|entry| entry.planned.cell_index == cell_index);
    let mut blocks: Vec<_> = of_cell.map(block).collect();
    blocks.order_by_key(|block| block.block);
    blocks
}

fn block(entry: &Entry) -> BlockLatencies {
    let by_due_time = due_time::of_record(&entry.record);
    BlockLatencies {
        block: entry.planned.block,
        started_unix_ms: entry.record.started_unix_ms,
        samples: entry.record.threads.iter().map(|thread| thread.histogram.n).sum(),
        p99_ns: if by_due_time.n < LEAST_DUE { None } else { quantile(&by_due_time, 0.99) },
        max_ns: entry.record.threads.iter().flat_map(threads::maxima).map(|(ns, ..)| ns).max(),
    }
}

/// The geometric mean of the blocks of a run: one late block counts as one of many. `None` without blocks, or if one
/// is unknown.
pub fn typical(values_ns: impl IntoIterator<Item = Option<i64>>) -> Option<f64> {
    let logs = values_ns.into_iter().map(|ns| Some((ns?.max(1) as f64).ln())).collect::<Option<Vec<f64>>>()?;
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}
