//! Rows of a run: what the store holds of it. The raw records stay in their files.

use crate::packed::packed;
use crate::{DatabaseError, Value};
use analysis::explain::cause_name;
use analysis::facts::{self, Fingerprint};
use analysis::history::{blocks, typical};
use analysis::{CellSummary, Finding, RunSummary};
use model::{Cell, Entry, Header, Host, Kernel, plain};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Rows of each table for one run, without the numbers that the store gives.
pub(crate) struct Contents {
    pub(crate) machine: Vec<Value>,
    pub(crate) configuration: Vec<Value>,
    /// Rows of cells by identity; a cell may be measured twice in a run.
    pub(crate) cells: BTreeMap<String, Vec<Value>>,
    pub(crate) run: Run,
    pub(crate) measurements: Vec<Measurement>,
    pub(crate) findings: Vec<Vec<Value>>,
}

/// Row of the run.
pub(crate) struct Run {
    pub(crate) identity: String,
    pub(crate) started_unix_ms: u64,
    pub(crate) title: String,
    pub(crate) path: String,
    pub(crate) tool: String,
    pub(crate) measurements: usize,
    pub(crate) planned: usize,
}

/// Rows of one cell of the run.
pub(crate) struct Measurement {
    pub(crate) index: usize,
    /// Identity of its cell.
    pub(crate) cell: String,
    /// Fields from the column `started_unix_ms`.
    pub(crate) row: Vec<Value>,
    pub(crate) blocks: Vec<Vec<Value>>,
    pub(crate) histogram: Option<Vec<u8>>,
    pub(crate) causes: Vec<Vec<Value>>,
}

/// Identity of the series that a cell belongs to. A deadline changes what is counted, not what is measured.
pub(crate) fn series_cell(cell: &Cell) -> Cell {
    Cell { deadline: None, ..cell.clone() }
}

/// Computes the rows of a run, read from `path`. Errors: if the run has no measurement.
pub(crate) fn of(header: &Header, entries: &[Entry], path: &str) -> Result<Contents, DatabaseError> {
    let unsuited = |reason: &str| DatabaseError::Unsuited { run: plain(path).into_owned(), reason: reason.to_owned() };
    if entries.is_empty() {
        return Err(unsuited("it has no readable measurement"));
    }
    let summary = analysis::summarise(header, entries);
    let histograms = analysis::histograms(header, entries);
    let mut cells = BTreeMap::new();
    let mut measurements = Vec::new();
    for (index, (summary, histogram)) in summary.cells.iter().zip(&histograms).enumerate() {
        if summary.blocks == 0 {
            continue;
        }
        let cell = series_cell(&summary.cell);
        let identity = cell.id().to_string();
        cells.entry(identity.clone()).or_insert_with(|| cell_row(&cell, &identity));
        let of_cell = blocks(entries, index);
        measurements.push(Measurement {
            index,
            cell: identity,
            row: row(header, entries, index, summary),
            blocks: of_cell
                .iter()
                .map(|block| {
                    vec![
                        index.into(),
                        block.block.into(),
                        block.started_unix_ms.into(),
                        block.samples.into(),
                        block.p99_ns.into(),
                        block.max_ns.into(),
                    ]
                })
                .collect(),
            histogram: (histogram.n > 0).then(|| packed(histogram)),
            causes: causes(index, summary),
        });
    }
    let started_unix_ms = header.started_unix_ms;
    Ok(Contents {
        machine: machine(&header.host),
        configuration: configuration(&header.host),
        cells,
        run: Run {
            identity: identity(header),
            started_unix_ms,
            title: header.plan.title.clone(),
            path: path.to_owned(),
            tool: header.tool.clone(),
            measurements: entries.len(),
            planned: header.n_measurements(),
        },
        measurements,
        findings: findings(&summary),
    })
}

