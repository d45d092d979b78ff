//! The answer of a run, by what its cells measure.

use super::sentence::Answer;
use super::{kept, late};
use crate::row::Row;
use crate::summary::cell::CellSummary;

/// What the cells of a run show; `rows` are those with latencies.
pub(crate) fn of_run(cells: &[CellSummary], rows: &[Row<'_>]) -> Answer {
    if rows.is_empty() {
        return kept::of_costs(cells);
    }
    let watched = rows.iter().find_map(|row| Some((row, row.own().filter(|cell| cell.watch.is_some())?)));
    let watched = watched.map(|(row, cell)| late::of_watched(row, cell));
    watched.or_else(|| late::of_explained(rows)).unwrap_or_else(|| kept::of_rows(rows))
}
