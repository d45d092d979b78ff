//! The table of latencies: one row for each cell, as many columns as fit the terminal.

use super::intensity;
use crate::lines::Lines;
pub(crate) use crate::table::dash;
use crate::table::{Column, Table};
use analysis::wording::{count, duration};
use analysis::{CellSummary, Level, Quantile, Quantiles, RunSummary, Told};
use model::Task;
use std::io;
use std::str::FromStr;

type Field = crate::table::Field<CellSummary>;

/// Head of an interval's column.
const INTERVAL: &str = "[95 %]";

/// The head of the column of the load's operations a second.
const RATE: &str = "load/s";

/// The head of the column of effective sample sizes.
const EFFECTIVE: &str = "n_eff";

/// Columns of figures that a user can choose.
const CHOICE: [&str; 11] = ["wake-ups", EFFECTIVE, "missed", "min", "mean", "sd", "p50", "p99", "p99.9", "max", "when"];

/// A choice of the columns of figures in the text table, in the order of the table. Chosen columns stay in narrow
/// terminals; latencies have tenths of a microsecond instead of two or three digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns(u16);

impl Columns {
    fn has(self, head: &str) -> bool {
        // Sleeps and activations are the samples of their tables.
        let head = match head {
            "sleeps" | "activations" => "wake-ups",
            "skipped" => "missed",
            head => head,
        };
        CHOICE.iter().position(|name| *name == head).is_some_and(|index| self.0 & (1 << index) != 0)
    }
}

impl FromStr for Columns {
    type Err = String;

    /// Reads names of columns, separated by commas.
    fn from_str(text: &str) -> Result<Columns, String> {
        let mut columns = Columns(0);
        for name in text.split(',').map(str::trim) {
            let index = CHOICE.iter().position(|known| *known == name);
            let index = index.ok_or_else(|| format!("unknown column `{name}` (known: {})", CHOICE.join(", ")))?;
            columns.0 |= 1 << index;
        }
        Ok(columns)
    }
}

/// The chosen ones among all columns of a table, none of them spare.
fn chosen(fields: Vec<Field>, axes: usize, columns: Columns) -> Vec<Field> {
    let exact: [Field; 4] = [
        (Column::figure("min"), |cell| cell.min_ns.map_or_else(dash, |ns| tenths(ns as f64))),
        (Column::figure("mean"), |cell| mean_as(cell.mean(), tenths)),
        (Column::figure("sd"), |cell| cell.stddev_ns.map_or_else(dash, tenths)),
        (Column::figure("max"), |cell| max_as(cell, tenths)),
    ];
    let mut chosen = Vec::new();
    for (index, field) in fields.into_iter().enumerate() {
        let head = field.0.head.clone();
        if index < axes {
            chosen.push(field);
        } else if columns.has(&head) {
            let exact = exact.iter().find(|(column, _)| column.head == head).cloned();
            let (column, show) = exact.unwrap_or(field);
            chosen.push((column.never_spare(), show));
        }
        // The table of wake-ups without a choice has no standard deviation; its place is after the mean.
        if head == "mean" && columns.has("sd") {
            chosen.extend(exact.iter().find(|(column, _)| column.head == "sd").cloned());
        }
    }
    let mut has_deviation = false;
    chosen.retain(|(column, _)| column.head != "sd" || !std::mem::replace(&mut has_deviation, true));
    chosen
}

/// A latency in microseconds with one decimal, whatever its size.
fn tenths(ns: f64) -> String {
    let us = (ns.abs() / 100.0).round() / 10.0;
    let sign = if ns < 0.0 && us > 0.0 { "-" } else { "" };
    let (whole, tenth) = (us.trunc(), ((us - us.trunc()) * 10.0).round());
    format!("{sign}{}.{tenth}", grouped(whole))
}

/// Column of an interval, which belongs to the figure on its left.
fn interval_of(order: u8) -> Column {
    Column::text(INTERVAL).after(1).spare(order)
}

