//! Data of the monitor: a measurement without an end, in windows of some minutes.

use crate::words::word::words;
use crate::{Cause, CpuSet, Explanation, Histogram, Period, Policy, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The version of the monitor's history that this program writes.
pub const MONITOR_FORMAT: u32 = 1;

/// One line of the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum MonitorLine {
    /// A start of the monitor, with its settings.
    Start(MonitorStart),
    /// A window that has ended.
    Window(MonitorWindow),
}

/// A start of the monitor: what it measures, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MonitorStart {
    /// [`MONITOR_FORMAT`] of the program that wrote it.
    pub format: u32,
    /// Name and version of the program that wrote it.
    pub tool: String,
    /// Time of the start, ms since 1970-01-01 UTC.
    #[serde(deserialize_with = "crate::words::units::started")]
    pub started_unix_ms: u64,
    /// Name of the machine; `null` when unknown.
    pub hostname: Option<String>,
    /// Release of the kernel; `null` when unknown.
    pub kernel_release: Option<String>,
    /// CPUs that are measured, each by one thread.
    pub cpus: CpuSet,
    /// Policy of the measured threads.
    pub policy: Policy,
    /// Period of each thread, ns.
    #[serde(rename = "period_ns")]
    pub period: Period,
    /// Length of a window, ns.
    #[serde(rename = "window_ns")]
    pub window: Span,
    /// The reason why late wake-ups are not explained; `null` when they are.
    pub unexplained: Option<String>,
    /// Whether the memory of the monitor is locked: if not, its own page faults can make a wake-up late.
    pub memory_locked: bool,
}

/// The measurement of one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MonitorWindow {
    /// Begin, ms since 1970-01-01 UTC.
    #[serde(deserialize_with = "crate::words::units::started")]
    pub started_unix_ms: u64,
    /// End, ms since 1970-01-01 UTC.
    #[serde(deserialize_with = "crate::words::units::ended")]
    pub ended_unix_ms: u64,
    /// Time measured, ns: the window without its gaps.
    #[serde(rename = "measured_ns")]
    pub measured: Span,
    /// Each measured CPU.
    pub cpus: Vec<MonitoredCpu>,
    /// Times within the window, or before it, that were not measured.
    pub gaps: Vec<MonitorGap>,
    /// Late wake-ups that were explained, including those that are not kept.
    pub explained: u64,
    /// Late wake-ups above the threshold of that time that the trace did not cover.
    pub not_covered: u64,
    /// The worst explained wake-ups, worst first.
    pub spikes: Vec<MonitorSpike>,
    /// CPU time, us, that the monitor took; `null` when it cannot be read.
    pub cpu_time_us: Option<u64>,
}

/// The wake-ups of one CPU in a window. A wake-up belongs to the window in which the thread woke.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MonitoredCpu {
    /// The CPU.
    pub cpu: u32,
    /// Due times already past when the thread could wait again.
    pub missed: u64,
    /// Wake-ups for which there was no room in the log.
    pub lost: u64,
    /// Time, ns, by which a wait that was open at the end of the window was already late; `null`: none was.
    #[serde(rename = "open_ns")]
    pub open: Option<Span>,
    /// Due time of the latest wake-up, ms since 1970-01-01 UTC; `null` without wake-ups.
    pub worst_unix_ms: Option<u64>,
    /// Latencies.
    pub histogram: Histogram,
}

impl MonitoredCpu {
    /// The largest latency, ns: a bound from below when a wait was open. `None` without wake-ups and open wait.
    pub fn max_ns(&self) -> Option<i64> {
        let open = self.open.map(|open| i64::try_from(open.ns()).unwrap_or(i64::MAX));
        self.histogram.max_ns.into_iter().chain(open).max()
    }
}

/// An explained late wake-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MonitorSpike {
    /// Due time, ms since 1970-01-01 UTC.
    pub due_unix_ms: u64,
    /// The explanation, without its intervals. Its cycle and due time count from the start or the end of a pause.
    #[serde(flatten)]
    pub explanation: Explanation,
}

/// A time that was not measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MonitorGap {
    /// Begin, ms since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// End, ms since 1970-01-01 UTC.
    pub ended_unix_ms: u64,
    /// Reason.
    pub reason: GapReason,
}

words! {
    /// The reason of a gap.
    json GapReason {
        /// Another punctual measured; the monitor paused.
        Measurement = "measurement",
        /// The machine was suspended, or the wall clock was set.
        Clock = "clock",
        /// The monitor did not run.
        NotRunning = "not_running",
    }
}

