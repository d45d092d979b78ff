//! The table of activity during the measurement: the load's work and the machine's CPU time.

use crate::lines::{Lines, shortened};
use crate::table::{Column, Table, dash, share};
use punctual_analysis::wording::{number, things};
use punctual_analysis::{CellSummary, ComparedLoad, LoadRate, RunSummary};
use punctual_model::{LoadRecord, MachineSecond};
use std::io;

/// Columns are not cut below this width.
const NARROWEST: usize = 14;

/// Writes one row for each part of each cell's load; nothing without loads.
pub(crate) fn write(out: &mut dyn io::Write, summary: &RunSummary, lines: &Lines) -> io::Result<()> {
    let loaded: Vec<_> = summary.cells.iter().filter(|cell| !cell.loads.is_empty()).collect();
    if loaded.is_empty() {
        return Ok(());
    }
    let mut table = table(summary);
    // Cell names are cut first, because the table of latencies repeats them.
    for column in [0, 1] {
        let excess = table.width().saturating_sub(lines.width);
        if excess > 0 {
            let width = table.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            let most = width.saturating_sub(excess).max(NARROWEST);
            table.rows.iter_mut().for_each(|row| row[column] = shortened(&row[column], most));
        }
    }
    writeln!(out)?;
    table.write(out, lines)
}

/// The measured cells, with or without a load.
pub(crate) fn table(summary: &RunSummary) -> Table {
    let columns = vec![
        Column::text("while measuring").after(1),
        Column::text("load rate"),
        Column::figure("CPUs used"),
        Column::figure("idle"),
        Column::figure("steal"),
    ];
    let measured = summary.cells.iter().filter(|cell| cell.blocks > 0);
    Table::new(columns, measured.flat_map(rows).map(Vec::from).collect())
}

/// Rows of a cell: the first has its name and the machine's activity; further parts of its load follow.
fn rows(cell: &CellSummary) -> Vec<[String; 5]> {
    let (idle, steal) = (share(cell.machine.idle), share(cell.machine.steal));
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

/// `745 000 messages/s`, with the part's name if there are several.
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

/// Rates of the parts of a cell's load as operations a second, in the order of the load: `440`, `440+12 300`. A dash
/// without a load.
pub(crate) fn rates(cell: &CellSummary) -> String {
    let rate = |part: &LoadRate| part.per_second.map_or_else(|| "?".to_owned(), |rate| number(three_digits(rate)));
    if cell.loads.is_empty() { dash() } else { cell.loads.iter().map(rate).collect::<Vec<_>>().join("+") }
}

/// Work of the loads that two configurations have in common, of each: `440 mappings/s`. Empty without one.
pub(crate) fn of_both(loads: &[ComparedLoad]) -> [String; 2] {
    [|load: &ComparedLoad| load.a_per_second, |load: &ComparedLoad| load.b_per_second].map(|per_second| {
        let known = loads.iter().filter_map(|load| Some(rate(Some(per_second(load)?), &load.operation)));
        known.collect::<Vec<_>>().join(" + ")
    })
}

/// Rate of one part of a load: `745 000 messages/s, 1.9 CPUs`.
pub fn load_rate(record: &LoadRecord) -> String {
    let used = record.cpus_used().map(|cpus| format!(", {cpus:.2} CPUs")).unwrap_or_default();
    format!("{}{used}", rate(record.per_second(), &record.operation))
}

/// CPU time of the machine in one interval: `machine idle 12 %, steal 0 %`. Empty without the number of CPUs `online`,
/// over which the times are summed.
pub fn machine_share(row: &MachineSecond, online: Option<usize>) -> String {
    let all_ms = row.elapsed.ns() as f64 / 1e6 * online.unwrap_or(0) as f64;
    let share = |ms: Option<u64>| ms.filter(|_| all_ms > 0.0).map(|ms| (ms as f64 / all_ms).min(1.0) * 100.0);
    let words = [("machine idle", share(row.idle_ms)), ("steal", share(row.steal_ms))];
    let known = words.into_iter().filter_map(|(name, percent)| Some(format!("{name} {:.0} %", percent?)));
    known.collect::<Vec<_>>().join(", ")
}

/// The value rounded to three significant digits.
fn three_digits(value: f64) -> f64 {
    if value < 1000.0 {
        return value;
    }
    let scale = 10_f64.powf(value.log10().floor() - 2.0);
    (value / scale).round() * scale
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
            elapsed: punctual_model::Span(2_000_000_000),
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
    fn work_of_both_is_that_of_the_parts_in_common() {
        let load = |a_per_second, b_per_second| ComparedLoad {
            load: "mmap".to_owned(),
            operation: "mapping".to_owned(),
            a_per_second,
            b_per_second,
            differs: true,
        };
        assert_eq!(of_both(&[]), ["", ""]);
        assert_eq!(
            of_both(&[load(Some(440.0), Some(199.0)), load(None, Some(1.0))]),
            ["440 mappings/s", "199 mappings/s + 1 mappings/s"]
        );
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
