//! Imported measurements as one JSON document: units in the keys, and `null` for what is not known.

use super::{ImportedCell, ImportedFinding, ImportedSummary};
use crate::document::{QuantilesDocument, quantiles};
use crate::verdict::{Case, Verdict};
use model::{Conditions, Host, ImportHeader, Source, Span};
use serde::Serialize;

/// What `punctual show --format json` prints of imported measurements.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImportedDocument<'a> {
    imported: &'a ImportHeader,
    cells: Vec<CellDocument<'a>>,
    verdict: &'a Verdict,
    /// One for each limit in each cell; empty when nothing was required.
    cases: &'a [Case],
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ImportedCell"))]
struct CellDocument<'a> {
    name: &'a str,
    source: &'a Source,
    conditions: &'a Conditions,
    host: &'a Host,
    started_unix_ms: Option<u64>,
    measured_ns: Option<Span>,
    resolution_ns: Span,
    summary: SummaryDocument,
    findings: Vec<Remark<'a>>,
}

/// A finding and its sentence, so that a program need not know every kind.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ImportedRemark"))]
struct Remark<'a> {
    #[serde(flatten)]
    finding: &'a ImportedFinding,
    sentence: String,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ImportedNumbers"))]
struct SummaryDocument {
    threads: usize,
    samples: Option<u64>,
    missed: Option<u64>,
    min_ns: Option<i64>,
    mean_ns: Option<f64>,
    stddev_ns: Option<f64>,
    #[serde(flatten)]
    quantiles: QuantilesDocument,
    max_ns: Option<i64>,
    max_thread: Option<u32>,
    n_eff: Option<u64>,
}

/// The measurements, and the verdict.
#[must_use]
pub fn document<'a>(header: &'a ImportHeader, summary: &'a ImportedSummary) -> ImportedDocument<'a> {
    let ImportedSummary { cells, verdict, cases } = summary;
    ImportedDocument { imported: header, cells: cells.iter().map(cell).collect(), verdict, cases }
}

fn cell(cell: &ImportedCell) -> CellDocument<'_> {
    let ImportedCell { imported, name, samples, missed, min_ns, mean_ns, stddev_ns, max_ns, max_thread, .. } = cell;
    CellDocument {
        name,
        source: &imported.source,
        conditions: &imported.conditions,
        host: &imported.host,
        started_unix_ms: imported.started_unix_ms,
        measured_ns: imported.measured,
        resolution_ns: imported.resolution,
        summary: SummaryDocument {
            threads: imported.threads.len(),
            samples: *samples,
            missed: *missed,
            min_ns: *min_ns,
            mean_ns: *mean_ns,
            stddev_ns: *stddev_ns,
            quantiles: quantiles(&cell.quantiles),
            max_ns: *max_ns,
            max_thread: *max_thread,
            n_eff: cell.quantiles.p99.n_eff(),
        },
        findings: cell.findings.iter().map(|finding| Remark { finding, sentence: finding.to_string() }).collect(),
    }
}
