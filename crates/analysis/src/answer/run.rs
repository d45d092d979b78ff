//! The answer of a run, by what its cells measure.

use super::sentence::Answer;
use super::{kept, late, noise};
use crate::row::Row;
use crate::summary::cell::CellSummary;

/// What the cells of a run show; `rows` are those with latencies.
pub(crate) fn of_run(cells: &[CellSummary], rows: &[Row<'_>]) -> Answer {
    if rows.is_empty() {
        return kept::of_costs(cells);
    }
    if rows.iter().filter_map(Row::own).all(|cell| cell.cell.task.is_noise()) {
        return noise::of_cells(cells);
    }
    let watched = rows.iter().filter_map(Row::own).find(|cell| cell.watch.is_some()).map(late::of_watched);
    watched.or_else(|| late::of_explained(rows)).unwrap_or_else(|| kept::of_rows(rows))
}
