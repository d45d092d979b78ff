//! The table of latencies: one row for each cell, as many columns as fit the terminal.

use super::intensity;
use crate::lines::Lines;
pub(crate) use crate::table::dash;
use crate::table::{Column, Table};
use crate::{OwnRun, Style};
use punctual_analysis::wording::{count, duration};
use punctual_analysis::{Level, Quantile, Quantiles, Row, Told};
use punctual_model::{ImportedLoad, Order, Runtime, Task};
use std::io;
use std::str::FromStr;

type Field<'a> = crate::table::Field<Row<'a>>;

/// A condition or a figure of a cell: its name, and its text.
type Condition = (&'static str, fn(&Row<'_>) -> String);

/// Conditions that a plan varies, in the order of columns; empty if unknown.
pub(crate) const CONDITIONS: [Condition; 6] = [
    (KERNEL, |row| row.own().map(|cell| cell.cell.kernel.to_string()).unwrap_or_default()),
    ("load", |row| row.load.as_ref().map(ImportedLoad::label).unwrap_or_default()),
    ("policy", |row| row.policy.clone().unwrap_or_default()),
    ("period", |row| row.period.map(|period| duration(period.ns() as f64)).unwrap_or_default()),
    ("method", |row| row.method.clone().unwrap_or_default()),
    ("prepare", |row| row.own().map(|cell| cell.cell.conditions.prepare.to_string()).unwrap_or_default()),
];

/// The head of the column of kernels.
pub(crate) const KERNEL: &str = "kernel";

/// Head of an interval's column.
const INTERVAL: &str = "[95 %]";

/// The head of the column of the load's operations a second.
const RATE: &str = "load/s";

/// The head of the column of effective sample sizes.
const EFFECTIVE: &str = "n_eff";

/// The head of the column of standard deviations.
const DEVIATION: &str = "sd";

/// Columns of figures that a user can choose.
const CHOICE: [&str; 11] =
    ["wake-ups", EFFECTIVE, "missed", "min", "mean", DEVIATION, "p50", "p99", "p99.9", "max", "when"];

/// A choice of the columns of figures in the text table, in the order of the table. Chosen columns stay in narrow
/// terminals; latencies have tenths of a microsecond instead of two or three digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns(u16);

impl Columns {
    /// Names of all columns.
    pub const KNOWN: &[&str] = &CHOICE;

    fn has(self, head: &str) -> bool {
        // Sleeps and activations are the samples of their tables.
        let head = match head {
            "sleeps" | "activations" | "gaps" => "wake-ups",
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
            // A percentile may also be typed as in JSON: `p999`.
            let name = name.parse::<Level>().map_or_else(|_| name.to_owned(), |level| level.to_string());
            let index = CHOICE.iter().position(|known| *known == name);
            let index = index.ok_or_else(|| format!("unknown column `{name}` (known: {})", CHOICE.join(", ")))?;
            columns.0 |= 1 << index;
        }
        Ok(columns)
    }
}

