//! A stretch of a measurement, the unit of every interval.

use crate::Histogram;
use serde::{Deserialize, Serialize};

/// The latencies of one interval of the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Slice {
    /// First cycle, counted from the first measured one.
    pub first_cycle: u64,
    /// Cycles in the slice.
    pub cycles: u64,
    /// Latencies whose due time lies in the slice.
    pub histogram: Histogram,
}
