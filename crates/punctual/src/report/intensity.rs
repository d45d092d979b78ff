//! The table of what went on while measuring: the load's work, and how busy the machine was.

use super::lines::Lines;
use analysis::wording::{number, things};
use analysis::{CellSummary, LoadRate, RunSummary};
use comfy_table::{CellAlignment, ContentArrangement, Table};
use model::{LoadRecord, MachineSecond};
use std::io;

/// Columns are not cut to fewer characters.
const NARROWEST: usize = 14;

pub(super) const HEAD: [&str; 5] = ["while measuring", "the load did", "CPUs used", "idle", "steal"];

/// Writes one row for each part of each cell's load; nothing when no cell has one.
pub(super) fn write(out: &mut dyn io::Write, summary: &RunSummary, lines: &Lines) -> io::Result<()> {
    let loaded: Vec<_> = summary.cells.iter().filter(|cell| !cell.loads.is_empty()).collect();
    if loaded.is_empty() {
        return Ok(());
    }
    let mut rows: Vec<_> = summary.cells.iter().filter(|cell| cell.blocks > 0).flat_map(rows).collect();
    let mut table = drawn(&rows);
    // The name of a cell gives way first: the table of latencies has it, too.
    for column in [0, 1] {
        let excess = widest(&table).saturating_sub(lines.width);
        if excess > 0 {
            let width = rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            let most = width.saturating_sub(excess).max(NARROWEST);
            rows.iter_mut().for_each(|row| row[column] = shortened(&row[column], most));
            table = drawn(&rows);
        }
    }
    writeln!(out)?;
    let (head, rows) = table.split_first().map_or((String::new(), &table[..]), |(head, rows)| (head.clone(), rows));
    lines.heading(out, &head)?;
    rows.iter().try_for_each(|row| writeln!(out, "{row}"))
}

fn drawn(rows: &[[String; 5]]) -> Vec<String> {
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(HEAD);
    for row in rows {
        table.add_row(row);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_cell_alignment(if index < 2 { CellAlignment::Left } else { CellAlignment::Right });
        column.set_padding((if index == 0 { 1 } else { 2 }, 0));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

fn widest(lines: &[String]) -> usize {
    lines.iter().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// The beginning of a text that is longer than `most`.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(3)).chain("...".chars()).collect()
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
    let rate = rate(part.per_second, &part.operation);
    if several { format!("{}: {rate}", part.load) } else { rate }
}

fn rate(per_second: Option<f64>, operation: &str) -> String {
    let Some(per_second) = per_second else { return "ran".to_owned() };
    let things = things(2, operation);
    let thing = things.strip_prefix("2 ").unwrap_or(&things);
    format!("{} {thing}/s", number(three_digits(per_second)))
}

/// What one part of a load did: `745 000 messages/s, 1.9 CPUs`.
pub(crate) fn load_rate(record: &LoadRecord) -> String {
    let used = record.cpus_used().map(|cpus| format!(", {cpus:.2} CPUs")).unwrap_or_default();
    format!("{}{used}", rate(record.per_second(), &record.operation))
}

/// How busy the machine was in one stretch: `machine idle 12 %, steal 0 %`. Nothing without the number of CPUs `online`
/// that these times are summed over.
pub(crate) fn machine_share(row: &MachineSecond, online: Option<usize>) -> String {
    let all_ms = row.elapsed.ns() as f64 / 1e6 * online.unwrap_or(0) as f64;
    let share = |ms: Option<u64>| ms.filter(|_| all_ms > 0.0).map(|ms| (ms as f64 / all_ms).min(1.0) * 100.0);
    let words = [("machine idle", share(row.idle_ms)), ("steal", share(row.steal_ms))];
    let known = words.into_iter().filter_map(|(name, percent)| Some(format!("{name} {:.0} %", percent?)));
    known.collect::<Vec<_>>().join(", ")
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
    fn the_machine_is_said_to_be_idle_by_shares_of_all_its_cpus() {
        let row = |idle_ms, steal_ms| MachineSecond {
            elapsed: model::Span(2_000_000_000),
            idle_ms,
            steal_ms,
            ..MachineSecond::default()
        };
        for (row, online, text) in [
            (row(Some(1_000), Some(0)), Some(2), "machine idle 25 %, steal 0 %"),
            (row(Some(4_010), Some(40)), Some(2), "machine idle 100 %, steal 1 %"),
            (row(Some(1_000), None), Some(2), "machine idle 25 %"),
            (row(Some(1_000), Some(0)), None, ""),
            (MachineSecond::default(), Some(2), ""),
        ] {
            assert_eq!(machine_share(&row, online), text);
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