/// The chosen ones among all columns of a table, none of them spare.
fn chosen<'a>(fields: Vec<Field<'a>>, axes: usize, columns: Columns) -> Vec<Field<'a>> {
    let exact: [Condition; 4] = [
        ("min", |row| row.min_ns.map_or_else(dash, |ns| tenths(ns as f64))),
        ("mean", |row| bound(row.mean(), tenths)),
        (DEVIATION, |row| row.stddev_ns.map_or_else(dash, tenths)),
        ("max", |row| bound(largest(row), tenths)),
    ];
    let is_chosen = |(index, (column, _)): &(usize, Field<'a>)| *index < axes || columns.has(&column.head);
    let in_full = |(_, (column, show)): (usize, Field<'a>)| {
        let exact = exact.iter().find(|(head, _)| column.head == *head);
        (column.never_spare(), exact.map_or(show, |(_, exact)| *exact))
    };
    fields.into_iter().enumerate().filter(is_chosen).map(in_full).collect()
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

/// Columns of the figures of cells, with the quantiles of these levels.
pub(super) fn figures<'a>(levels: &[Level]) -> Vec<Field<'a>> {
    let mut figures: Vec<Field<'a>> = vec![
        (Column::figure("wake-ups"), samples),
        (Column::figure(EFFECTIVE).spare(0), |row| row.n_eff.map_or_else(dash, count)),
        (Column::figure("missed"), |row| row.missed.map_or_else(dash, count)),
        (Column::figure("min").spare(2), |row| latency_or_dash(row.min_ns)),
        (Column::figure("mean").spare(0), |row| bound(row.mean(), latency)),
        (Column::figure(DEVIATION), |row| row.stddev_ns.map_or_else(dash, latency)),
        (Column::figure("p50").spare(5), |row| value(row, Level::P50)),
        (Column::figure("p99"), |row| value(row, Level::P99)),
        (interval_of(1), |row| interval(row, Level::P99)),
        (Column::figure("p99.9"), |row| value(row, Level::P999)),
        (interval_of(3), |row| interval(row, Level::P999)),
    ];
    let higher: [(Level, Field<'a>); 3] = [
        (Level::P9999, (Column::figure("p99.99").spare(6), |row| value(row, Level::P9999))),
        (Level::P99999, (Column::figure("p99.999").spare(6), |row| value(row, Level::P99999))),
        (Level::P999999, (Column::figure("p99.9999").spare(6), |row| value(row, Level::P999999))),
    ];
    figures.extend(higher.into_iter().filter(|(level, _)| levels.contains(level)).map(|(_, field)| field));
    let last: [Field<'a>; 2] =
        [(Column::figure("max"), |row| bound(largest(row), latency)), (Column::figure("when").spare(4), when)];
    figures.extend(last);
    figures
}

/// Quantile levels of a table: the usual ones, and higher ones that some cell knows.
pub(crate) fn shown_levels<'a>(cells: impl Iterator<Item = &'a Quantiles> + Clone) -> Vec<Level> {
    let is_known = |level: Level| cells.clone().any(|quantiles| quantiles.at(level).value_ns().is_some());
    Level::ALL.into_iter().filter(|level| Level::USUAL.contains(level) || is_known(*level)).collect()
}

/// The figures of sleeps, which have no due times to miss.
fn sleep_figures<'a>() -> Vec<Field<'a>> {
    vec![
        (Column::figure("sleeps"), samples),
        (Column::figure("min").spare(3), |row| latency_or_dash(row.min_ns)),
        (Column::figure("mean"), |row| bound(row.mean(), latency)),
        (Column::figure(DEVIATION), |row| row.stddev_ns.map_or_else(dash, latency)),
        (Column::figure("p50").spare(4), |row| value(row, Level::P50)),
        (Column::figure("p99").spare(2), |row| value(row, Level::P99)),
        (interval_of(0), |row| interval(row, Level::P99)),
        (Column::figure("max"), |row| bound(largest(row), latency)),
        (Column::figure("when").spare(1), when),
    ]
}

/// Writes the table with as many columns as fit, or the chosen ones; the effective sample size only with all findings.
pub(crate) fn write(out: &mut dyn io::Write, run: &OwnRun<'_>, lines: &Lines, style: Style) -> io::Result<()> {
    let rows = Row::of_run(run.header, &run.summary.cells, &run.summary.cell_findings);
    let (mut fields, rows) = asked(&rows, style.columns);
    fields.retain(|(column, _)| style.columns.is_some() || style.all_findings || column.head != EFFECTIVE);
    let table = Table::of(&fields, rows.iter().copied()).tightening().fitted(lines.width);
    let has = |head: &str| table.heads().any(|shown| shown == head);
    let is_about = table.rows.iter().flatten().any(|field| field.starts_with(ABOUT));
    let legend = [
        (true, crate::unit(run.summary)),
        (has(RATE), "load/s: rate of the load"),
        (has(INTERVAL), "[95 %]: confidence interval"),
        (has(EFFECTIVE), "n_eff: effective sample size"),
        (has(DEVIATION) && !are_sleeps(&rows), "sd: standard deviation"),
        (is_about, "~: few samples"),
        (has("when"), "when: min:s of the run"),
    ];
    let legend: Vec<_> = legend.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, text)| text).collect();
    if are_sleeps(&rows) {
        lines.paragraph(out, "", "Sleep error: actual minus requested sleep; sd: standard deviation.")?;
    }
    table.write(out, lines)?;
    lines.paragraph(out, " ", &legend.join("; "))
}

/// All columns for these cells, or the chosen ones, and the cells in the order of the table.
fn asked<'a, 'b>(rows: &'b [Row<'a>], columns: Option<Columns>) -> (Vec<Field<'a>>, Vec<&'b Row<'a>>) {
    let mut rows: Vec<_> = rows.iter().filter(|row| row.has_latencies()).collect();
    let are_sleeps = are_sleeps(&rows);
    if are_sleeps {
        // Groups the sleeps of one language, in the requested order.
        rows.order_by_key(|row| {
            row.own().map(|cell| &cell.cell).map(|cell| (&cell.task, &cell.kernel, cell.policy, &cell.load))
        });
    }
    let mut fields = if are_sleeps { sleep_axes(&rows) } else { axes(&rows) };
    let axes = fields.len();
    let levels = shown_levels(rows.iter().map(|row| row.quantiles));
    fields.extend(if are_sleeps { sleep_figures() } else { figures(&levels) });
    if !rows.is_empty() && rows.iter().all(|row| row.own().is_some_and(|cell| cell.watch.is_some())) {
        for (column, _) in &mut fields {
            column.head = match &*column.head {
                "wake-ups" => "activations".into(),
                "missed" => "skipped".into(),
                _ => column.head.clone(),
            };
        }
    }
    if !rows.is_empty() && rows.iter().all(|row| row.own().is_some_and(|cell| cell.cell.task.is_noise())) {
        fields.retain(|(column, _)| column.head != "missed");
        fields.iter_mut().filter(|(column, _)| column.head == "wake-ups").for_each(|(column, _)| {
            column.head = "gaps".into();
        });
    }
    match columns {
        Some(columns) => fields = chosen(fields, axes, columns),
        // Without a choice, only the table of sleeps has a standard deviation.
        None => fields.retain(|(column, _)| are_sleeps || column.head != DEVIATION),
    }
    (fields, rows)
}

