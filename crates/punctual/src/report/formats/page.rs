//! What every format shows, of a run of ours as of imported measurements: a fact that is not known is `None`.

use super::super::table::Heads;
use super::super::tracers::{self, Traced};
use super::super::{answer, host, imported, standout, table};
use analysis::{Case, CellSummary, ImportedCell, ImportedSummary, Quantiles, RunSummary, Tracers, Verdict};
use model::{Cell, Header, Host, ImportHeader, LabClock, Load, Method, Period, Span};

/// A run, ready to be written in any form.
#[derive(Debug)]
pub(crate) struct Page<'a> {
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
    pub(super) traced: Option<Traced>,
    /// What stands out.
    pub(super) sentences: Vec<String>,
    /// Machine and extent in a line.
    pub(super) about: String,
}

/// Heads, with whether the column holds text, and rows.
pub(super) type Table = (Heads, Vec<Vec<String>>);

/// One cell, whoever measured it.
#[derive(Debug)]
pub(in crate::report) struct Row<'a> {
    pub(in crate::report) name: &'a str,
    pub(in crate::report) host: &'a Host,
    pub(in crate::report) started_unix_ms: Option<u64>,
    pub(in crate::report) kernel: Option<String>,
    /// What its times are of: `real`, `virtual`, `emulated`, `kvm`.
    pub(in crate::report) time: Option<&'static str>,
    pub(in crate::report) load: Option<&'a Load>,
    pub(in crate::report) policy: Option<String>,
    pub(in crate::report) period: Option<Period>,
    pub(in crate::report) method: Option<String>,
    pub(in crate::report) cpus: Option<String>,
    pub(in crate::report) cell_id: Option<String>,
    pub(in crate::report) blocks: Option<u32>,
    pub(in crate::report) measured: Option<Span>,
    pub(in crate::report) samples: Option<u64>,
    /// `None` also for relative waits, which have no due times that could be missed.
    pub(in crate::report) missed: Option<u64>,
    pub(in crate::report) early: Option<u64>,
    pub(in crate::report) lost: Option<u64>,
    pub(in crate::report) censored: Option<u64>,
    pub(in crate::report) min_ns: Option<i64>,
    pub(in crate::report) mean_ns: Option<f64>,
    pub(in crate::report) stddev_ns: Option<f64>,
    pub(in crate::report) quantiles: &'a Quantiles,
    pub(in crate::report) max_ns: Option<i64>,
    pub(in crate::report) max_is_lower_bound: Option<bool>,
    pub(in crate::report) max_block: Option<u32>,
    pub(in crate::report) max_cpu: Option<u32>,
    pub(in crate::report) n_eff: Option<u64>,
    pub(in crate::report) miss_episodes: Option<u64>,
    pub(in crate::report) misses_upper_per_hour: Option<f64>,
    pub(in crate::report) tracers: Option<&'a Tracers>,
}

/// A host of which nothing is known.
static UNKNOWN: std::sync::LazyLock<Host> = std::sync::LazyLock::new(Host::default);

impl<'a> Page<'a> {
    /// A run of ours.
    pub(crate) fn of_run(header: &'a Header, summary: &'a RunSummary, all_findings: bool) -> Page<'a> {
        let mut facts = vec![header.tool.clone()];
        facts.extend(host::named(&header.host));
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
                .filter(|cell| cell.cell.method.waits())
                .map(|cell| Row::of_cell(header, cell))
                .collect(),
            verdict: &summary.verdict,
            cases: &summary.cases,
            answer: answer::how_late(summary),
            table: table::everything(summary),
            legend: format!("In {}; [95 %]: interval; when: into the run.", crate::report::unit(summary)),
            traced: tracers::of(summary),
            sentences: standout::as_text(summary, all_findings),
            about: format!("{}; {}", facts.join(" · "), host::measured(header, summary)),
        }
    }

    /// What became of each limit in each cell.
    pub(in crate::report) fn cases(&self) -> &'a [Case] {
        self.cases
    }

    /// The same of all together.
    pub(in crate::report) fn verdict(&self) -> &'a Verdict {
        self.verdict
    }

    /// Imported measurements.
    pub(crate) fn of_imported(header: &'a ImportHeader, summary: &'a ImportedSummary) -> Page<'a> {
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
            about: format!("{}; {}", header.tool, imported::about(summary).join("; ")),
        }
    }
}

