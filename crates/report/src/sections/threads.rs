//! The table of threads of different periods in one cell, common to all formats.

use super::Section;
use super::latencies::{bound, latency, latency_or_dash};
use crate::table::{Column, Table, dash};
use punctual_analysis::wording::{count, duration};
use punctual_analysis::{CellSummary, RunSummary, ThreadSummary};

type Row<'a> = (&'a CellSummary, &'a ThreadSummary);

type Field<'a> = crate::table::Field<Row<'a>>;

fn fields<'a>() -> [Field<'a>; 9] {
    [
        (Column::text("threads"), |(cell, _)| cell.name.clone()),
        (Column::figure("CPU"), |(_, thread)| thread.cpu.to_string()),
        (Column::figure("period"), |(_, thread)| duration(thread.period.ns() as f64)),
        (Column::figure("wake-ups"), |(_, thread)| count(thread.all.samples)),
        (Column::figure("missed"), missed),
        (Column::figure("min"), |(_, thread)| latency_or_dash(thread.all.min_ns)),
        (Column::figure("mean"), |(_, thread)| bound(thread.all.mean(), latency)),
        (Column::figure("max"), |row| bound(largest(row), latency)),
        (Column::figure("sd").spare(0), |(_, thread)| thread.all.stddev_ns.map_or_else(dash, latency)),
    ]
}

/// Relative waits have no due times to miss.
fn missed((cell, thread): &Row<'_>) -> String {
    if cell.cell.task.is_relative() { dash() } else { count(thread.all.missed) }
}

fn largest((_, thread): &Row<'_>) -> Option<(f64, bool)> {
    Some((thread.all.max_ns? as f64, thread.all.max_is_lower_bound))
}

/// The cells of a run whose threads have different periods, by thread; `None` without one.
pub(crate) fn of<'a>(summary: &'a RunSummary) -> Option<Section> {
    let cells = summary.cells.iter().filter(|cell| cell.has_several_periods());
    let of_cell = |cell: &'a CellSummary| cell.by_thread.iter().map(move |thread| (cell, thread));
    let rows: Vec<Row<'a>> = cells.flat_map(of_cell).collect();
    if rows.is_empty() {
        return None;
    }
    let table = Table::of(&fields(), &rows);
    let note = format!(
        "Threads of different periods, measured at the same time; sd: standard deviation. Figures of a whole cell pool \
         them: the thread with the shortest period has the most wake-ups. In {}.",
        crate::unit(summary)
    );
    Some(Section {
        title: "Threads of different periods",
        table: Some(table),
        sentences: Vec::new(),
        notes: vec![note],
    })
}
