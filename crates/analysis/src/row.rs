//! Row: a cell of a run or of an import, in the form used by verdicts, tables and charts.

use crate::findings::{Finding, ImportedFinding};
use crate::stats::levels::Quantiles;
use crate::summary::cell::{CellSummary, Max};
use crate::summary::imported::ImportedCell;
use punctual_model::{Header, Host, Imported, ImportedLoad, Level, Period, Span};

/// One cell, of a run of this program or imported. Unknown facts are `None`.
#[derive(Debug)]
pub struct Row<'a> {
    /// Source of the numbers, with the data that only this source has.
    pub origin: Origin<'a>,
    /// Name of the cell.
    pub name: &'a str,
    /// The machine.
    pub host: &'a Host,
    /// Start of its run, or of the imported measurement, ms since 1970-01-01 UTC.
    pub started_unix_ms: Option<u64>,
    /// Background work.
    pub load: Option<ImportedLoad>,
    /// Scheduling policy of the threads.
    pub policy: Option<String>,
    /// Time between two due times.
    pub period: Option<Period>,
    /// Meaning of the latencies: a method, or a tool and its term for them.
    pub method: Option<String>,
    /// Measured CPUs.
    pub cpus: Option<String>,
    /// Measuring time.
    pub measured: Option<Span>,
    /// Number of latencies recorded.
    pub samples: Option<u64>,
    /// Number of missed due times; `None` also for relative waits, which cannot miss any.
    pub missed: Option<u64>,
    /// Smallest latency, ns.
    pub min_ns: Option<i64>,
    /// Mean latency, ns.
    pub mean_ns: Option<f64>,
    /// Standard deviation, ns.
    pub stddev_ns: Option<f64>,
    /// Distribution by wake-up.
    pub quantiles: &'a Quantiles,
    /// Largest latency, ns.
    pub max_ns: Option<i64>,
    /// CPU of the largest latency; for an imported cell without CPUs its thread.
    pub max_cpu: Option<u32>,
    /// Effective sample size at p99.
    pub n_eff: Option<u64>,
}

/// The source of a cell, with its findings, most important first.
#[derive(Debug, Clone, Copy)]
pub enum Origin<'a> {
    /// Measured by this program.
    Own(&'a CellSummary, &'a [Finding]),
    /// Measured by another tool.
    Imported(&'a ImportedCell, &'a [ImportedFinding]),
}

impl<'a> Row<'a> {
    /// Rows of cells that this program measured, with the findings of each.
    pub fn of_run(header: &'a Header, cells: &'a [CellSummary], findings: &'a [Vec<Finding>]) -> Vec<Row<'a>> {
        cells.iter().zip(findings).map(|(cell, findings)| Row::of_cell(header, cell, findings)).collect()
    }

    /// Rows of imported measurements, with the findings of each.
    pub fn of_imported(cells: &'a [ImportedCell], findings: &'a [Vec<ImportedFinding>]) -> Vec<Row<'a>> {
        cells.iter().zip(findings).map(|(cell, findings)| Row::of_file(cell, findings)).collect()
    }

    fn of_cell(header: &'a Header, summary: &'a CellSummary, findings: &'a [Finding]) -> Row<'a> {
        let asked = &summary.cell;
        Row {
            origin: Origin::Own(summary, findings),
            name: &summary.name,
            host: &header.host,
            started_unix_ms: Some(header.started_unix_ms),
            load: Some(asked.load.clone().into()),
            policy: Some(asked.policy.to_string()),
            period: Some(asked.period),
            method: Some(asked.task.label()),
            cpus: Some(asked.cpus.to_string()),
            measured: (summary.blocks > 0).then_some(summary.measured),
            samples: summary.known_samples(),
            missed: summary.missed.filter(|_| !asked.task.is_relative()),
            min_ns: summary.min_ns,
            mean_ns: summary.mean_ns,
            stddev_ns: summary.stddev_ns,
            quantiles: &summary.quantiles,
            max_ns: summary.max.map(|max| max.latency_ns),
            max_cpu: summary.max.map(|max| max.cpu),
            n_eff: summary.n_eff,
        }
    }

    fn of_file(summary: &'a ImportedCell, findings: &'a [ImportedFinding]) -> Row<'a> {
        let measured = &summary.imported;
        let conditions = &measured.conditions;
        let cpus: Option<Vec<u32>> = measured.threads.iter().map(|thread| thread.cpu).collect();
        Row {
            origin: Origin::Imported(summary, findings),
            name: &summary.name,
            host: &measured.host,
            started_unix_ms: measured.started_unix_ms,
            load: conditions.load.clone(),
            policy: conditions.policy.map(|policy| policy.to_string()),
            period: conditions.period,
            method: Some(format!("{}: {}", measured.source.tool, conditions.what)),
            cpus: cpus.map(|cpus| cpus.into_iter().collect::<punctual_model::CpuSet>().to_string()),
            measured: measured.measured,
            samples: summary.samples,
            missed: summary.missed,
            min_ns: summary.min_ns,
            mean_ns: summary.mean_ns,
            stddev_ns: summary.stddev_ns,
            quantiles: &summary.quantiles,
            max_ns: summary.max_ns,
            max_cpu: summary.max_thread,
            n_eff: summary.n_eff,
        }
    }

    /// Full summary of a cell that this program measured; `None` for an imported one.
    pub fn own(&self) -> Option<&'a CellSummary> {
        match self.origin {
            Origin::Own(cell, _) => Some(cell),
            Origin::Imported(..) => None,
        }
    }

    /// The measurement of another tool; `None` for a cell that this program measured.
    pub fn imported(&self) -> Option<&'a Imported> {
        match self.origin {
            Origin::Own(..) => None,
            Origin::Imported(cell, _) => Some(&cell.imported),
        }
    }

    /// Findings of the cell, each a sentence without its full stop.
    pub fn findings(&self) -> Vec<String> {
        match self.origin {
            Origin::Own(_, findings) => findings.iter().map(ToString::to_string).collect(),
            Origin::Imported(_, findings) => findings.iter().map(ToString::to_string).collect(),
        }
    }

    /// Mean latency, ns, and whether it is a lower bound.
    pub fn mean(&self) -> Option<(f64, bool)> {
        self.own().map_or(self.mean_ns.map(|mean_ns| (mean_ns, false)), CellSummary::mean)
    }

    /// Largest latency and its time; `None` for an imported cell.
    pub fn max(&self) -> Option<Max> {
        self.own()?.max
    }

    /// Whether the cell measures latencies; a cost cell does not.
    pub fn has_latencies(&self) -> bool {
        self.own().is_none_or(|cell| cell.cell.task.has_latencies())
    }

    /// Whether it was measured in virtual time.
    pub fn is_virtual(&self) -> bool {
        self.own().is_some_and(|cell| cell.cell.kernel.is_virtual())
    }

    /// Whether an interval of this quantile for the whole cell is valid.
    pub(crate) fn allows_interval(&self, level: Level) -> bool {
        match self.origin {
            Origin::Own(cell, _) => cell.steadiness.courses.allows_interval(level),
            Origin::Imported(cell, _) => cell.steadiness.courses.allows_interval(level),
        }
    }
}