fn figures(levels: &[Level]) -> Vec<Field> {
    let mut figures: Vec<Field> = vec![
        (Column::figure("wake-ups"), |cell| cell.known_samples().map_or_else(dash, count)),
        (Column::figure(EFFECTIVE).spare(0), |cell| cell.n_eff.map_or_else(dash, count)),
        (Column::figure("missed"), missed),
        (Column::figure("min").spare(2), |cell| latency_or_dash(cell.min_ns)),
        (Column::figure("mean").spare(0), |cell| mean_as(cell.mean(), latency)),
        (Column::figure("p50").spare(5), |cell| value(cell, Level::P50)),
        (Column::figure("p99"), |cell| value(cell, Level::P99)),
        (interval_of(1), |cell| interval(cell, Level::P99)),
        (Column::figure("p99.9"), |cell| value(cell, Level::P999)),
        (interval_of(3), |cell| interval(cell, Level::P999)),
    ];
    let higher: [(Level, Field); 3] = [
        (Level::P9999, (Column::figure("p99.99").spare(6), |cell| value(cell, Level::P9999))),
        (Level::P99999, (Column::figure("p99.999").spare(6), |cell| value(cell, Level::P99999))),
        (Level::P999999, (Column::figure("p99.9999").spare(6), |cell| value(cell, Level::P999999))),
    ];
    figures.extend(higher.into_iter().filter(|(level, _)| levels.contains(level)).map(|(_, field)| field));
    let last: [Field; 2] = [(Column::figure("max"), max), (Column::figure("when").spare(4), when)];
    figures.extend(last);
    figures
}

/// Quantile levels of a table: the usual ones, and higher ones that some cell knows.
pub(crate) fn shown_levels<'a>(cells: impl Iterator<Item = &'a Quantiles> + Clone) -> Vec<Level> {
    let is_known = |level: Level| cells.clone().any(|quantiles| quantiles.at(level).value_ns().is_some());
    Level::ALL.into_iter().filter(|level| Level::USUAL.contains(level) || is_known(*level)).collect()
}

/// The figures of sleeps, which have no due times to miss.
fn sleep_figures() -> Vec<Field> {
    vec![
        (Column::figure("sleeps"), |cell| count(cell.samples)),
        (Column::figure("min").spare(3), |cell| latency_or_dash(cell.min_ns)),
        (Column::figure("mean"), |cell| mean_as(cell.mean(), latency)),
        (Column::figure("sd"), |cell| cell.stddev_ns.map_or_else(dash, latency)),
        (Column::figure("p50").spare(4), |cell| value(cell, Level::P50)),
        (Column::figure("p99").spare(2), |cell| value(cell, Level::P99)),
        (interval_of(0), |cell| interval(cell, Level::P99)),
        (Column::figure("max"), max),
        (Column::figure("when").spare(1), when),
    ]
}

/// Writes the table with as many columns as fit, or the chosen ones; the effective sample size only with `all`.
pub(crate) fn write(
    out: &mut dyn io::Write,
    summary: &RunSummary,
    lines: &Lines,
    all: bool,
    columns: Option<Columns>,
) -> io::Result<()> {
    let (mut fields, axes, cells) = asked(summary);
    match columns {
        Some(columns) => fields = chosen(fields, axes, columns),
        None => fields.retain(|(column, _)| all || column.head != EFFECTIVE),
    }
    let table = Table::of(&fields, cells.iter().copied()).tightening().fitted(lines.width);
    let has = |head: &str| table.heads().any(|shown| shown == head);
    let is_about = table.rows.iter().flatten().any(|field| field.starts_with(ABOUT));
    let legend = [
        (true, crate::unit(summary)),
        (has(RATE), "load/s: rate of the load"),
        (has(INTERVAL), "[95 %]: confidence interval"),
        (has(EFFECTIVE), "n_eff: effective sample size"),
        (has("sd") && !are_sleeps(&cells), "sd: standard deviation"),
        (is_about, "~: few samples"),
        (has("when"), "when: min:s of the run"),
    ];
    let legend: Vec<_> = legend.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, text)| text).collect();
    if are_sleeps(&cells) {
        lines.paragraph(out, "", "Sleep error: actual minus requested sleep; sd: standard deviation.")?;
    }
    table.write(out, lines)?;
    lines.paragraph(out, " ", &legend.join("; "))
}

