//! The table: one row for each cell, as many columns as the terminal has room for.

use super::lines::Lines;
use analysis::wording::{count, duration};
use analysis::{CellSummary, Level, RunSummary};
use comfy_table::{CellAlignment, ContentArrangement, Table};
use model::Method;
use std::io;

/// One column: its head, what it shows of a cell, and which terminals it is too much for.
#[derive(Debug, Clone, Copy)]
struct Column {
    head: &'static str,
    show: fn(&CellSummary) -> String,
    is_text: bool,
    /// Left out before those of a higher number when the terminal is narrow; `None`: never.
    spare: Option<u8>,
}

/// The heads of a table, each with whether its column holds text.
pub(super) type Heads = Vec<(&'static str, bool)>;

/// The head of an interval's column.
const INTERVAL: &str = "[95 %]";

const fn text(head: &'static str, show: fn(&CellSummary) -> String) -> Column {
    Column { head, show, is_text: true, spare: None }
}

const fn figure(head: &'static str, show: fn(&CellSummary) -> String, spare: Option<u8>) -> Column {
    Column { head, show, is_text: false, spare }
}

const FIGURES: [Column; 12] = [
    figure("wake-ups", |cell| count(cell.samples), None),
    figure("n_eff", |cell| cell.n_eff.map_or_else(dash, count), Some(0)),
    figure("missed", missed, None),
    figure("min", |cell| latency_or_dash(cell.min_ns), Some(2)),
    figure("mean", |cell| cell.mean_ns.map_or_else(dash, latency), Some(0)),
    figure("p50", |cell| value(cell, Level::P50), Some(5)),
    figure("p99", |cell| value(cell, Level::P99), None),
    Column { is_text: true, ..figure(INTERVAL, |cell| interval(cell, Level::P99), Some(1)) },
    figure("p99.9", |cell| value(cell, Level::P999), None),
    Column { is_text: true, ..figure(INTERVAL, |cell| interval(cell, Level::P999), Some(3)) },
    figure("max", max, None),
    figure("when", when, Some(4)),
];

/// The figures of sleeps, which are no due times that could be missed.
const SLEEP_FIGURES: [Column; 9] = [
    figure("sleeps", |cell| count(cell.samples), None),
    figure("min", |cell| latency_or_dash(cell.min_ns), Some(3)),
    figure("mean", |cell| cell.mean_ns.map_or_else(dash, latency), None),
    figure("sd", |cell| cell.stddev_ns.map_or_else(dash, latency), None),
    figure("p50", |cell| value(cell, Level::P50), Some(4)),
    figure("p99", |cell| value(cell, Level::P99), Some(2)),
    Column { is_text: true, ..figure(INTERVAL, |cell| interval(cell, Level::P99), Some(0)) },
    figure("max", max, None),
    figure("when", when, Some(1)),
];

pub(super) fn write(out: &mut dyn io::Write, summary: &RunSummary, lines: &Lines) -> io::Result<()> {
    let (mut columns, cells) = asked(summary);
    let are_sleeps = are_sleeps(&cells);
    let mut table = fitted(&columns, &cells, lines.width);
    while widest(&table) > lines.width {
        let spare = (0..columns.len()).filter(|i| columns[*i].spare.is_some()).min_by_key(|i| columns[*i].spare);
        let Some(index) = spare else { break };
        columns.remove(index);
        table = fitted(&columns, &cells, lines.width);
    }
    let has = |head: &str| columns.iter().any(|column| column.head == head);
    let mut unit = super::unit(summary).to_owned();
    unit.push_str(if has(INTERVAL) { "; [95 %]: interval" } else { "" });
    unit.push_str(if has("n_eff") { "; n_eff: independent ones" } else { "" });
    unit.push_str(if has("when") { "; when: into the run" } else { "" });
    if are_sleeps {
        lines.paragraph(out, "", "Sleep error: how much longer than asked; sd: its standard deviation.")?;
    }
    let drawn = table.join("\n");
    let (head, rows) = drawn.split_once('\n').unwrap_or((&drawn, ""));
    lines.heading(out, head)?;
    writeln!(out, "{rows}")?;
    // That of virtual time is longer than a narrow line.
    if unit.chars().count() > lines.width {
        return lines.paragraph(out, "", &unit);
    }
    writeln!(out, "{unit:>width$}", width = widest(&table))
}

/// Every column there is for these cells, and the cells in the order of the table.
fn asked(summary: &RunSummary) -> (Vec<Column>, Vec<&CellSummary>) {
    let mut cells: Vec<_> = summary.cells.iter().filter(|cell| cell.cell.method.waits()).collect();
    let are_sleeps = are_sleeps(&cells);
    if are_sleeps {
        // The sleeps of one language below each other, in the order in which they were asked for.
        cells.sort_by_key(|cell| (cell.cell.method, cell.cell.policy, cell.cell.load.clone()));
    }
    let mut columns = if are_sleeps { sleep_axes(&cells) } else { axes(&cells) };
    columns.extend(if are_sleeps { SLEEP_FIGURES.to_vec() } else { FIGURES.to_vec() });
    (columns, cells)
}

fn are_sleeps(cells: &[&CellSummary]) -> bool {
    !cells.is_empty() && cells.iter().all(|cell| matches!(cell.cell.method, Method::Sleep(_)))
}

/// Heads of all columns, with whether they hold text, and the rows: the table where nothing limits its width.
pub(super) fn everything(summary: &RunSummary) -> (Heads, Vec<Vec<String>>) {
    let (columns, cells) = asked(summary);
    let rows = cells.iter().map(|cell| columns.iter().map(|column| (column.show)(cell)).collect()).collect();
    (columns.iter().map(|column| (column.head, column.is_text)).collect(), rows)
}

/// The columns that say which sleeps they are.
fn sleep_axes(cells: &[&CellSummary]) -> Vec<Column> {
    let runtime = |cell: &CellSummary| match cell.cell.method {
        Method::Sleep(runtime) => runtime.to_string(),
        other => other.to_string(),
    };
    let mut columns = vec![text("runtime", runtime), text("policy", |cell| cell.cell.policy.to_string())];
    let load = text("load", |cell| cell.cell.load.label());
    columns.extend(varies(cells, load.show).then_some(load));
    columns.push(figure("asked", |cell| cell.cell.period.to_string(), None));
    columns
}

/// The columns that say which cell it is: an axis with one value only is said above the table.
fn axes(cells: &[&CellSummary]) -> Vec<Column> {
    let kernel = text("kernel", |cell| cell.cell.kernel.to_string());
    let period = text("period", |cell| duration(cell.cell.period.ns() as f64));
    let method = text("method", |cell| cell.cell.method.to_string());
    let mut columns =
        vec![text("load", |cell| cell.cell.load.label()), text("policy", |cell| cell.cell.policy.to_string())];
    columns.extend([period, method].into_iter().filter(|axis| varies(cells, axis.show)));
    if varies(cells, kernel.show) {
        columns.insert(0, kernel);
    }
    let again = text("A/A", |cell| if cell.again { "again".to_owned() } else { String::new() });
    columns.extend(varies(cells, again.show).then_some(again));
    columns
}

fn varies(cells: &[&CellSummary], show: fn(&CellSummary) -> String) -> bool {
    cells.windows(2).any(|pair| show(pair[0]) != show(pair[1]))
}

/// A table of these columns, head first: those that say nothing are left out, and then what is least missed as long as it is
/// wider than the terminal.
pub(super) fn fit(heads: &[(&str, bool)], rows: &[Vec<String>], width: usize) -> String {
    /// In the order in which they go.
    const SPARE: [&str; 12] =
        ["mean", "tool", "min", "load", "p50", "nmi", "softirqs", "hw", "irqs", "threads", "longest", "noise"];
    let says = |i: &usize| rows.iter().any(|row| row.get(*i).is_some_and(|field| field != "-"));
    let mut shown: Vec<usize> = (0..heads.len()).filter(says).collect();
    loop {
        let drawn = drawn_of(&shown, heads, rows);
        let spare = SPARE.iter().find_map(|name| shown.iter().position(|i| heads[*i].0 == *name));
        match spare.filter(|_| widest(&drawn) > width) {
            Some(at) => drop(shown.remove(at)),
            None => return drawn.join("\n"),
        }
    }
}

fn drawn_of(shown: &[usize], heads: &[(&str, bool)], rows: &[Vec<String>]) -> Vec<String> {
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(shown.iter().map(|i| heads[*i].0));
    for row in rows {
        table.add_row(shown.iter().map(|i| row[*i].as_str()));
    }
    for (i, column) in shown.iter().zip(table.column_iter_mut()) {
        column.set_cell_alignment(if heads[*i].1 { CellAlignment::Left } else { CellAlignment::Right });
        column.set_padding((2, 0));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// The lines of the table, with more space between the columns where there is room for it.
fn fitted(columns: &[Column], cells: &[&CellSummary], width: usize) -> Vec<String> {
    let airy = drawn(columns, cells, 2);
    if widest(&airy) <= width { airy } else { drawn(columns, cells, 1) }
}

fn drawn(columns: &[Column], cells: &[&CellSummary], space: u16) -> Vec<String> {
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(columns.iter().map(|column| column.head));
    for cell in cells {
        table.add_row(columns.iter().map(|column| (column.show)(cell)));
    }
    for (column, drawn) in columns.iter().zip(table.column_iter_mut()) {
        drawn.set_cell_alignment(if column.is_text { CellAlignment::Left } else { CellAlignment::Right });
        // An interval belongs to the figure on its left.
        drawn.set_padding((if column.head == INTERVAL { 1 } else { space }, 0));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

fn widest(lines: &[String]) -> usize {
    lines.iter().map(|line| line.chars().count()).max().unwrap_or(0)
}

fn dash() -> String {
    "-".to_owned()
}

/// A latency as the table shows it: microseconds, and from 100 000 of them on milliseconds or seconds with their unit.
pub(super) fn latency(ns: f64) -> String {
    let us = ns / 1e3;
    match us.abs() {
        size if size < 9.95 => format!("{us:.1}"),
        size if size < 99_999.5 => {
            let sign = if us < 0.0 { "-" } else { "" };
            format!("{sign}{}", grouped(size))
        }
        size if size < 999_500.0 => format!("{:.0} ms", us / 1e3),
        size if size < 9_950_000.0 => format!("{:.1} s", us / 1e6),
        size => format!("{} s", grouped(size / 1e6)),
    }
}

fn grouped(value: f64) -> String {
    format!("{value:.0}").parse().map_or_else(|_| dash(), count)
}

fn latency_or_dash(ns: Option<i64>) -> String {
    ns.map_or_else(dash, |ns| latency(ns as f64))
}

/// Relative waits have no due times that could be missed.
fn missed(cell: &CellSummary) -> String {
    if cell.cell.method.is_relative() { dash() } else { count(cell.missed) }
}

fn value(cell: &CellSummary, level: Level) -> String {
    latency_or_dash(cell.quantiles.at(level).value_ns())
}

fn interval(cell: &CellSummary, level: Level) -> String {
    let interval = cell.quantiles.at(level).interval_ns();
    interval.map_or_else(String::new, |(lower, upper)| format!("[{}-{}]", latency(lower as f64), latency(upper as f64)))
}

/// The largest latency; of a wait that never ended, what it is more than.
fn max(cell: &CellSummary) -> String {
    cell.max.map_or_else(dash, |max| {
        let more_than = if max.at_least { ">" } else { "" };
        format!("{more_than}{}", latency(max.latency_ns as f64))
    })
}

/// Minutes and seconds since the run began.
fn when(cell: &CellSummary) -> String {
    cell.max.and_then(|max| max.run_ms).map_or_else(dash, |ms| {
        let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
        if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_have_the_digits_that_matter_and_an_unambiguous_unit() {
        for (ns, text) in [
            (0.0, "0.0"),
            (-240.0, "-0.2"),
            (5_300.0, "5.3"),
            (9_949.0, "9.9"),
            (9_951.0, "10"),
            (41_400.0, "41"),
            (8_400_000.0, "8 400"),
            (99_999_000.0, "99 999"),
            (100_000_000.0, "100 ms"),
            (949_965_000.0, "950 ms"),
            (999_600_000.0, "1.0 s"),
            (9_300_000_000.0, "9.3 s"),
            (12_300_000_000.0, "12 s"),
            (7_200_000_000_000.0, "7 200 s"),
        ] {
            assert_eq!(latency(ns), text);
        }
    }
}
