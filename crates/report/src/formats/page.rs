//! What every format shows, of a run of ours as of imported measurements: a fact that is not known is `None`.

use super::super::table::Table;
use crate::sections::{Section, conclusion, findings, imported, latencies, machine, tracers};
use analysis::{Case, CellSummary, ImportedCell, ImportedSummary, Max, Quantiles, RunSummary, Verdict};
use model::{Header, Host, ImportHeader, ImportedLoad, Period, Span};

/// A run, ready to be written in any form.
#[derive(Debug)]
pub struct Page<'a> {
    pub(super) title: &'a str,
    pub(super) tool: &'a str,
    pub(super) started_unix_ms: Option<u64>,
    pub(super) host: &'a Host,
    pub(super) rows: Vec<Row<'a>>,
    pub(super) verdict: &'a Verdict,
    pub(super) cases: &'a [Case],
    /// Said in place of a verdict where nothing was required.
    pub(super) answer: String,
    /// The table that people read.
    pub(super) table: Table,
    /// How to read the table.
    pub(super) legend: String,
    /// What the kernel's tracers saw; `None` where none was asked for.
    pub(super) traced: Option<Section>,
    /// What stands out.
    pub(super) sentences: Vec<String>,
    /// Machine and extent in a line.
    pub(super) about: String,
}

/// One cell, of a run of this program or imported.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// What else is known of a cell that this program measured; `None` of an imported one.
    pub(crate) own: Option<&'a CellSummary>,
    pub(crate) name: &'a str,
    pub(crate) host: &'a Host,
    pub(crate) started_unix_ms: Option<u64>,
    pub(crate) load: Option<ImportedLoad>,
    pub(crate) policy: Option<String>,
    pub(crate) period: Option<Period>,
    pub(crate) method: Option<String>,
    pub(crate) cpus: Option<String>,
    pub(crate) measured: Option<Span>,
    pub(crate) samples: Option<u64>,
    /// `None` also for relative waits, which have no due times that could be missed.
    pub(crate) missed: Option<u64>,
    pub(crate) min_ns: Option<i64>,
    pub(crate) mean_ns: Option<f64>,
    pub(crate) stddev_ns: Option<f64>,
    pub(crate) quantiles: &'a Quantiles,
    pub(crate) max_ns: Option<i64>,
    pub(crate) max_cpu: Option<u32>,
    pub(crate) n_eff: Option<u64>,
}

/// A host of which nothing is known.
static UNKNOWN: std::sync::LazyLock<Host> = std::sync::LazyLock::new(Host::default);

impl<'a> Page<'a> {
    /// A run of ours.
    pub fn of_run(header: &'a Header, summary: &'a RunSummary, all_findings: bool) -> Page<'a> {
        let mut facts = vec![header.tool.clone()];
        facts.extend(machine::named(&header.host));
        Page {
            // A plan need not have a title.
            title: if header.plan.title.is_empty() { "punctual run" } else { &header.plan.title },
            tool: &header.tool,
            started_unix_ms: Some(header.started_unix_ms),
            host: &header.host,
            // What operations cost is no latency; it is in the text, the document and the page.
            rows: summary
                .cells
                .iter()
                .filter(|cell| cell.cell.task.has_latencies())
                .map(|cell| Row::of_cell(header, cell))
                .collect(),
            verdict: &summary.verdict,
            cases: &summary.cases,
            answer: conclusion::how_late(summary),
            table: latencies::table(summary),
            legend: format!("In {}; [95 %]: interval; when: into the run.", crate::unit(summary)),
            traced: tracers::of(summary),
            sentences: findings::as_text(summary, all_findings),
            about: format!("{}; {}", facts.join(" · "), machine::measured(header, summary)),
        }
    }

    /// What became of each limit in each cell.
    pub(crate) fn cases(&self) -> &'a [Case] {
        self.cases
    }

    /// The same of all together.
    pub(crate) fn verdict(&self) -> &'a Verdict {
        self.verdict
    }

    /// Imported measurements.
    pub fn of_imported(header: &'a ImportHeader, summary: &'a ImportedSummary) -> Page<'a> {
        let first = summary.cells.first().map(|cell| &cell.imported.host);
        let host = first.filter(|first| summary.cells.iter().all(|cell| cell.imported.host == **first));
        Page {
            title: if header.title.is_empty() { "imported" } else { &header.title },
            tool: &header.tool,
            started_unix_ms: summary.cells.iter().filter_map(|cell| cell.imported.started_unix_ms).min(),
            host: host.unwrap_or(&UNKNOWN),
            rows: summary.cells.iter().map(Row::of_imported).collect(),
            verdict: &summary.verdict,
            cases: &summary.cases,
            answer: imported::answer(summary),
            table: imported::table(summary),
            legend: "In microseconds where no unit stands; - is not known.".to_owned(),
            traced: None,
            sentences: imported::sentences(summary),
            about: format!("{}; {}", header.tool, imported::machines(summary).join("; ")),
        }
    }
}

