//! Published sleep errors in the layout of their study, a row for each policy and length, next to our means.

use super::super::markup::{Markup, Text};
use super::super::table::framed;
use super::{OwnRun, Topic, is_of, kernel};
use crate::published::Row;
use analysis::CellSummary;
use analysis::wording::{count, duration};
use model::{Kernel, LabClock, Policy, Runtime};

/// Language of the only published study of sleeps.
const RUNTIME: Runtime = Runtime::Python3;
/// Published kernel of the rows that were measured in a guest.
const GUEST: &str = "qemu";
const NOT_MEASURED: &str = "not measured here";

/// Machine on which a program slept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Host,
    /// A guest in machine time.
    Guest,
}

/// Source of the values of a column.
#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    /// Rows of this published kernel.
    Published(&'a str),
    /// Our cells on this kernel.
    Here(&'a Kernel),
    /// No cell: nothing was measured at this place.
    Nothing,
}

/// Writes the table: published columns and ours, of the host and of guests.
pub(super) fn write(page: &mut Markup, rows: &[Row], run: &OwnRun<'_>) {
    let is_ours = |cell: &&CellSummary| cell.blocks > 0 && rows.iter().any(|row| is_match(cell, row));
    let cells: Vec<&CellSummary> = run.summary.cells.iter().filter(is_ours).collect();
    let [host, guest] = [Place::Host, Place::Guest].map(|place| columns(place, rows, &cells));
    framed(page, "scroll", "Published sleep errors", |page| {
        page.add(format_args!(
            "<table class=sleeps><thead><tr><td><th scope=colgroup colspan={}>on the host\
             <th scope=colgroup colspan={}>in a QEMU guest\n<tr><th scope=col>asked",
            host.len(),
            guest.len()
        ));
        let columns = [host, guest].concat();
        columns.iter().for_each(|source| head(page, *source, &cells, run));
        page.raw("</thead>\n");
        for policy in distinct(rows, "policy") {
            let rows: Vec<&Row> = rows.iter().filter(|row| row.text("policy") == policy).collect();
            group(page, policy, &rows, &columns, &cells);
        }
        page.raw("</table>");
    });
    page.raw("<p class=quiet>Mean errors; in brackets our number of sleeps; published means are of three.</p>\n");
}

/// Writes the rows of one policy.
fn group(page: &mut Markup, policy: &str, rows: &[&Row], columns: &[Source<'_>], cells: &[&CellSummary]) {
    let load = rows.first().map_or("", |row| row.text("load"));
    let here = cells.first().map(|cell| format!(" (here: {})", cell.cell.load.label())).unwrap_or_default();
    page.add(format_args!(
        "<tbody><tr><th class=topic colspan={} scope=rowgroup>{}\n",
        columns.len() + 1,
        Text(format!("{policy}, load {load}{here}"))
    ));
    for asked in distinct(rows.iter().copied(), "period_us") {
        page.add(format_args!("<tr><th scope=row>{}", Text(us(asked))));
        let of_length = || rows.iter().filter(|row| row.text("period_us") == asked);
        for source in columns {
            let value = match source {
                Source::Published(kernel) => {
                    of_length().find(|row| row.text("kernel") == *kernel).map(|row| us(row.text("mean_us")))
                }
                Source::Here(kernel) => {
                    let is_asked = |cell: &&&CellSummary| {
                        cell.cell.kernel == **kernel && of_length().any(|row| is_match(cell, row))
                    };
                    cells.iter().find(is_asked).and_then(|cell| our_mean(cell))
                }
                Source::Nothing => None,
            };
            let class = if matches!(source, Source::Published(_)) { "" } else { " class=ours" };
            page.add(format_args!("<td{class}>{}", Text(value.as_deref().unwrap_or(NOT_MEASURED))));
        }
        page.raw("\n");
    }
    page.raw("</tbody>\n");
}

/// Writes the head of a column.
fn head(page: &mut Markup, source: Source<'_>, cells: &[&CellSummary], run: &OwnRun<'_>) {
    let name = match source {
        Source::Published(kernel) => format!("published: {kernel}"),
        Source::Here(here) => cells
            .iter()
            .find(|cell| cell.cell.kernel == *here)
            .map_or_else(String::new, |cell| format!("here: {}", kernel(cell, run))),
        Source::Nothing => "here".to_owned(),
    };
    page.add(format_args!("<th scope=col>{}", Text(name)));
}

/// Columns of a place: published kernels, then ours; [`Source::Nothing`] if nothing was measured there.
fn columns<'a>(place: Place, rows: &'a [Row], cells: &[&'a CellSummary]) -> Vec<Source<'a>> {
    let is_here = |kernel: &&str| (*kernel == GUEST) == (place == Place::Guest);
    let published = distinct(rows, "kernel").into_iter().filter(is_here).map(Source::Published);
    let mut ours: Vec<&Kernel> = Vec::new();
    for kernel in cells.iter().map(|cell| &cell.cell.kernel).filter(|kernel| place_of(kernel) == Some(place)) {
        if !ours.contains(&kernel) {
            ours.push(kernel);
        }
    }
    let nothing = ours.is_empty().then_some(Source::Nothing);
    published.chain(ours.into_iter().map(Source::Here)).chain(nothing).collect()
}

/// Place of the cells on a kernel; `None` in virtual time, which no published time compares with.
fn place_of(kernel: &Kernel) -> Option<Place> {
    match kernel.clock() {
        None => Some(Place::Host),
        Some(LabClock::Emulated | LabClock::Kvm) => Some(Place::Guest),
        Some(LabClock::Virtual) => None,
    }
}

/// Whether a cell is the equivalent of a published row, on whatever kernel.
fn is_match(cell: &CellSummary, row: &Row) -> bool {
    let policy = row.get("our_policy").and_then(|policy| policy.parse::<Policy>().ok());
    cell.cell.task.runtime() == Some(RUNTIME) && policy == Some(cell.cell.policy) && is_of(cell, &Topic::of(row))
}

fn our_mean(cell: &CellSummary) -> Option<String> {
    cell.mean_ns.map(|ns| format!("{} ({})", duration(ns), count(cell.samples)))
}

/// A published number of microseconds with its unit.
fn us(number: &str) -> String {
    number.parse::<f64>().map_or_else(|_| number.to_owned(), |us| duration(us * 1e3))
}

/// Values of a column, each once, in the order of the rows.
fn distinct<'a>(rows: impl IntoIterator<Item = &'a Row>, column: &str) -> Vec<&'a str> {
    let mut values: Vec<&str> = Vec::new();
    for value in rows.into_iter().map(|row| row.text(column)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}