/// All columns for these cells, the number of those that identify a cell, and the cells in the order of the table.
fn asked(summary: &RunSummary) -> (Vec<Field>, usize, Vec<&CellSummary>) {
    let mut cells: Vec<_> = summary.cells.iter().filter(|cell| cell.cell.task.has_latencies()).collect();
    let are_sleeps = are_sleeps(&cells);
    if are_sleeps {
        // Groups the sleeps of one language, in the requested order.
        cells.sort_by_key(|cell| {
            (cell.cell.task.clone(), cell.cell.kernel.clone(), cell.cell.policy, cell.cell.load.clone())
        });
    }
    let mut fields = if are_sleeps { sleep_axes(&cells) } else { axes(&cells) };
    let axes = fields.len();
    fields.extend(if are_sleeps { sleep_figures() } else { figures(&levels_of(&cells)) });
    if !cells.is_empty() && cells.iter().all(|cell| cell.watch.is_some()) {
        for (column, _) in &mut fields {
            column.head = match &*column.head {
                "wake-ups" => "activations".into(),
                "missed" => "skipped".into(),
                _ => column.head.clone(),
            };
        }
    }
    (fields, axes, cells)
}

fn levels_of(cells: &[&CellSummary]) -> Vec<Level> {
    shown_levels(cells.iter().map(|cell| &cell.quantiles))
}

fn are_sleeps(cells: &[&CellSummary]) -> bool {
    !cells.is_empty() && cells.iter().all(|cell| matches!(cell.cell.task, Task::Sleep(_)))
}

/// All columns of all cells: the table without a limit of its width.
pub(crate) fn table(summary: &RunSummary) -> Table {
    let (fields, _, cells) = asked(summary);
    Table::of(&fields, cells)
}

/// The columns that identify a cell of sleeps.
fn sleep_axes(cells: &[&CellSummary]) -> Vec<Field> {
    let runtime = |cell: &CellSummary| match &cell.cell.task {
        Task::Sleep(runtime) => runtime.to_string(),
        other => other.to_string(),
    };
    let mut columns: Vec<Field> =
        vec![(Column::text("runtime"), runtime), (Column::text("policy"), |cell| cell.cell.policy.to_string())];
    let load: Field = (Column::text("load"), |cell| cell.cell.load.label());
    let kernel: Field = (Column::text("kernel"), |cell| cell.cell.kernel.to_string());
    columns.extend([load, kernel, prepare()].into_iter().filter(|axis| varies(cells, axis.1)));
    columns.push((Column::figure("asked"), |cell| cell.cell.period.to_string()));
    columns
}

/// The axis of settings of the machine.
fn prepare() -> Field {
    (Column::text("prepare"), |cell| cell.cell.conditions.prepare.to_string())
}

/// The columns that identify a cell: an axis with a single value appears above the table.
fn axes(cells: &[&CellSummary]) -> Vec<Field> {
    let kernel: Field = (Column::text("kernel"), |cell| cell.cell.kernel.to_string());
    let rate: Field = (Column::figure(RATE), intensity::rates);
    let period: Field = (Column::text("period"), |cell| duration(cell.cell.period.ns() as f64));
    let method: Field = (Column::text("method"), |cell| cell.cell.task.label());
    let mut columns: Vec<Field> = vec![
        (Column::text("load"), |cell| cell.cell.load.label()),
        (Column::text("policy"), |cell| cell.cell.policy.to_string()),
    ];
    columns.extend([period, method, prepare()].into_iter().filter(|axis| varies(cells, axis.1)));
    if varies(cells, kernel.1) {
        // Latencies of kernels are comparable only with the same work of the load.
        if cells.iter().any(|cell| !cell.loads.is_empty()) {
            columns.insert(1, rate);
        }
        columns.insert(0, kernel);
    }
    let again: Field = (Column::text("A/A"), |cell| if cell.again { "again".to_owned() } else { String::new() });
    columns.extend(varies(cells, again.1).then_some(again));
    columns
}

