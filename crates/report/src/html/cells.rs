//! The cells of all runs in one list, own and imported ones alike, and which of them have pictures.

use super::axes::Counted;
use super::{PageRun, runs};
use crate::formats::Row;
use analysis::{CellSummary, Curves, Finding, ImportedCell, Level, curves, imported_curves};
use std::cmp::Reverse;
use std::collections::HashSet;

/// Cells with pictures; of more, those with the largest p99.9 and those with the largest maximum, half and half. A page
/// with more pictures would be too large to open.
pub(super) const PICTURED: usize = 200;

/// A cell of a run.
#[derive(Debug)]
pub(super) struct Member<'a> {
    /// Its number in the page, from 1.
    pub(super) id: usize,
    /// Index of its run.
    run: usize,
    /// Index among the cells of its run.
    index: usize,
    /// Which run, where there are several.
    letter: Option<char>,
    /// Its numbers.
    pub(super) row: Row<'a>,
    /// What else is known of it.
    pub(super) cell: Cell<'a>,
    /// What pictures are drawn from; `None` for one that has none.
    pub(super) curves: Option<Curves>,
}

/// A cell by its origin, with its findings.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell<'a> {
    Own(&'a CellSummary, &'a [Finding]),
    Imported(&'a ImportedCell),
}

impl Member<'_> {
    /// What the page calls it.
    pub(super) fn name(&self) -> String {
        self.letter.map_or_else(|| self.row.name.to_owned(), |letter| format!("{letter} {}", self.row.name))
    }

    /// Whether there is anything to draw.
    pub(super) fn is_measured(&self) -> bool {
        match self.cell {
            Cell::Own(cell, _) => cell.blocks > 0,
            Cell::Imported(_) => true,
        }
    }

    /// What the number of one of its histograms is of.
    pub(super) fn of_number(&self) -> &'static str {
        if self.is_by_thread() { "thread" } else { "CPU" }
    }

    /// Whether its numbers of CPUs are only those of threads, which may have been anywhere.
    pub(super) fn is_by_thread(&self) -> bool {
        self.row.cpus.is_none()
    }
}

/// All cells, with the curves of those that have pictures.
pub(super) fn members<'a>(runs: &'a [PageRun<'a>]) -> Vec<Member<'a>> {
    let mut members: Vec<Member<'a>> = Vec::new();
    for (run, shown) in runs.iter().enumerate() {
        let letter = super::letter(runs, run);
        let cells: Vec<(Row<'a>, Cell<'a>)> = match shown {
            PageRun::Own(run) => {
                let cells = run.summary.cells.iter().zip(&run.summary.cell_findings);
                cells.map(|(cell, findings)| (Row::of_cell(run.header, cell), Cell::Own(cell, findings))).collect()
            }
            PageRun::Imported(run) => {
                run.summary.cells.iter().map(|cell| (Row::of_imported(cell), Cell::Imported(cell))).collect()
            }
        };
        for (index, (row, cell)) in cells.into_iter().enumerate() {
            members.push(Member { id: members.len() + 1, run, index, letter, row, cell, curves: None });
        }
    }
    let pictured = pictured(&members);
    for (run, ours) in runs::own(runs) {
        let own = |member: &Member<'_>| member.run == run;
        let ids: Vec<_> = members.iter().filter(|member| own(member)).map(|member| member.id).collect();
        let wanted = |index: usize| ids.get(index).is_some_and(|id| pictured.contains(id));
        let mut drawn = curves(ours.header, ours.entries, wanted);
        for member in members.iter_mut().filter(|member| own(member)) {
            member.curves = drawn.remove(&member.index);
        }
    }
    // What operations cost has a table of its own.
    members.retain(|member| !matches!(member.cell, Cell::Own(cell, _) if !cell.cell.task.has_latencies()));
    for member in members.iter_mut().filter(|member| pictured.contains(&member.id)) {
        if let Cell::Imported(cell) = member.cell {
            member.curves = Some(imported_curves(&cell.imported));
        }
    }
    members
}

/// What all of these count.
pub(super) fn counted(members: &[Member<'_>]) -> Counted {
    let of_others = members.iter().any(|member| matches!(member.cell, Cell::Imported(_)));
    if of_others { Counted::Samples } else { Counted::WakeUps }
}

/// What times of these are of, where that is not time: for axes and tables, which do not tell cells apart.
pub(super) fn virtually(members: &[Member<'_>]) -> &'static str {
    match members.iter().filter(|member| member.row.is_virtual()).count() {
        0 => "",
        n if n == members.len() => ", virtual time",
        _ => ", of lab kernels in virtual time",
    }
}

/// The numbers of the cells with pictures.
fn pictured(members: &[Member<'_>]) -> HashSet<usize> {
    let mut measured: Vec<_> = members.iter().filter(|member| member.is_measured()).collect();
    if measured.len() <= PICTURED {
        return measured.iter().map(|member| member.id).collect();
    }
    measured.sort_by_key(|member| Reverse(member.row.quantiles.at(Level::P999).value_ns()));
    let mut chosen: HashSet<usize> = measured.iter().take(PICTURED / 2).map(|member| member.id).collect();
    measured.sort_by_key(|member| Reverse(member.row.max_ns));
    let room = PICTURED - chosen.len();
    let others: Vec<_> = measured.iter().map(|member| member.id).filter(|id| !chosen.contains(id)).take(room).collect();
    chosen.extend(others);
    chosen
}
