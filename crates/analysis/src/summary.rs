//! A run in numbers: for each cell the distribution, its uncertainty, its worst moment, and what to doubt.

mod intensity;

use crate::cost::{self, CostSummary};
use crate::due_time::DueTimes;
use crate::enough::{self, Shortfall};
use crate::finding::{self, Finding, Realtime};
use crate::parallel::on_all_cpus;
use crate::pool::Pool;
use crate::rate::Rate;
use crate::responses::{self, Response};
use crate::steadiness::Steadiness;
use crate::tracers::{self, Stages, Tracers};
use crate::verdict::{Case, Verdict};
use crate::woodruff::{Quantile, estimate_at};
use crate::{Level, explain, name};
use model::{Cell, Entry, ExplainRecord, Header, Histogram, RuntimeRecord, Span};
use serde::Serialize;
use std::borrow::Cow;

pub use intensity::{Busy, LoadRate};

/// What a run says.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSummary {
    /// One for each cell, in the order of the plan; also those without any record.
    pub cells: Vec<CellSummary>,
    /// What is true of the run as a whole, most important first.
    pub findings: Vec<Finding>,
    /// What is missing until the numbers are sure enough; `None` unless the run was to end when they are.
    pub shortfalls: Option<Vec<Shortfall>>,
    /// Whether the machine keeps what the plan requires.
    pub verdict: Verdict,
    /// The same for each limit in each cell; empty when nothing was required.
    pub cases: Vec<Case>,
}

/// What the blocks of one cell say together.
#[derive(Debug, Clone, PartialEq)]
pub struct CellSummary {
    /// The cell.
    pub cell: Cell,
    /// What this run calls it: load and policy, and every other axis that has more than one value.
    pub name: String,
    /// Whether it is the second measurement of a cell in each block (A/A).
    pub again: bool,
    /// Blocks that measured it.
    pub blocks: u32,
    /// Time measured; blocks add up, CPUs do not.
    pub measured: Span,
    /// Wake-ups recorded.
    pub samples: u64,
    /// Due times missed.
    pub missed: u64,
    /// Wake-ups before their due time.
    pub early: u64,
    /// Samples for which there was no room.
    pub lost: u64,
    /// Waits that had not ended when their block did; `None` when there was none.
    pub censored: Option<Open>,
    /// Smallest latency, ns.
    pub min_ns: Option<i64>,
    /// Mean latency, ns. For comparison with other tools only: a tail moves it.
    pub mean_ns: Option<f64>,
    /// Standard deviation of the latency, ns; `None` below 2 samples. It says little about a heavy tail.
    pub stddev_ns: Option<f64>,
    /// The distribution by wake-up.
    pub quantiles: Quantiles,
    /// Largest latency and its moment.
    pub max: Option<Max>,
    /// Independent samples the recorded ones are worth at p99; `None` when too few slices tell.
    pub n_eff: Option<u64>,
    /// Whether it was the same from beginning to end. Where it was not, no quantile has an interval.
    pub steadiness: Steadiness,
    /// The distribution by due time.
    pub due_times: DueTimes,
    /// Episodes of wake-ups later than the deadline; `None` without measured time.
    pub misses: Option<Rate>,
    /// The language that was measured; `None` for other methods, or without a record.
    pub runtime: Option<RuntimeRecord>,
    /// What came over the link beside answers in time; `None` where no line was measured.
    pub response: Option<Response>,
    /// What each part of the load achieved; empty without one.
    pub loads: Vec<LoadRate>,
    /// What the kernel's tracers saw after it; `None` unless that was asked for.
    pub tracers: Option<Tracers>,
    /// What operations cost; `None` for every method but `cost`, or without a record.
    pub cost: Option<CostSummary>,
    /// How busy the machine was while measuring.
    pub machine: Busy,
    /// What made late wake-ups late; `None` unless that was asked.
    pub explained: Option<ExplainRecord>,
    /// The two stages of every wake-up; `None` unless it was traced, and seen.
    pub stages: Option<Stages>,
    /// What is true of this cell, most important first.
    pub findings: Vec<Finding>,
}