/// Counts of latencies in the buckets of a Prometheus histogram.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LatencyBuckets {
    counts: [u64; LatencyBuckets::BOUNDS_NS.len()],
    /// Number of latencies.
    pub n: u64,
    /// Their sum, ns.
    pub sum_ns: i128,
}

impl LatencyBuckets {
    /// Upper bounds of the buckets, included, ns: 1, 2, 5 in each decade from 1 us to 10 s.
    pub const BOUNDS_NS: [u64; 22] = [
        1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000,
        10_000_000, 20_000_000, 50_000_000, 100_000_000, 200_000_000, 500_000_000, 1_000_000_000, 2_000_000_000,
        5_000_000_000, 10_000_000_000,
    ];

    /// Counts one latency; a negative one is in the first bucket.
    pub fn record(&mut self, latency_ns: i64) {
        let ns = u64::try_from(latency_ns).unwrap_or(0);
        let at = Self::BOUNDS_NS.partition_point(|bound| *bound < ns);
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
        self.n += 1;
        self.sum_ns += i128::from(latency_ns);
    }

    /// Each bound with the number of latencies up to it.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        Self::BOUNDS_NS.into_iter().zip(self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        }))
    }
}

/// One CPU since the start of the monitor.
#[derive(Debug, Clone, Default)]
pub struct MonitorTotals {
    /// The CPU.
    pub cpu: u32,
    /// Latencies.
    pub latencies: LatencyBuckets,
    /// Due times already past when the thread could wait again.
    pub missed: u64,
    /// Wake-ups for which there was no room.
    pub lost: u64,
    /// Time by which the present wait is late.
    pub open: Span,
}

/// The present state of a monitor.
#[derive(Debug, Clone)]
pub struct MonitorStatus {
    /// Its settings.
    pub start: MonitorStart,
    /// Each CPU.
    pub cpus: Vec<MonitorTotals>,
    /// The last window that has ended, of this start or, with the same settings, the one before.
    pub last: Option<Arc<MonitorWindow>>,
    /// Whether it pauses, because another measurement runs.
    pub is_paused: bool,
    /// Time measured.
    pub measured: Span,
    /// Time not measured since the start, by reason.
    pub gaps: BTreeMap<GapReason, Span>,
    /// Number of explained late wake-ups, by CPU and largest cause.
    pub causes: BTreeMap<(u32, Cause), u64>,
    /// Number of late wake-ups that the trace did not cover.
    pub not_covered: u64,
    /// Number of windows that could not be written to the history.
    pub unwritten: u64,
    /// CPU time of the monitor; `None` when it cannot be read.
    pub cpu_time: Option<Span>,
}

impl MonitorStatus {
    /// The state at the start. `last` is the last window of an earlier start.
    pub fn at_start(start: MonitorStart, last: Option<Arc<MonitorWindow>>) -> MonitorStatus {
        let cpus = start.cpus.iter().map(|cpu| MonitorTotals { cpu, ..MonitorTotals::default() }).collect();
        MonitorStatus {
            start,
            cpus,
            last,
            is_paused: false,
            measured: Span(0),
            gaps: BTreeMap::new(),
            causes: BTreeMap::new(),
            not_covered: 0,
            unwritten: 0,
            cpu_time: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_included_in_its_bucket_and_the_rest_is_beyond_all() {
        let mut buckets = LatencyBuckets::default();
        for ns in [-5, 0, 1_000, 1_001, 10_000_000_000, 10_000_000_001] {
            buckets.record(ns);
        }
        let counts: Vec<_> = buckets.cumulative().collect();
        assert_eq!(counts[..2], [(1_000, 3), (2_000, 4)]);
        assert_eq!((counts.last(), buckets.n), (Some(&(10_000_000_000, 5)), 6));
        assert_eq!(buckets.sum_ns, 20_000_000_000 + 1_997);
        assert!(LatencyBuckets::BOUNDS_NS.is_sorted());
    }

    #[test]
    fn an_open_wait_counts_as_latency_so_far() {
        let cpu = |open, latencies: &[i64]| MonitoredCpu {
            cpu: 0,
            missed: 0,
            lost: 0,
            open,
            worst_unix_ms: None,
            histogram: Histogram::of(latencies),
        };
        assert_eq!(cpu(None, &[]).max_ns(), None);
        assert_eq!(cpu(Some(Span(7)), &[]).max_ns(), Some(7));
        assert_eq!(cpu(Some(Span(7)), &[9, 3]).max_ns(), Some(9));
    }
}
