//! Counts of a thread that never waits.

use crate::Span;
use serde::{Deserialize, Serialize};

/// What the loop of one thread counted. Its gaps are the latencies of the thread
/// ([`ThreadRecord`](crate::ThreadRecord)); the cycle of a gap is that of its begin.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NoiseRecord {
    /// The counter that was read: `tsc`, `cntvct_el0`, `clock_gettime`.
    pub counter: String,
    /// Longest gap that counts as none, ns.
    #[serde(rename = "threshold_ns")]
    pub threshold: Span,
    /// Time of one reading, ps: the median of batches before the first cycle.
    pub reading_ps: u64,
    /// Number of readings.
    pub readings: u64,
    /// Number of gaps above the threshold, those without room in the log included.
    pub gaps: u64,
    /// Sum of their lengths, ns.
    #[serde(rename = "lost_ns")]
    pub lost: Span,
    /// Time from the first due time to the last reading, ns. A gap that ends later than the cell is in it.
    #[serde(rename = "observed_ns")]
    pub observed: Span,
}