impl<'a> Row<'a> {
    /// The unit of its microseconds: virtual ones are never shown as if they were time.
    pub(in crate::report) fn us(&self) -> &'static str {
        if self.is_virtual() { "virtual-us" } else { "us" }
    }

    pub(in crate::report) fn is_virtual(&self) -> bool {
        self.time == Some(LabClock::Virtual.name())
    }

    pub(in crate::report) fn of_cell(header: &'a Header, summary: &'a CellSummary) -> Row<'a> {
        let asked = &summary.cell;
        Row {
            name: &summary.name,
            host: &header.host,
            started_unix_ms: Some(header.started_unix_ms),
            kernel: Some(asked.kernel.to_string()),
            time: Some(asked.kernel.time()),
            load: Some(&asked.load),
            policy: Some(asked.policy.to_string()),
            period: Some(asked.period),
            method: Some(asked.method.to_string()),
            cpus: Some(asked.cpus.to_string()),
            cell_id: Some(Cell::id(asked).to_string()),
            blocks: Some(summary.blocks),
            measured: Some(summary.measured),
            samples: Some(summary.samples),
            missed: Some(summary.missed).filter(|_| !Method::is_relative(asked.method)),
            early: Some(summary.early),
            lost: Some(summary.lost),
            censored: Some(summary.censored.map_or(0, |open| open.waits)),
            min_ns: summary.min_ns,
            mean_ns: summary.mean_ns,
            stddev_ns: summary.stddev_ns,
            quantiles: &summary.quantiles,
            max_ns: summary.max.map(|max| max.latency_ns),
            max_is_lower_bound: summary.max.map(|max| max.at_least),
            max_block: summary.max.map(|max| max.block),
            max_cpu: summary.max.map(|max| max.cpu),
            n_eff: summary.n_eff,
            miss_episodes: summary.misses.map(|rate| rate.episodes),
            misses_upper_per_hour: summary.misses.map(|rate| rate.upper_per_hour),
            tracers: summary.tracers.as_ref(),
        }
    }

    pub(in crate::report) fn of_imported(summary: &'a ImportedCell) -> Row<'a> {
        let measured = &summary.imported;
        let conditions = &measured.conditions;
        let cpus: Option<Vec<u32>> = measured.threads.iter().map(|thread| thread.cpu).collect();
        Row {
            name: &summary.name,
            host: &measured.host,
            started_unix_ms: measured.started_unix_ms,
            kernel: None,
            time: None,
            load: conditions.load.as_ref(),
            policy: conditions.policy.map(|policy| policy.to_string()),
            period: conditions.period,
            method: Some(format!("{}: {}", measured.source.tool, conditions.what)),
            cpus: cpus.map(|cpus| cpus.into_iter().collect::<model::CpuSet>().to_string()),
            cell_id: None,
            blocks: None,
            measured: measured.measured,
            samples: summary.samples,
            missed: summary.missed,
            early: None,
            lost: None,
            censored: None,
            min_ns: summary.min_ns,
            mean_ns: summary.mean_ns,
            stddev_ns: summary.stddev_ns,
            quantiles: &summary.quantiles,
            max_ns: summary.max_ns,
            max_is_lower_bound: None,
            max_block: None,
            max_cpu: summary.max_thread,
            n_eff: summary.quantiles.p99.n_eff(),
            miss_episodes: None,
            misses_upper_per_hour: None,
            tracers: None,
        }
    }

    /// Time measured, s; 0 where it is not known.
    pub(super) fn seconds(&self) -> f64 {
        self.measured.map_or(0.0, Span::as_secs_f64)
    }
}
