//! One JSON document for a run: units in the keys, and `null` for what is not known.

use crate::Stages;
use crate::cost::CostSummary;
use crate::enough::Shortfall;
use crate::stationarity::Gate;
use crate::tail::{TailLimit, TailRefusal};
use crate::{
    Busy, Case, CellSummary, Change, Finding, LoadRate, Max, Open, Quantile, Quantiles, Rate, Refusal, Response,
    RunSummary, Steadiness, Tracers, Verdict,
};
use model::{Cell, ExplainRecord, Header, Host, RuntimeRecord};
use serde::Serialize;

/// A run as one document: what `punctual show --format json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunDocument<'a> {
    run: AboutRun<'a>,
    cells: Vec<CellDocument<'a>>,
    verdict: &'a Verdict,
    /// One for each limit in each cell; empty when nothing was required.
    cases: &'a [Case],
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct AboutRun<'a> {
    title: &'a str,
    tool: &'a str,
    started_unix_ms: u64,
    blocks: u32,
    seed: u64,
    require: &'a model::Requirement,
    host: &'a Host,
    findings: Vec<Remark<'a>>,
    shortfalls: &'a Option<Vec<Shortfall>>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CellDocument<'a> {
    name: &'a str,
    /// What all times of the cell are of: `real`, or the clock of its guest (`virtual`, `emulated`, `kvm`).
    time: &'static str,
    cell: &'a Cell,
    summary: SummaryDocument<'a>,
    findings: Vec<Remark<'a>>,
}

/// A finding and its sentence, so that a program need not know every kind.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Remark<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    text: String,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SummaryDocument<'a> {
    blocks: u32,
    measured_ns: u64,
    samples: u64,
    missed: u64,
    early: u64,
    lost: u64,
    censored: Option<Open>,
    min_ns: Option<i64>,
    mean_ns: Option<f64>,
    stddev_ns: Option<f64>,
    #[serde(flatten)]
    quantiles: QuantilesDocument,
    max_ns: Option<i64>,
    max_is_lower_bound: Option<bool>,
    max_at: Option<MaxAt>,
    n_eff: Option<u64>,
    steadiness: SteadinessDocument,
    by_due_time: DueTimesDocument,
    misses: Option<Rate>,
    runtime: &'a Option<RuntimeRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<&'a Response>,
    loads: &'a [LoadRate],
    #[serde(skip_serializing_if = "Option::is_none")]
    tracers: Option<&'a Tracers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<&'a CostSummary>,
    machine: Busy,
    explained: &'a Option<ExplainRecord>,
    /// The two stages of every wake-up; left out unless it was traced, and seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    stages: Option<&'a Stages>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SteadinessDocument {
    gate: Gate,
    change: Option<Change>,
    spikes_every_ns: Option<u64>,
    tail_limit: Option<TailDocument>,
    tail_refused: Option<TailRefusal>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TailDocument {
    times: f64,
    upper_ns: f64,
    block_seconds: usize,
    excesses: usize,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MaxAt {
    block: u32,
    cpu: u32,
    run_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DueTimesDocument {
    due_times: u64,
    are_lower_bounds: bool,
    #[serde(flatten)]
    quantiles: QuantilesDocument,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct QuantilesDocument {
    p50_ns: Option<i64>,
    p50_interval_ns: Option<(i64, i64)>,
    p50_refused: Option<Refusal>,
    p99_ns: Option<i64>,
    p99_interval_ns: Option<(i64, i64)>,
    p99_refused: Option<Refusal>,
    p999_ns: Option<i64>,
    p999_interval_ns: Option<(i64, i64)>,
    p999_refused: Option<Refusal>,
}

/// The run, its cells and the verdict.
#[must_use]
pub fn document<'a>(header: &'a Header, summary: &'a RunSummary) -> RunDocument<'a> {
    RunDocument {
        run: AboutRun {
            title: &header.plan.title,
            tool: &header.tool,
            started_unix_ms: header.started_unix_ms,
            blocks: header.plan.repetitions,
            seed: header.seed,
            require: &header.plan.require,
            host: &header.host,
            findings: remarks(&summary.findings),
            shortfalls: &summary.shortfalls,
        },
        cells: summary.cells.iter().map(cell).collect(),
        verdict: &summary.verdict,
        cases: &summary.cases,
    }
}

fn remarks(findings: &[Finding]) -> Vec<Remark<'_>> {
    findings.iter().map(|finding| Remark { finding, text: finding.to_string() }).collect()
}

fn cell(cell: &CellSummary) -> CellDocument<'_> {
    let max_at = |max: Max| MaxAt { block: max.block, cpu: max.cpu, run_ms: max.run_ms };
    let summary = SummaryDocument {
        blocks: cell.blocks,
        measured_ns: cell.measured.ns(),
        samples: cell.samples,
        missed: cell.missed,
        early: cell.early,
        lost: cell.lost,
        censored: cell.censored,
        min_ns: cell.min_ns,
        mean_ns: cell.mean_ns,
        stddev_ns: cell.stddev_ns,
        quantiles: quantiles(&cell.quantiles),
        max_ns: cell.max.map(|max| max.latency_ns),
        max_is_lower_bound: cell.max.map(|max| max.at_least),
        max_at: cell.max.map(max_at),
        n_eff: cell.n_eff,
        steadiness: steadiness(&cell.steadiness),
        by_due_time: DueTimesDocument {
            due_times: cell.due_times.n,
            are_lower_bounds: cell.due_times.at_least,
            quantiles: quantiles(&cell.due_times.quantiles),
        },
        misses: cell.misses,
        runtime: &cell.runtime,
        response: cell.response.as_ref(),
        loads: &cell.loads,
        tracers: cell.tracers.as_ref(),
        cost: cell.cost.as_ref(),
        machine: cell.machine,
        explained: &cell.explained,
        stages: cell.stages.as_ref(),
    };
    CellDocument {
        name: &cell.name,
        time: cell.cell.kernel.time(),
        cell: &cell.cell,
        summary,
        findings: remarks(&cell.findings),
    }
}

fn steadiness(steadiness: &Steadiness) -> SteadinessDocument {
    let Steadiness { gate, change, spikes_every, tail } = *steadiness;
    let limit = |TailLimit { times, upper, block, excesses, .. }: TailLimit| TailDocument {
        times,
        upper_ns: upper,
        block_seconds: block,
        excesses,
    };
    SteadinessDocument {
        gate,
        change,
        spikes_every_ns: spikes_every.map(model::Span::ns),
        tail_limit: tail.ok().map(limit),
        tail_refused: tail.err(),
    }
}

pub(crate) fn quantiles(quantiles: &Quantiles) -> QuantilesDocument {
    let refused = |quantile: Quantile| match quantile {
        Quantile::Refused(refusal) => Some(refusal),
        Quantile::Known { .. } => None,
    };
    let Quantiles { p50, p99, p999 } = *quantiles;
    QuantilesDocument {
        p50_ns: p50.value_ns(),
        p50_interval_ns: p50.interval_ns(),
        p50_refused: refused(p50),
        p99_ns: p99.value_ns(),
        p99_interval_ns: p99.interval_ns(),
        p99_refused: refused(p99),
        p999_ns: p999.value_ns(),
        p999_interval_ns: p999.interval_ns(),
        p999_refused: refused(p999),
    }
}
