//! Summary of a run or of imports: summaries of the cells, findings, and the verdict on requirements.

use crate::answer::{self, Answer};
use crate::findings::{self, Finding, ImportedFinding, Realtime};
use crate::row::Row;
use crate::search::shortfall::{Shortfall, shortfalls};
use crate::summary::cell::{self, CellSummary};
use crate::summary::floor::{self, FloorSummary};
use crate::summary::imported::{self, ImportedCell};
use crate::summary::pool::Pool;
use crate::summary::{load_costs, looks, names};
use crate::verdict::{Case, Verdict};
use punctual_model::{Entry, Header, Imported, Requirement};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread::Builder;

/// Summary of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSummary {
    /// One for each cell, in the order of the plan, including cells without a record.
    pub cells: Vec<CellSummary>,
    /// Findings of each of these cells, most important first.
    pub cell_findings: Vec<Vec<Finding>>,
    /// Findings of the run as a whole, most important first.
    pub findings: Vec<Finding>,
    /// Shortfalls until the numbers are precise enough; `None` unless the run was to end at that point.
    pub shortfalls: Option<Vec<Shortfall>>,
    /// What settings change; `None` unless it is a run of `punctual floor`.
    pub floor: Option<FloorSummary>,
    /// Verdict: whether the machine meets the requirements of the plan.
    pub verdict: Verdict,
    /// Verdict for each limit in each cell; empty without requirements.
    pub cases: Vec<Case>,
    /// The answer without limits.
    pub(crate) without_limits: Answer,
}

/// Summary of measurements that were imported together.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedSummary {
    /// One for each measurement, in the order of the command line.
    pub cells: Vec<ImportedCell>,
    /// Findings of each of these, most important first.
    pub cell_findings: Vec<Vec<ImportedFinding>>,
    /// Verdict: whether they meet the requirements.
    pub verdict: Verdict,
    /// Verdict for each limit in each cell; empty without requirements.
    pub cases: Vec<Case>,
    /// The answer without limits.
    pub(crate) without_limits: Answer,
}

impl RunSummary {
    /// The answer: the verdict on the limits, or what the cells show without any.
    pub fn answer(&self) -> Answer {
        let answer = Answer::of(&self.verdict, &self.without_limits);
        match self.cells.iter().filter(|cell| cell.cell.kernel.is_virtual()).count() {
            0 => answer,
            n if n == self.cells.len() => answer.marked("virtual time"),
            _ => answer.marked("partly virtual time"),
        }
    }

    /// Adds the verdict of a comparison on each cell: no cell passes whose evidence is incomplete, and no such run.
    pub(crate) fn compared(&mut self, header: &Header, entries: &[Entry], limit: &str, verdicts: Vec<Verdict>) {
        let mut rows = Row::of_run(header, &self.cells, &self.cell_findings);
        let mut cases: Vec<Case> =
            rows.iter().zip(&verdicts).map(|(row, verdict)| Case::of_cell(row, limit, verdict)).collect();
        rows.retain(Row::has_latencies);
        if self.cases.is_empty() {
            cases.insert(0, Case::complete(header, entries, &rows));
        }
        self.verdict = Verdict::together([&self.verdict].into_iter().chain(cases.iter().map(|case| &case.verdict)));
        self.cases.extend(cases);
    }
}

impl ImportedSummary {
    /// The answer, as [`RunSummary::answer`].
    pub fn answer(&self) -> Answer {
        Answer::of(&self.verdict, &self.without_limits)
    }
}

/// Computes the summary of imported measurements.
pub fn summarise_imported(all: &[Imported], require: &Requirement) -> ImportedSummary {
    let cells = imported::cells(all);
    let cell_findings: Vec<_> = cells.iter().map(findings::of_imported).collect();
    let cases = Case::of_cells(require, &Row::of_imported(&cells, &cell_findings));
    let verdict = Verdict::together(cases.iter().map(|case| &case.verdict));
    let without_limits = answer::of_imported(&cells);
    ImportedSummary { cells, cell_findings, verdict, cases, without_limits }
}

/// Computes the summary of a run. Pure: the same records give the same summary, on any machine.
pub fn summarise(header: &Header, entries: &[Entry]) -> RunSummary {
    let names = names::of_cells(&header.cells);
    let pools = Pool::of_run(header, entries);
    let named: Vec<_> = pools.iter().zip(names).collect();
    let mut cells = on_all_cpus(&named, |(pool, name)| cell::summary(header, pool, name.clone()));
    load_costs::set_changes(&mut cells);
    let pairs: Vec<_> = pools.iter().zip(&cells).collect();
    let realtime = Realtime::of(&cells);
    let cell_findings = on_all_cpus(&pairs, |(pool, cell)| findings::of_cell(header, pool, cell, &realtime));
    let findings = findings::of_run(header, entries, &cells);
    // Requirements apply to latencies only.
    let mut rows = Row::of_run(header, &cells, &cell_findings);
    rows.retain(Row::has_latencies);
    let verdict = Verdict::of(header, entries, &rows);
    let cases = Case::all(header, entries, &rows);
    let own = || rows.iter().filter_map(Row::own);
    let shortfalls = looks::looks(header).map(|_| shortfalls(&header.plan.require, own()));
    let floor = floor::of(header, &cells);
    let of_floor = floor.as_ref().and_then(|_| answer::of_floor(&cells));
    let without_limits = of_floor.unwrap_or_else(|| answer::of_run(&cells, &rows));
    RunSummary { cells, cell_findings, findings, shortfalls, floor, verdict, cases, without_limits }
}

/// Maps `of` over the items, in order, with one thread for each CPU, because a run may have thousands of cells. If a
/// thread cannot be created, the calling thread does its part.
pub fn on_all_cpus<T: Sync, R: Send>(items: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let all = |part: &[T]| part.iter().map(&of).collect::<Vec<R>>();
    let all = &all;
    std::thread::scope(|scope| {
        let parts = items.chunks(items.len().div_ceil(threads).max(1));
        let begin = |part| Builder::new().spawn_scoped(scope, move || all(part)).map_err(|_| part);
        let parts: Vec<_> = parts.map(begin).collect();
        let end =
            |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        parts.into_iter().flat_map(|part| part.map_or_else(all, end)).collect()
    })
}
