//! The table of what went on while measuring: the load's work, and how busy the machine was.

use super::lines::Lines;
use analysis::wording::{number, things};
use analysis::{CellSummary, LoadRate, RunSummary};
use comfy_table::{CellAlignment, ContentArrangement, Table};
use std::io;

pub(super) const HEAD: [&str; 5] = ["while measuring", "the load did", "CPUs used", "idle", "steal"];

/// Writes one row for each part of each cell's load; nothing when no cell has one.
pub(super) fn write(out: &mut dyn io::Write, summary: &RunSummary, lines: &Lines) -> io::Result<()> {
    let loaded: Vec<_> = summary.cells.iter().filter(|cell| !cell.loads.is_empty()).collect();
    if loaded.is_empty() {
        return Ok(());
    }
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(HEAD);
    for cell in summary.cells.iter().filter(|cell| cell.blocks > 0) {
        rows(cell).into_iter().for_each(|row| {
            table.add_row(row);
        });
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_cell_alignment(if index < 2 { CellAlignment::Left } else { CellAlignment::Right });
        column.set_padding((if index == 0 { 1 } else { 2 }, 0));
    }
    writeln!(out)?;
    let drawn: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    let (head, rows) = drawn.split_first().map_or((String::new(), &drawn[..]), |(head, rows)| (head.clone(), rows));
    lines.heading(out, &head)?;
    rows.iter().try_for_each(|row| writeln!(out, "{row}"))
}

/// The first row has the name of the cell and what the machine did; further parts of its load come below.
pub(super) fn rows(cell: &CellSummary) -> Vec<[String; 5]> {
    let percent = |share: Option<f64>| share.map_or_else(dash, |share| format!("{:.0} %", share * 100.0));
    let (idle, steal) = (percent(cell.machine.idle), percent(cell.machine.steal));
    let of = |part: &LoadRate| {
        let several = cell.loads.len() > 1;
        (did(part, several), part.cpus_used.map_or_else(dash, |cpus| format!("{cpus:.1}")))
    };
    let mut parts = cell.loads.iter().map(of);
    let (did, used) = parts.next().unwrap_or_else(|| (dash(), dash()));
    let mut rows = vec![[cell.name.clone(), did, used, idle, steal]];
    rows.extend(parts.map(|(did, used)| [String::new(), did, used, String::new(), String::new()]));
    rows
}

/// `745 000 messages/s`, with the part's name where there are several.
fn did(part: &LoadRate, several: bool) -> String {
    let rate = part.per_second.map_or_else(
        || "ran".to_owned(),
        |rate| {
            let things = things(2, &part.operation);
            let thing = things.strip_prefix("2 ").unwrap_or(&things);
            format!("{} {thing}/s", number(three_digits(rate)))
        },
    );
    if several { format!("{}: {rate}", part.load) } else { rate }
}

/// The nearest number with three digits that matter.
fn three_digits(value: f64) -> f64 {
    if value < 1000.0 {
        return value;
    }
    let scale = 10_f64.powf(value.log10().floor() - 2.0);
    (value / scale).round() * scale
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(operation: &str, per_second: Option<f64>) -> LoadRate {
        LoadRate {
            load: "disk".to_owned(),
            operation: operation.to_owned(),
            per_second,
            cpus_used: None,
            lowest_share: None,
        }
    }

    #[test]
    fn rates_have_three_digits_and_say_what_of() {
        for (operation, per_second, several, text) in [
            ("message", Some(744_940.0), false, "745 000 messages/s"),
            ("message", Some(1_234_567.0), true, "disk: 1 230 000 messages/s"),
            ("process", Some(999.6), false, "1 000 processes/s"),
            ("look", Some(4.25), false, "4.25 looks/s"),
            ("run", None, false, "ran"),
        ] {
            assert_eq!(did(&part(operation, per_second), several), text);
        }
    }
}
