//! Imported measurements as one JSON document: units in the keys, `null` for unknown values.

use punctual_analysis::{Answer, Case, ImportedCell, ImportedFinding, ImportedSummary, Verdict};
use punctual_model::{Host, ImportHeader, Source, Span, StatedConditions};
use serde::Serialize;

/// Imported measurements, printed by `punctual show --format json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ImportedDocument<'a> {
    /// The answer in one sentence.
    answer: Answer,
    imported: &'a ImportHeader,
    cells: Vec<CellDocument<'a>>,
    verdict: &'a Verdict,
    /// One for each limit in each cell; empty without requirements.
    cases: &'a [Case],
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ImportedCell")]
struct CellDocument<'a> {
    name: &'a str,
    source: &'a Source,
    conditions: &'a StatedConditions,
    host: &'a Host,
    started_unix_ms: Option<u64>,
    measured_ns: Option<Span>,
    resolution_ns: Span,
    summary: &'a ImportedCell,
    findings: Vec<Remark<'a>>,
}

/// A finding and its sentence, so that programs need not know every kind.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ImportedRemark")]
struct Remark<'a> {
    #[serde(flatten)]
    finding: &'a ImportedFinding,
    sentence: String,
}

/// The document of imported measurements with their verdict.
pub(crate) fn document<'a>(header: &'a ImportHeader, summary: &'a ImportedSummary) -> ImportedDocument<'a> {
    let ImportedSummary { cells, cell_findings, verdict, cases, .. } = summary;
    let cells = cells.iter().zip(cell_findings).map(|(one, findings)| cell(one, findings)).collect();
    ImportedDocument { answer: summary.answer(), imported: header, cells, verdict, cases }
}

fn cell<'a>(cell: &'a ImportedCell, findings: &'a [ImportedFinding]) -> CellDocument<'a> {
    let ImportedCell { imported, name, .. } = cell;
    CellDocument {
        name,
        source: &imported.source,
        conditions: &imported.conditions,
        host: &imported.host,
        started_unix_ms: imported.started_unix_ms,
        measured_ns: imported.measured,
        resolution_ns: imported.resolution,
        summary: cell,
        findings: findings.iter().map(|finding| Remark { finding, sentence: finding.to_string() }).collect(),
    }
}
