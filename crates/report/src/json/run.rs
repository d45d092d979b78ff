//! A run as one JSON document: units in the keys, `null` for unknown values.

use punctual_analysis::enough::Shortfall;
use punctual_analysis::{Answer, Case, CellSummary, Finding, FloorSummary, Max, RunSummary, Verdict};
use punctual_model::{Cell, Header, Host};
use serde::Serialize;

/// A run as one document, printed by `punctual show --format json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct RunDocument<'a> {
    /// The answer in one sentence.
    answer: Answer,
    run: AboutRun<'a>,
    cells: Vec<CellDocument<'a>>,
    verdict: &'a Verdict,
    /// One for each limit in each cell; empty without requirements.
    cases: &'a [Case],
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct AboutRun<'a> {
    title: &'a str,
    tool: &'a str,
    started_unix_ms: u64,
    blocks: u32,
    seed: u64,
    require: &'a punctual_model::Requirement,
    host: &'a Host,
    findings: Vec<Remark<'a>>,
    shortfalls: &'a Option<Vec<Shortfall>>,
    /// What settings change; absent unless it is a run of `punctual floor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<&'a FloorSummary>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct CellDocument<'a> {
    name: &'a str,
    /// Clock of all times of the cell: `real`, or the clock of its guest (`virtual`, `emulated`, `kvm`).
    time: &'static str,
    cell: &'a Cell,
    summary: SummaryDocument<'a>,
    findings: Vec<Remark<'a>>,
}

/// A finding and its sentence, so that programs need not know every kind.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Remark<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    text: String,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct SummaryDocument<'a> {
    #[serde(flatten)]
    cell: &'a CellSummary,
    max_ns: Option<i64>,
    max_is_lower_bound: Option<bool>,
    max_at: Option<Max>,
}

/// The document of a run, its cells and the verdict.
pub(crate) fn document<'a>(header: &'a Header, summary: &'a RunSummary) -> RunDocument<'a> {
    RunDocument {
        answer: summary.answer(),
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
            floor: summary.floor.as_ref(),
        },
        cells: summary.cells.iter().zip(&summary.cell_findings).map(cell).collect(),
        verdict: &summary.verdict,
        cases: &summary.cases,
    }
}

fn remarks(findings: &[Finding]) -> Vec<Remark<'_>> {
    findings.iter().map(|finding| Remark { finding, text: finding.to_string() }).collect()
}

fn cell<'a>((cell, findings): (&'a CellSummary, &'a Vec<Finding>)) -> CellDocument<'a> {
    CellDocument {
        name: &cell.name,
        time: cell.cell.kernel.time(),
        cell: &cell.cell,
        summary: SummaryDocument {
            cell,
            max_ns: cell.max.map(|max| max.latency_ns),
            max_is_lower_bound: cell.max.map(|max| max.at_least),
            max_at: cell.max,
        },
        findings: remarks(findings),
    }
}
