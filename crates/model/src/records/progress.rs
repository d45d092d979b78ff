//! Progress reports of a running cell, once a second.

use crate::{Histogram, Span, plain};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The state of a running cell at one instant. Written as one JSON line; not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Time since the first measured due time, ns; 0 during warm-up.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Span,
    /// One entry for each measured CPU or watched thread.
    pub threads: Vec<ThreadProgress>,
    /// One entry for each part of the load, in the last second.
    pub loads: Vec<LoadProgress>,
}

/// The work of one part of a load in the last second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadProgress {
    /// The part in its typed form: `messaging`.
    pub load: String,
    /// Name of one operation: `message`.
    pub operation: String,
    /// Operations a second; `None` before the first reading, and where they are not counted.
    pub per_second: Option<u64>,
}

/// What tells a measured thread from the others of its cell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// The CPU that it is pinned to.
    Cpu(u32),
    /// A watched thread, which may run on any CPU.
    Thread {
        /// Its name, which the watched program chooses.
        name: String,
        /// Its ID; several threads may have the same name.
        tid: u32,
    },
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measured::Cpu(cpu) => write!(f, "CPU {cpu}"),
            Measured::Thread { name, tid } => write!(f, "{} {tid}", plain(name)),
        }
    }
}

/// The state of one measured thread at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadProgress {
    /// Which thread it is.
    pub thread: Measured,
    /// Wake-ups recorded so far.
    pub n: u64,
    /// Smallest latency so far, ns.
    pub min_ns: Option<i64>,
    /// Most recent latency, ns.
    pub last_ns: Option<i64>,
    /// Mean of the latencies so far, ns.
    pub mean_ns: Option<i64>,
    /// 99th percentile of the latencies so far, ns; `None` while fewer than 10 wake-ups exceed it.
    pub p99_ns: Option<i64>,
    /// Largest latency so far, ns.
    pub max_ns: Option<i64>,
    /// Due times missed so far; of a watched thread, late activations.
    pub missed: u64,
    /// The latencies so far in a few bins.
    pub bins: Vec<Bin>,
    /// The last spikes, in order of time.
    pub spikes: Vec<Spike>,
}

/// The latencies from `lower_ns` to the next 1, 2 or 5 times a power of ten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bin {
    /// Lowest latency, ns: 0 for all below 1 us, or 1, 2 or 5 times a power of ten.
    pub lower_ns: u64,
    /// Wake-ups in it; never 0.
    pub count: u64,
}

/// A wake-up later than the threshold at that time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spike {
    /// Due time, ns since the first measured due time of its thread.
    #[serde(rename = "at_ns")]
    pub at: Span,
    /// Latency, ns.
    pub latency_ns: i64,
    /// The threshold, ns: [`Spike::FACTOR`] times the p99 of about a second before.
    pub above_ns: i64,
}

impl Spike {
    /// Threshold of a spike as a multiple of p99. Twice a latency that one wake-up in a hundred exceeds stands out on
    /// any machine, and is above an evenly spread distribution.
    pub const FACTOR: i64 = 2;
    /// The most spikes that are reported of a thread.
    pub const TOLD: usize = 5;
}

impl Bin {
    /// Upper limit of the first bin, ns.
    pub const FIRST_NS: u64 = 1_000;

    /// Groups a histogram into bins, ascending, without empty ones. A bucket shared by two bins counts in the lower
    /// one: 0.8 % of its value at most.
    pub fn of(histogram: &Histogram) -> Vec<Bin> {
        let mut counts = BTreeMap::new();
        for bucket in histogram.buckets() {
            *counts.entry(Bin::containing(bucket.lower_ns)).or_default() += bucket.count;
        }
        counts.into_iter().map(|(lower_ns, count)| Bin { lower_ns, count }).collect()
    }

    /// Lowest value of the bin of `ns`.
    pub fn containing(ns: u64) -> u64 {
        let power = 10_u64.pow(ns.max(1).ilog10());
        match ns / power {
            _ if ns < Bin::FIRST_NS => 0,
            5.. => 5 * power,
            2.. => 2 * power,
            _ => power,
        }
    }

    /// Lowest value of the bin above the one that begins at `lower_ns`; saturates at the last.
    pub fn after(lower_ns: u64) -> u64 {
        match lower_ns {
            0 => Bin::FIRST_NS,
            // The step from 2 to 5 is the only one that is not twofold.
            _ if lower_ns / 10_u64.pow(lower_ns.ilog10()) == 2 => lower_ns.saturating_mul(5) / 2,
            _ => lower_ns.saturating_mul(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_begin_at_1_2_and_5_times_a_power_of_ten() {
        for (ns, lower_ns) in [
            (0, 0),
            (999, 0),
            (1_000, 1_000),
            (1_999, 1_000),
            (2_000, 2_000),
            (4_999, 2_000),
            (5_000, 5_000),
            (9_999, 5_000),
            (10_000, 10_000),
            (u64::MAX, 10_000_000_000_000_000_000),
        ] {
            assert_eq!(Bin::containing(ns), lower_ns, "{ns}");
        }
        let mut bins = vec![0];
        while bins.len() < 8 {
            bins.push(Bin::after(*bins.last().unwrap()));
        }
        assert_eq!(bins, [0, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000]);
        assert!(bins.iter().all(|lower_ns| Bin::containing(*lower_ns) == *lower_ns));
    }

    #[test]
    fn every_latency_is_in_a_bin() {
        let bins = Bin::of(&Histogram::of(&[-7, 0, 999, 1_000, 1_900, 30_000, i64::MAX]));
        let counts: Vec<_> = bins.iter().map(|bin| (bin.lower_ns, bin.count)).collect();
        assert_eq!(counts, [(0, 3), (1_000, 2), (20_000, 1), (5_000_000_000_000_000_000, 1)]);
        assert_eq!(Bin::of(&Histogram::default()), []);
    }
}