/// Waits that were still open when their block ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Open {
    /// How many.
    pub waits: u64,
    /// The longest was already late by this much, ns.
    pub at_least_ns: u64,
}

/// The quantiles of one distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantiles {
    /// The median.
    pub p50: Quantile,
    /// 99 %.
    pub p99: Quantile,
    /// 99.9 %.
    pub p999: Quantile,
}

/// The largest latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Max {
    /// Its value, ns.
    pub latency_ns: i64,
    /// Whether it is an open wait, so the latency is at least this.
    pub at_least: bool,
    /// In which block, from 0.
    pub block: u32,
    /// On which CPU.
    pub cpu: u32,
    /// When it was due: ms since the run began, by the wall clock. `None` when the record does not say.
    pub run_ms: Option<u64>,
}

impl Quantiles {
    pub(crate) fn of(pooled: &Histogram, slices: &[Histogram], confidence: f64) -> Quantiles {
        let at = |level| estimate_at(pooled, slices, level, confidence);
        Quantiles { p50: at(Level::P50), p99: at(Level::P99), p999: at(Level::P999) }
    }

    /// The same values, none with an interval.
    fn without_intervals(self) -> Quantiles {
        let Quantiles { p50, p99, p999 } = self;
        let without = Quantile::without_interval;
        Quantiles { p50: without(p50), p99: without(p99), p999: without(p999) }
    }

    /// The quantile of this level.
    #[must_use]
    pub fn at(&self, level: Level) -> &Quantile {
        match level {
            Level::P50 => &self.p50,
            Level::P99 => &self.p99,
            Level::P999 => &self.p999,
        }
    }
}

/// Computes everything a run says. Pure: the same records give the same summary, on any machine.
#[must_use]
pub fn summarise(header: &Header, entries: &[Entry]) -> RunSummary {
    let names = name::of_cells(&header.cells);
    let pools = Pool::of_run(header, entries);
    let named: Vec<_> = pools.iter().zip(names).collect();
    let mut cells = on_all_cpus(&named, |(pool, name)| cell_summary(header, pool, name.clone()));
    let pairs: Vec<_> = pools.iter().zip(&cells).collect();
    let realtime = Realtime::of(&cells);
    let findings_of_cells = on_all_cpus(&pairs, |(pool, cell)| finding::of_cell(header, pool, cell, &realtime));
    for (cell, findings) in cells.iter_mut().zip(findings_of_cells) {
        cell.findings = findings;
    }
    let findings = finding::of_run(header, entries, &cells);
    // A requirement is one of latencies.
    let waiting: Cow<'_, [CellSummary]> = if cells.iter().all(|cell| cell.cell.method.waits()) {
        Cow::Borrowed(&cells)
    } else {
        cells.iter().filter(|cell| cell.cell.method.waits()).cloned().collect()
    };
    let verdict = Verdict::of(header, entries, &waiting);
    let cases = Case::all(header, entries, &waiting);
    let shortfalls = enough::looks(header).map(|_| enough::shortfalls(&header.plan.require, &waiting));
    drop(waiting);
    RunSummary { cells, findings, shortfalls, verdict, cases }
}

