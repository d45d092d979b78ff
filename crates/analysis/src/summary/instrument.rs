//! A cell measured by an outside program: what its results contain, and what they leave out.

use crate::summary::pool::Pool;
use punctual_model::{Histogram, ImportedThread, InstrumentRecord, Period, Span};
use serde::Serialize;

/// An outside program and its results in all blocks.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct InstrumentSummary {
    /// The program.
    pub program: String,
    /// Tool and version that its result names.
    pub tool: String,
    /// Kind of its latencies, in its own words.
    pub what: String,
    /// Command line of the first block.
    pub command_line: Vec<String>,
    /// Unit of its values, ns.
    pub resolution_ns: u64,
    /// Samples beyond its histogram, which count as its maximum; `None` if it does not tell how many.
    pub beyond: Option<u64>,
    /// Whether its results have a distribution.
    pub has_distribution: bool,
    /// Period that it reports, ns; `None` if it reports none, or several.
    #[serde(rename = "period_ns")]
    pub period: Option<Period>,
    /// Caveats of its results: sentences without a full stop.
    pub remarks: Vec<String>,
    /// Samples, where every block reports their number.
    #[serde(skip)]
    pub(crate) samples: Option<u64>,
    /// Missed due times, where every block counts them.
    #[serde(skip)]
    pub(crate) missed: Option<u64>,
    /// Extremes that it reports, ns.
    #[serde(skip)]
    pub(crate) extremes: Extremes,
}

/// Smallest, mean and largest latency of all results, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Extremes {
    pub(crate) min_ns: Option<i64>,
    /// `None` unless every result has a mean.
    pub(crate) mean_ns: Option<f64>,
    pub(crate) max_ns: Option<i64>,
    /// Block and CPU of the maximum; the CPU is the first of the cell where the result names none.
    pub(crate) max_at: Option<(u32, u32)>,
}

/// The outside program of a cell; `None` for every other method, or without a record.
pub(crate) fn of(pool: &Pool<'_>) -> Option<InstrumentSummary> {
    let program = pool.cell.task.reporter()?;
    let results: Vec<(u32, &InstrumentRecord)> = (pool.entries.iter())
        .filter_map(|entry| Some((entry.planned.block, entry.record.instrument.as_deref()?)))
        .collect();
    let first = results.first()?.1;
    let threads = || results.iter().flat_map(|(_, record)| &record.result.threads);
    let sum = |of: fn(&ImportedThread) -> Option<u64>| {
        threads().try_fold(0_u64, |all, thread| all.checked_add(of(thread)?)).filter(|_| threads().next().is_some())
    };
    let mut remarks: Vec<String> = results.iter().flat_map(|(_, record)| record.result.remarks.clone()).collect();
    let mut seen = std::collections::HashSet::new();
    remarks.retain(|remark| seen.insert(remark.clone()));
    let periods: Vec<_> = results.iter().map(|(_, record)| record.result.conditions.period).collect();
    let source = &first.result.source;
    let of_samples = |thread: &ImportedThread| thread.samples.or_else(|| thread.histogram.as_ref().map(|h| h.n));
    Some(InstrumentSummary {
        program,
        tool: source
            .version
            .as_ref()
            .map_or_else(|| source.tool.clone(), |version| format!("{} {version}", source.tool)),
        what: first.result.conditions.what.clone(),
        command_line: first.command_line.clone(),
        resolution_ns: results.iter().map(|(_, record)| record.result.resolution.ns()).max().unwrap_or(0),
        beyond: sum(|thread| thread.beyond.map_or(Some(0), |beyond| beyond.samples)),
        has_distribution: threads().all(|thread| thread.histogram.is_some()),
        period: periods.first().copied().flatten().filter(|first| periods.iter().all(|period| *period == Some(*first))),
        remarks,
        samples: sum(of_samples),
        missed: sum(|thread| thread.missed),
        extremes: extremes(pool, &results),
    })
}

fn extremes(pool: &Pool<'_>, results: &[(u32, &InstrumentRecord)]) -> Extremes {
    let threads = || results.iter().flat_map(|(block, record)| record.result.threads.iter().map(|one| (*block, one)));
    let first_cpu = pool.cell.cpus.iter().next().unwrap_or(0);
    let largest =
        threads().filter_map(|(block, thread)| Some((thread.max_ns?, (block, thread.cpu.unwrap_or(first_cpu)))));
    let largest = largest.reduce(|best, next| if next.0 > best.0 { next } else { best });
    // Without their numbers of samples, blocks of one length count alike.
    let is_counted = threads().any(|(_, thread)| thread.samples.is_some());
    let weight = |thread: &ImportedThread| if is_counted { thread.samples.map(|n| n as f64) } else { Some(1.0) };
    let parts: Option<Vec<(f64, f64)>> =
        threads().map(|(_, thread)| Some((thread.mean_ns?, weight(thread)?))).collect();
    let mean = |parts: Vec<(f64, f64)>| {
        let samples: f64 = parts.iter().map(|(_, n)| n).sum();
        (samples > 0.0).then(|| parts.iter().map(|(mean, n)| mean * n).sum::<f64>() / samples)
    };
    Extremes {
        min_ns: threads().filter_map(|(_, thread)| thread.min_ns).min(),
        mean_ns: parts.and_then(mean),
        max_ns: largest.map(|(max_ns, _)| max_ns),
        max_at: largest.map(|(_, at)| at),
    }
}

impl InstrumentSummary {
    /// Mean latency as reported, ns, where the histogram has none, or none as exact; `None` otherwise: most programs
    /// truncate theirs to microseconds.
    pub(crate) fn mean_ns(&self, histogram: &Histogram) -> Option<f64> {
        let is_exact = (2..1_000).contains(&self.resolution_ns);
        self.extremes.mean_ns.filter(|_| self.beyond != Some(0) || histogram.n == 0 || is_exact)
    }

    /// Whether its largest value may be above `limit`, because it is truncated or a sample beyond the histogram.
    pub(crate) fn may_exceed(&self, limit: Span) -> bool {
        let unit_ns = i64::try_from(self.resolution_ns).unwrap_or(i64::MAX);
        let may_be_ns = self.extremes.max_ns.map(|max_ns| max_ns.saturating_add(unit_ns - 1));
        may_be_ns.is_none_or(|ns| u64::try_from(ns).unwrap_or(0) > limit.ns())
    }
}
