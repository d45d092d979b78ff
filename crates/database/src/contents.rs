//! Rows of a run: what the store holds of it. The raw records stay in their files.

use crate::packed::packed;
use crate::{DatabaseError, Value};
use punctual_analysis::explain::cause_name;
use punctual_analysis::facts::{self, Fingerprint};
use punctual_analysis::history::{blocks, typical};
use punctual_analysis::{CellSummary, Finding, RunSummary};
use punctual_model::{Cell, Entry, Header, Host, Kernel, Level, plain};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// A row of a table: its columns with their values. The first column of a table with numbered rows identifies them.
pub(crate) type Row = Vec<(&'static str, Value)>;

/// Rows of each table for one run, without the numbers that the store gives.
pub(crate) struct Contents {
    pub(crate) machine: Row,
    pub(crate) configuration: Row,
    /// Rows of cells by identity; a cell may be measured twice in a run.
    pub(crate) cells: BTreeMap<String, Row>,
    pub(crate) run: Row,
    /// Identity of the run in stores of earlier versions.
    pub(crate) earlier_identity: String,
    pub(crate) n_measurements: usize,
    pub(crate) measurements: Vec<Measurement>,
    pub(crate) findings: Vec<Row>,
}

/// Rows of one cell of the run.
pub(crate) struct Measurement {
    /// Identity of its cell.
    pub(crate) cell: String,
    pub(crate) row: Row,
    pub(crate) blocks: Vec<Row>,
    pub(crate) histogram: Option<Row>,
    pub(crate) causes: Vec<Row>,
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
    let summary = punctual_analysis::summarise(header, entries);
    let histograms = punctual_analysis::histograms(header, entries);
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
            cell: identity,
            row: row(header, entries, index, summary),
            blocks: of_cell
                .iter()
                .map(|block| {
                    vec![
                        ("cell_index", index.into()),
                        ("block", block.block.into()),
                        ("started_unix_ms", block.started_unix_ms.into()),
                        ("samples", block.samples.into()),
                        ("p99_ns", block.p99_ns.into()),
                        ("max_ns", block.max_ns.into()),
                    ]
                })
                .collect(),
            histogram: (histogram.n > 0)
                .then(|| vec![("cell_index", index.into()), ("counts", Value::Bytes(packed(histogram)))]),
            causes: causes(index, summary),
        });
    }
    Ok(Contents {
        machine: machine(&header.host),
        configuration: configuration(&header.host),
        cells,
        run: vec![
            ("identity", identity(header).as_str().into()),
            ("started_unix_ms", header.started_unix_ms.into()),
            ("title", header.plan.title.as_str().into()),
            ("path", path.into()),
            ("tool", header.tool.as_str().into()),
            ("measurements", entries.len().into()),
            ("planned", header.n_measurements().into()),
        ],
        earlier_identity: earlier_identity(header),
        n_measurements: entries.len(),
        measurements,
        findings: findings(&summary),
    })
}

/// Identity of a run: a hash of what tells runs apart, and is the same in every version of this program.
fn identity(header: &Header) -> String {
    let Header { tool, started_unix_ms, seed, host, cells, shard, plan, .. } = header;
    let cells: Vec<String> = cells.iter().map(|cell| cell.id().to_string()).collect();
    let shard = shard.map(|shard| shard.to_string());
    hash(&(tool, started_unix_ms, seed, &host.hostname, &host.boot_id, cells, shard, &plan.title, plan.repetitions))
}

/// The identity that earlier versions gave: a hash of the header as it is written, which changes with each new field.
fn earlier_identity(header: &Header) -> String {
    hash(&Header { failed: Vec::new(), ..header.clone() })
}