fn cell_summary(header: &Header, pool: &Pool<'_>, name: String) -> CellSummary {
    let histogram = pool.histogram();
    let slices = pool.slices();
    let quantiles = Quantiles::of(&histogram, &slices, pool.confidence);
    let steadiness = Steadiness::of(pool);
    let shown = |all: Quantiles| if steadiness.allows_intervals() { all } else { all.without_intervals() };
    let due_times = DueTimes::of(pool, &histogram, &slices, quantiles);
    CellSummary {
        cell: pool.cell.clone(),
        again: name.ends_with("/again"),
        name,
        blocks: u32::try_from(pool.entries.len()).unwrap_or(u32::MAX),
        measured: pool.measured(),
        samples: pool.sum(|thread| thread.recorded),
        missed: pool.sum(|thread| thread.missed),
        early: pool.sum(|thread| thread.early),
        lost: pool.sum(|thread| thread.lost),
        censored: open_waits(pool),
        min_ns: histogram.min_ns,
        mean_ns: (histogram.n > 0).then(|| histogram.sum_ns as f64 / histogram.n as f64),
        stddev_ns: standard_deviation(&histogram),
        max: max(header, pool),
        n_eff: quantiles.p99.n_eff(),
        steadiness,
        due_times: DueTimes { quantiles: shown(due_times.quantiles), ..due_times },
        quantiles: shown(quantiles),
        misses: Rate::of(&pool.episode_starts_ns(), pool.measured()),
        runtime: pool.entries.iter().find_map(|entry| entry.record.runtime.clone()),
        response: responses::of(pool),
        loads: intensity::loads(pool),
        tracers: tracers::of(pool),
        cost: cost::summary(pool.entries.iter().map(|entry| &entry.record)),
        machine: intensity::busy(header, pool),
        stages: tracers::stages(pool),
        explained: explain::merged(pool.entries.iter().filter_map(|entry| entry.record.explained.as_ref())),
        findings: Vec::new(),
    }
}

fn open_waits(pool: &Pool<'_>) -> Option<Open> {
    let waits = pool.sum(|thread| u64::from(thread.censored.is_some()));
    let longest = pool.threads().filter_map(|(_, thread)| thread.censored).map(|open| open.at_least_ns).max();
    longest.map(|at_least_ns| Open { waits, at_least_ns })
}

/// The sample standard deviation: in integers as long as they hold the squares, because the difference of two large
/// floats would be noise.
pub(crate) fn standard_deviation(histogram: &Histogram) -> Option<f64> {
    let n = u128::from(histogram.n);
    if n < 2 {
        return None;
    }
    let squares = histogram.sum_of_squares_ns2;
    let exact = squares.checked_mul(n).zip(histogram.sum_ns.unsigned_abs().checked_pow(2));
    let above_n_n = exact.and_then(|(squares, square)| squares.checked_sub(square)).map_or_else(
        || (squares as f64 * n as f64 - (histogram.sum_ns as f64).powi(2)).max(0.0),
        |difference| difference as f64,
    );
    Some((above_n_n / n as f64 / (n - 1) as f64).sqrt())
}

/// The largest latency of any thread; an open wait counts with what it had reached.
fn max(header: &Header, pool: &Pool<'_>) -> Option<Max> {
    let period_ns = pool.cell.period.ns();
    let of_thread = |(entry, thread): (&Entry, &model::ThreadRecord)| {
        let at = |latency_ns, at_least, cycle: Option<i64>| {
            let after_start = cycle.map(|cycle| i128::from(cycle) * i128::from(period_ns) / 1_000_000);
            let since_run = i128::from(entry.record.started_unix_ms) - i128::from(header.started_unix_ms);
            let run_ms = after_start.map(|ms| u64::try_from(since_run + ms).unwrap_or(0));
            Max { latency_ns, at_least, block: entry.planned.block, cpu: thread.cpu, run_ms }
        };
        let cycle = thread.worst.first().and_then(|worst| i64::try_from(worst.cycle).ok());
        let ended = thread.histogram.max_ns.map(|max_ns| at(max_ns, false, cycle));
        let open =
            thread.censored.map(|open| at(i64::try_from(open.at_least_ns).unwrap_or(i64::MAX), true, Some(open.cycle)));
        [ended, open]
    };
    // Of equal ones the first in time.
    let later = |best: Max, next: Max| if next.latency_ns > best.latency_ns { next } else { best };
    pool.threads().flat_map(of_thread).flatten().reduce(later)
}

#[cfg(test)]
mod tests;
