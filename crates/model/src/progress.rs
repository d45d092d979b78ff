//! What a running cell says about itself once a second.

use crate::Span;
use serde::{Deserialize, Serialize};

/// A running cell, seen at one instant. Written as one JSON line; not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Time since the first measured cycle was due, ns; 0 during warm-up.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Span,
    /// One entry for each measured CPU.
    pub threads: Vec<ThreadProgress>,
}

/// One measured thread, seen at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadProgress {
    /// The CPU it is pinned to.
    pub cpu: u32,
    /// Wake-ups recorded so far.
    pub n: u64,
    /// Smallest latency so far, ns.
    pub min_ns: Option<i64>,
    /// The latest latency, ns.
    pub last_ns: Option<i64>,
    /// Mean of the latencies so far, ns.
    pub mean_ns: Option<i64>,
    /// Largest latency so far, ns.
    pub max_ns: Option<i64>,
    /// Due times missed so far.
    pub missed: u64,
}