/// Identity of a run: a hash of everything that was decided before its first measurement.
fn identity(header: &Header) -> String {
    let decided = Header { failed: Vec::new(), ..header.clone() };
    let text = serde_json::to_vec(&decided).unwrap_or_default();
    Sha256::digest(&text).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn machine(host: &Host) -> Vec<Value> {
    let text = |text: &Option<String>| text.as_deref().into();
    vec![
        Value::Text(facts::identity(host)),
        text(&host.hostname),
        text(&host.platform.machine),
        text(&host.cpu_model),
        text(&host.architecture),
        text(&host.hypervisor),
    ]
}

fn configuration(host: &Host) -> Vec<Value> {
    let known: BTreeMap<&str, String> = facts::compared(host).collect();
    vec![
        Value::Text(Fingerprint::of(host).to_string()),
        host.kernel_release.as_deref().into(),
        host.kernel_version.as_deref().into(),
        host.preemption.map(|model| model.name()).into(),
        json(&known),
    ]
}

/// A value as JSON text.
fn json(value: &impl Serialize) -> Value {
    Value::text(&serde_json::to_string(value).unwrap_or_default())
}

/// Load, policy, period and settings of a cell; and its kernel, if it is not that of the machine. Virtual
/// time is never shown as if it were time.
fn name(cell: &Cell) -> String {
    let name = cell.conditions.prepare.after([cell.label(), cell.period.to_string()], " ");
    match &cell.kernel {
        Kernel::Running => name,
        kernel if kernel.is_virtual() => format!("{name} {kernel}, virtual time"),
        kernel => format!("{name} {kernel}"),
    }
}

fn cell_row(cell: &Cell, identity: &str) -> Vec<Value> {
    vec![
        identity.into(),
        name(cell).as_str().into(),
        cell.kernel.to_string().as_str().into(),
        cell.load.to_string().as_str().into(),
        cell.policy.to_string().as_str().into(),
        cell.period.ns().into(),
        cell.task.to_string().as_str().into(),
        cell.cpus.to_string().as_str().into(),
        cell.duration.ns().into(),
        json(cell),
    ]
}

/// The row from the column `started_unix_ms`.
fn row(header: &Header, entries: &[Entry], index: usize, summary: &CellSummary) -> Vec<Value> {
    let first = entries.iter().find(|entry| entry.planned.cell_index == index).map(|entry| &entry.record);
    let kernel = first.and_then(|record| record.host_before.kernel_release.clone());
    let is_again = header.cells.iter().take(index).any(|cell| *cell == summary.cell);
    let of_cell = blocks(entries, index);
    let quantiles = &summary.quantiles;
    let interval = quantiles.p99.interval_ns();
    vec![
        header.started_unix_ms.into(),
        is_again.into(),
        kernel.as_deref().into(),
        summary.blocks.into(),
        summary.measured.ns().into(),
        summary.samples.into(),
        summary.missed.into(),
        summary.lost.into(),
        summary.min_ns.into(),
        summary.mean_ns.into(),
        quantiles.p50.value_ns().into(),
        quantiles.p99.value_ns().into(),
        interval.map(|(low, _)| low).into(),
        interval.map(|(_, high)| high).into(),
        quantiles.p999.value_ns().into(),
        summary.max.map(|max| max.latency_ns).into(),
        summary.max.is_some_and(|max| max.at_least).into(),
        // An outside program may report no histogram for each block.
        typical(of_cell.iter().filter_map(|block| block.p99_ns))
            .or(quantiles.p99.value_ns().map(|ns| ns as f64))
            .into(),
        typical(of_cell.iter().filter_map(|block| block.max_ns))
            .or(summary.max.map(|max| max.latency_ns as f64))
            .into(),
    ]
}

fn causes(index: usize, summary: &CellSummary) -> Vec<Vec<Value>> {
    let causes = summary.explained.iter().flat_map(|explained| &explained.causes).enumerate();
    causes
        .map(|(number, total)| {
            vec![
                index.into(),
                number.into(),
                cause_name(total.cause, total.or).as_str().into(),
                total.owners.iter().map(|owner| owner.name.as_str()).collect::<Vec<_>>().join(", ").as_str().into(),
                total.wakeups.into(),
                total.blamed.into(),
                total.total.ns().into(),
                total.worst.ns().into(),
            ]
        })
        .collect()
}

fn findings(summary: &RunSummary) -> Vec<Vec<Value>> {
    let of_run = summary.findings.iter().map(|finding| (None, finding));
    let of_cells = summary.cell_findings.iter().enumerate();
    let of_cells = of_cells.flat_map(|(index, findings)| findings.iter().map(move |finding| (Some(index), finding)));
    of_run.chain(of_cells).enumerate().map(|(number, (cell, finding))| finding_row(number, cell, finding)).collect()
}

fn finding_row(number: usize, cell: Option<usize>, finding: &Finding) -> Vec<Value> {
    let kind = serde_json::to_value(finding).ok().and_then(|value| value["kind"].as_str().map(str::to_owned));
    vec![
        number.into(),
        cell.into(),
        kind.unwrap_or_default().as_str().into(),
        u32::from(finding.importance()).into(),
        finding.to_string().as_str().into(),
    ]
}