fn varies(cells: &[&CellSummary], show: fn(&CellSummary) -> String) -> bool {
    cells.windows(2).any(|pair| show(pair[0]) != show(pair[1]))
}

/// A latency in the form of the table: microseconds, and from 100 000 us milliseconds or seconds with their unit.
pub(crate) fn latency(ns: f64) -> String {
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

pub(crate) fn latency_or_dash(ns: Option<i64>) -> String {
    ns.map_or_else(dash, |ns| latency(ns as f64))
}

/// Relative waits have no due times to miss.
fn missed(cell: &CellSummary) -> String {
    if cell.cell.task.is_relative() { dash() } else { cell.missed.map_or_else(dash, count) }
}

fn value(cell: &CellSummary, level: Level) -> String {
    quantile(cell.quantiles.at(level))
}

/// Mark of an uncertain quantile.
const ABOUT: char = '~';

/// A quantile; a refused one as an estimate or bound with a mark.
pub(crate) fn quantile(quantile: &Quantile) -> String {
    let latency = |ns: i64| latency(ns as f64);
    match quantile.told() {
        Told::Known(ns) => latency(ns),
        Told::About(ns) => format!("{ABOUT}{}", latency(ns)),
        Told::AtLeast(ns) => format!(">={}", latency(ns)),
        Told::Nothing => dash(),
    }
}

fn interval(cell: &CellSummary, level: Level) -> String {
    let interval = cell.quantiles.at(level).interval_ns();
    interval.map_or_else(String::new, |(lower, upper)| format!("[{}-{}]", latency(lower as f64), latency(upper as f64)))
}

/// The largest latency; for a wait that never ended, its lower bound.
fn max(cell: &CellSummary) -> String {
    max_as(cell, latency)
}

/// A mean, and whether it is a lower bound.
pub(super) fn mean_as(mean: Option<(f64, bool)>, latency: fn(f64) -> String) -> String {
    mean.map_or_else(dash, |(mean_ns, at_least)| format!("{}{}", more_than(at_least), latency(mean_ns)))
}

/// The mark of a lower bound.
pub(super) fn more_than(at_least: bool) -> &'static str {
    if at_least { ">" } else { "" }
}

fn max_as(cell: &CellSummary, latency: fn(f64) -> String) -> String {
    cell.max.map_or_else(dash, |max| format!("{}{}", more_than(max.at_least), latency(max.latency_ns as f64)))
}

/// Minutes and seconds since the start of the run.
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
    fn chosen_columns_have_all_digits() {
        for (ns, text) in [
            (0.0, "0.0"),
            (-40.0, "0.0"),
            (-250.0, "-0.3"),
            (49.0, "0.0"),
            (951.0, "1.0"),
            (28_101_026.0, "28 101.0"),
            (100_000_060.0, "100 000.1"),
        ] {
            assert_eq!(tenths(ns), text, "{ns}");
        }
        let error = "unknown column `avg` (known: wake-ups, n_eff, missed, min, mean, sd, p50, p99, p99.9, max, when)";
        assert_eq!("min,avg".parse::<Columns>(), Err(error.to_owned()));
        assert!("".parse::<Columns>().is_err());
        let columns: Columns = "max, sd".parse().unwrap();
        assert_eq!(
            ["max", "sd", "mean", "sleeps", "[95 %]"].map(|head| columns.has(head)),
            [true, true, false, false, false]
        );
    }

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