fn hash(decided: &impl Serialize) -> String {
    let text = serde_json::to_vec(decided).unwrap_or_default();
    Sha256::digest(&text).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn machine(host: &Host) -> Row {
    let text = |text: &Option<String>| text.as_deref().into();
    vec![
        ("identity", Value::Text(facts::identity(host))),
        ("hostname", text(&host.hostname)),
        ("model", text(&host.platform.machine)),
        ("cpu_model", text(&host.cpu_model)),
        ("architecture", text(&host.architecture)),
        ("hypervisor", text(&host.hypervisor)),
    ]
}

fn configuration(host: &Host) -> Row {
    let known: BTreeMap<&str, String> = facts::compared(host).collect();
    vec![
        ("fingerprint", Value::Text(Fingerprint::of(host).to_string())),
        ("kernel_release", host.kernel_release.as_deref().into()),
        ("kernel_version", host.kernel_version.as_deref().into()),
        ("preemption", host.preemption.map(|model| model.name()).into()),
        ("facts", json(&known)),
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

fn cell_row(cell: &Cell, identity: &str) -> Row {
    vec![
        ("identity", identity.into()),
        ("name", name(cell).as_str().into()),
        ("kernel", cell.kernel.to_string().as_str().into()),
        ("load", cell.load.to_string().as_str().into()),
        ("policy", cell.policy.to_string().as_str().into()),
        ("period_ns", cell.period.ns().into()),
        ("method", cell.task.to_string().as_str().into()),
        ("cpus", cell.cpus.to_string().as_str().into()),
        ("duration_ns", cell.duration.ns().into()),
        ("cell", json(cell)),
    ]
}

fn row(header: &Header, entries: &[Entry], index: usize, summary: &CellSummary) -> Row {
    let first = entries.iter().find(|entry| entry.planned.cell_index == index).map(|entry| &entry.record);
    let kernel = first.and_then(|record| record.host_before.kernel_release.clone());
    let is_again = header.cells.iter().take(index).any(|cell| *cell == summary.cell);
    let of_cell = blocks(entries, index);
    let quantiles = &summary.quantiles;
    let interval = quantiles.at(Level::P99).interval_ns();
    vec![
        ("cell_index", index.into()),
        ("started_unix_ms", header.started_unix_ms.into()),
        ("again", is_again.into()),
        ("kernel_release", kernel.as_deref().into()),
        ("blocks", summary.blocks.into()),
        ("measured_ns", summary.measured.ns().into()),
        ("samples", summary.samples.into()),
        ("missed", summary.missed.into()),
        ("lost", summary.lost.unwrap_or(0).into()),
        ("min_ns", summary.min_ns.into()),
        ("mean_ns", summary.mean_ns.into()),
        ("p50_ns", quantiles.at(Level::P50).value_ns().into()),
        ("p99_ns", quantiles.at(Level::P99).value_ns().into()),
        ("p99_low_ns", interval.map(|(low, _)| low).into()),
        ("p99_high_ns", interval.map(|(_, high)| high).into()),
        ("p999_ns", quantiles.at(Level::P999).value_ns().into()),
        ("max_ns", summary.max.map(|max| max.latency_ns).into()),
        ("max_at_least", summary.max.is_some_and(|max| max.at_least).into()),
        // An outside program may report no histogram for each block.
        (
            "typical_p99_ns",
            typical(of_cell.iter().map(|block| block.p99_ns))
                .or(quantiles.at(Level::P99).value_ns().map(|ns| ns as f64))
                .into(),
        ),
        (
            "typical_max_ns",
            typical(of_cell.iter().map(|block| block.max_ns)).or(summary.max.map(|max| max.latency_ns as f64)).into(),
        ),
    ]
}

fn causes(index: usize, summary: &CellSummary) -> Vec<Row> {
    let causes = summary.explained.iter().flat_map(|explained| &explained.causes).enumerate();
    causes
        .map(|(number, total)| {
            vec![
                ("cell_index", index.into()),
                ("number", number.into()),
                ("cause", cause_name(total.cause, total.or).as_str().into()),
                (
                    "owners",
                    total.owners.iter().map(|owner| owner.name.as_str()).collect::<Vec<_>>().join(", ").as_str().into(),
                ),
                ("wakeups", total.wakeups.into()),
                ("blamed", total.blamed.into()),
                ("total_ns", total.total.ns().into()),
                ("worst_ns", total.worst.ns().into()),
            ]
        })
        .collect()
}

fn findings(summary: &RunSummary) -> Vec<Row> {
    let of_run = summary.findings.iter().map(|finding| (None, finding));
    let of_cells = summary.cell_findings.iter().enumerate();
    let of_cells = of_cells.flat_map(|(index, findings)| findings.iter().map(move |finding| (Some(index), finding)));
    of_run.chain(of_cells).enumerate().map(|(number, (cell, finding))| finding_row(number, cell, finding)).collect()
}

fn finding_row(number: usize, cell: Option<usize>, finding: &Finding) -> Row {
    let kind = serde_json::to_value(finding).ok().and_then(|value| value["kind"].as_str().map(str::to_owned));
    vec![
        ("number", number.into()),
        ("cell_index", cell.into()),
        ("kind", kind.unwrap_or_default().as_str().into()),
        ("importance", u32::from(finding.importance()).into()),
        ("sentence", finding.to_string().as_str().into()),
    ]
}