impl<'a> Row<'a> {
    /// The unit of its microseconds: virtual ones are never shown as if they were time.
    pub(crate) fn us(&self) -> &'static str {
        if self.is_virtual() { "virtual-us" } else { "us" }
    }

    pub(crate) fn is_virtual(&self) -> bool {
        self.own.is_some_and(|cell| cell.cell.kernel.is_virtual())
    }

    /// The largest latency and its moment, as this program records it.
    pub(crate) fn max(&self) -> Option<Max> {
        self.own?.max
    }

    /// What its times are of: `real`, `virtual`, `emulated`, `kvm`.
    pub(super) fn time(&self) -> Option<&'static str> {
        self.own.map(|cell| cell.cell.kernel.time())
    }

    pub(crate) fn of_cell(header: &'a Header, summary: &'a CellSummary) -> Row<'a> {
        let asked = &summary.cell;
        Row {
            own: Some(summary),
            name: &summary.name,
            host: &header.host,
            started_unix_ms: Some(header.started_unix_ms),
            load: Some(asked.load.clone().into()),
            policy: Some(asked.policy.to_string()),
            period: Some(asked.period),
            method: Some(asked.task.to_string()),
            cpus: Some(asked.cpus.to_string()),
            measured: Some(summary.measured),
            samples: Some(summary.samples),
            missed: Some(summary.missed).filter(|_| !asked.task.is_relative()),
            min_ns: summary.min_ns,
            mean_ns: summary.mean_ns,
            stddev_ns: summary.stddev_ns,
            quantiles: &summary.quantiles,
            max_ns: summary.max.map(|max| max.latency_ns),
            max_cpu: summary.max.map(|max| max.cpu),
            n_eff: summary.n_eff,
        }
    }

    pub(crate) fn of_imported(summary: &'a ImportedCell) -> Row<'a> {
        let measured = &summary.imported;
        let conditions = &measured.conditions;
        let cpus: Option<Vec<u32>> = measured.threads.iter().map(|thread| thread.cpu).collect();
        Row {
            own: None,
            name: &summary.name,
            host: &measured.host,
            started_unix_ms: measured.started_unix_ms,
            load: conditions.load.clone(),
            policy: conditions.policy.map(|policy| policy.to_string()),
            period: conditions.period,
            method: Some(format!("{}: {}", measured.source.tool, conditions.what)),
            cpus: cpus.map(|cpus| cpus.into_iter().collect::<model::CpuSet>().to_string()),
            measured: measured.measured,
            samples: summary.samples,
            missed: summary.missed,
            min_ns: summary.min_ns,
            mean_ns: summary.mean_ns,
            stddev_ns: summary.stddev_ns,
            quantiles: &summary.quantiles,
            max_ns: summary.max_ns,
            max_cpu: summary.max_thread,
            n_eff: summary.quantiles.p99.n_eff(),
        }
    }

    /// Time measured, s; 0 where it is not known.
    pub(super) fn seconds(&self) -> f64 {
        self.measured.map_or(0.0, Span::as_secs_f64)
    }
}