/// The language of a cell of sleeps.
fn runtime(row: &Row<'_>) -> Option<Runtime> {
    if let Task::Sleep(runtime) = row.own()?.cell.task { Some(runtime) } else { None }
}

fn are_sleeps(rows: &[&Row<'_>]) -> bool {
    !rows.is_empty() && rows.iter().all(|row| runtime(row).is_some())
}

/// All columns of all cells: the table without a limit of its width.
pub(crate) fn table(rows: &[Row<'_>]) -> Table {
    let (fields, rows) = asked(rows, None);
    Table::of(&fields, rows)
}

/// The columns that identify a cell of sleeps.
fn sleep_axes<'a>(rows: &[&Row<'a>]) -> Vec<Field<'a>> {
    let mut columns: Vec<Field<'a>> =
        vec![(Column::text("runtime"), |row| runtime(row).map_or_else(dash, |runtime| runtime.to_string()))];
    for wanted in ["policy", "load", KERNEL, "prepare"] {
        let is_shown = |(head, show): &Condition| *head == wanted && (wanted == "policy" || varies(rows, *show));
        columns.extend(
            CONDITIONS.into_iter().find(is_shown).map(|(head, show)| -> Field<'a> { (Column::text(head), show) }),
        );
    }
    columns.push((Column::figure("asked"), |row| row.period.map_or_else(dash, |period| period.to_string())));
    columns
}

/// The columns that identify a cell: an axis with a single value appears above the table.
fn axes<'a>(rows: &[&Row<'a>]) -> Vec<Field<'a>> {
    let is_shown = |(head, show): &Condition| ["load", "policy"].contains(head) || varies(rows, *show);
    let shown = CONDITIONS.into_iter().filter(is_shown);
    let mut columns: Vec<Field<'a>> = shown.map(|(head, show)| -> Field<'a> { (Column::text(head), show) }).collect();
    // Latencies of kernels are comparable only with the same work of the load.
    let has_load = rows.iter().any(|row| row.own().is_some_and(|cell| !cell.loads.is_empty()));
    if has_load && columns.first().is_some_and(|(column, _)| column.head == KERNEL) {
        columns.insert(2, (Column::figure(RATE), |row| row.own().map_or_else(dash, intensity::rates)));
    }
    let again =
        |row: &Row<'_>| if row.own().is_some_and(|cell| cell.again) { "again".to_owned() } else { String::new() };
    columns.extend(varies(rows, again).then_some::<Field<'a>>((Column::text("A/A"), again)));
    columns
}

fn varies(rows: &[&Row<'_>], show: fn(&Row<'_>) -> String) -> bool {
    rows.windows(2).any(|pair| show(pair[0]) != show(pair[1]))
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

fn samples(row: &Row<'_>) -> String {
    row.samples.map_or_else(dash, count)
}

fn value(row: &Row<'_>, level: Level) -> String {
    quantile(row.quantiles.at(level))
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

fn interval(row: &Row<'_>, level: Level) -> String {
    let interval = row.quantiles.at(level).interval_ns();
    interval.map_or_else(String::new, |(lower, upper)| format!("[{}-{}]", latency(lower as f64), latency(upper as f64)))
}

/// The largest latency of a cell, ns, and whether it is a lower bound.
pub(crate) fn largest(row: &Row<'_>) -> Option<(f64, bool)> {
    Some((row.max_ns? as f64, row.max().is_some_and(|max| max.at_least)))
}

/// A latency, marked if it is a lower bound.
pub(super) fn bound(ns: Option<(f64, bool)>, latency: fn(f64) -> String) -> String {
    ns.map_or_else(dash, |(ns, at_least)| format!("{}{}", if at_least { ">" } else { "" }, latency(ns)))
}

/// Minutes and seconds since the start of the run.
fn when(row: &Row<'_>) -> String {
    row.max().and_then(|max| max.run_ms).map_or_else(dash, |ms| {
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
        assert_eq!("p999".parse::<Columns>(), "p99.9".parse());
        assert!("p9999".parse::<Columns>().is_err_and(|err| err.contains("unknown column `p99.99`")));
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
