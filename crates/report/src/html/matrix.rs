//! The table of cells: one row each, colored by latency, sorted by the script.

use super::columns::{self, Column};
use super::markup::{Markup, Name, Text};
use super::scale::Log;
use super::table::framed;
use crate::cells::Member;
use crate::sections::intensity;
use crate::sections::latencies::{dash, largest, shown_levels};
use crate::words::Counted;
use punctual_analysis::wording::{count, duration};
use punctual_analysis::{Level, Quantile, Refusal, Row, Told};
use punctual_model::Span;

/// Rows of one table. A browser lays out a table as a whole, which takes seconds with thousands of rows: so there are
/// several tables, and those out of sight are laid out later.
const ROWS: usize = 100;

/// Steps of the color scale.
const HEATS: f64 = 8.0;

/// A scale of colors by latency, the same for the whole page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heat(Log);

impl Heat {
    /// Returns the scale from the smallest to the largest of these latencies, ns; `None` without a positive one.
    pub(super) fn over(latencies_ns: impl Iterator<Item = i64> + Clone) -> Option<Heat> {
        let positive = latencies_ns.filter(|ns| *ns > 0);
        Some(Heat(Log::around(positive.clone().min()? as f64, positive.max()? as f64)))
    }

    /// The step of a latency, 0 to 7.
    pub(super) fn of(self, latency_ns: i64) -> i64 {
        super::path::whole((self.0.share(latency_ns as f64) * HEATS).floor().min(HEATS - 1.0))
    }
}

/// Returns the scale of all quantiles and maxima.
pub(super) fn heat(members: &[Member<'_>]) -> Option<Heat> {
    Heat::over(members.iter().flat_map(|member| {
        let quantiles = Level::USUAL.map(|level| quantile(member.row.quantiles.at(level)).1);
        quantiles.into_iter().chain([member.row.max_ns]).flatten()
    }))
}

/// Writes the table. Costs of operations have one of their own: a run of nothing else has none here.
pub(super) fn write(page: &mut Markup, members: &[Member<'_>], axes: &[Column], heat: Option<Heat>, is_empty: bool) {
    if members.is_empty() && !is_empty {
        return;
    }
    page.section("cells", "", "Cells", None);
    if members.is_empty() {
        page.raw("<p>This run has no cells.</p></section>\n");
        return;
    }
    let levels = shown_levels(members.iter().map(|member| member.row.quantiles));
    let counted = Counted::of(members);
    let figures: Vec<String> = ["max".to_owned()]
        .into_iter()
        .chain(levels.iter().rev().map(Level::to_string))
        .chain([counted.missed(), counted.name(), "min", "mean"].map(str::to_owned))
        .collect();
    let has_rates = columns::has_kernel_rates(members, axes);
    let are_many = members.len() > ROWS;
    let (class, table) = if are_many { ("scroll later", "\"matrix pieces\"") } else { ("scroll", "matrix") };
    for (index, rows) in members.chunks(ROWS).enumerate() {
        let first = index * ROWS;
        let from = if are_many { format!(", rows from {}", first + 1) } else { String::new() };
        framed(page, class, &format!("Table of cells{from}"), |page| {
            page.add(format_args!("<table class={table}><thead><tr>"));
            axes.iter().for_each(|axis| page.add(format_args!("<th scope=col>{}", Text(axis.head))));
            if has_rates {
                page.raw("<th scope=col class=n title=\"operations of the load a second\">load/s");
            }
            figures.iter().for_each(|head| page.add(format_args!("<th scope=col class=n>{}", Text(head))));
            page.raw("</thead><tbody>\n");
            for (index, member) in (first..).zip(rows) {
                row_head(page, member, axes, index);
                if has_rates {
                    page.add(format_args!("<td>{}", Text(member.row.own().map_or_else(dash, intensity::rates))));
                }
                row(page, member, &levels, heat);
            }
            page.raw("</tbody></table>");
        });
    }
    caption(page, members);
    page.raw("</section>\n");
}

fn caption(page: &mut Markup, members: &[Member<'_>]) {
    page.raw(
        "<p class=quiet>Below a quantile: its 95 % interval. Darker color: longer latency, on one logarithmic scale for maxima \
         and quantiles. ~ is an estimate and \u{2265} a lower limit, where fewer than 10 independent samples lie above the \
         quantile or a lower one; below it, the time still to be measured.",
    );
    if members.iter().filter(|member| member.is_measured()).any(|member| member.curves.is_none()) {
        page.add(format_args!(
            " Pictures are drawn of {} cells: those with the largest p99.9 and the largest maxima.",
            crate::cells::PICTURED
        ));
    }
    if members.iter().any(|member| member.row.is_virtual()) {
        page.add(format_args!(
            " <b>Virtual time</b>{}: an instruction counts as a nanosecond, so \"us\" are thousands of instructions.",
            if members.iter().all(|member| member.row.is_virtual()) { "" } else { " in cells of lab kernels" }
        ));
    }
    page.raw("</p>\n");
}

/// Writes the axes of a row; the first links to the details of the cell.
fn row_head(page: &mut Markup, member: &Member<'_>, axes: &[Column], index: usize) {
    page.raw("<tr>");
    for (column, axis) in axes.iter().enumerate() {
        let value = axis.values.get(index).map_or("", String::as_str);
        match &member.curves {
            Some(_) if column == 0 => page.add(format_args!(
                "<th scope=row><a href=#c{} aria-label=\"{}\">{}</a>",
                member.id,
                Text(member.name()),
                Name(value)
            )),
            _ => page.add(format_args!("<th scope=row>{}", Name(value))),
        }
    }
}

fn row(page: &mut Markup, member: &Member<'_>, levels: &[Level], heat: Option<Heat>) {
    let row = &member.row;
    match (max(row), row.max_ns) {
        (Some(text), Some(max_ns)) => {
            let class = heat.map(|heat| format!(" class=t{}", heat.of(max_ns))).unwrap_or_default();
            let on = row.max_cpu.map(|cpu| format!("{} {cpu}", member.of_number()));
            let block = row.max().map(|max| format!("block {}", max.block + 1));
            let place = Vec::from_iter(on.into_iter().chain(block)).join(", ");
            page.add(format_args!("<td{class}>{}<small>{place}</small>", Text(text)));
        }
        _ => page.raw("<td>-"),
    }
    levels.iter().rev().for_each(|level| quantile_field(page, row.quantiles.at(*level), row.measured, heat));
    let class = if row.missed > Some(0) { " class=bad" } else { "" };
    page.add(format_args!("<td{class}>{}", row.missed.map_or_else(dash, count)));
    page.add(format_args!("<td>{}", row.samples.map_or_else(dash, count)));
    page.add(format_args!("<td>{}", row.min_ns.map_or_else(dash, ns)));
    page.add(format_args!("<td>{}\n", mean(row).unwrap_or_else(dash)));
}

/// The mean latency; `None` without a sample.
pub(super) fn mean(row: &Row<'_>) -> Option<String> {
    row.mean().map(bound)
}

/// The largest latency; `None` without a sample.
pub(super) fn max(row: &Row<'_>) -> Option<String> {
    largest(row).map(bound)
}

/// A latency: `> 1.2 s` with a wait that had not ended.
fn bound((ns, at_least): (f64, bool)) -> String {
    format!("{}{}", if at_least { "> " } else { "" }, duration(ns))
}

/// Returns a quantile with its mark, and its value, ns.
pub(super) fn quantile(quantile: &Quantile) -> (String, Option<i64>) {
    match quantile.told() {
        Told::Known(value_ns) => (ns(value_ns), Some(value_ns)),
        Told::About(value_ns) => (format!("~{}", ns(value_ns)), Some(value_ns)),
        Told::AtLeast(value_ns) => (format!("\u{2265} {}", ns(value_ns)), Some(value_ns)),
        Told::Nothing => (dash(), None),
    }
}

fn quantile_field(page: &mut Markup, level: &Quantile, measured: Option<Span>, heat: Option<Heat>) {
    let (text, value_ns) = quantile(level);
    let class = value_ns.zip(heat).map(|(ns, heat)| format!(" class=t{}", heat.of(ns))).unwrap_or_default();
    page.add(format_args!("<td{class}>{text}"));
    if let Some((lower, upper)) = level.interval_ns() {
        page.add(format_args!("<small>{}</small>", between(lower, upper)));
    }
    match level {
        Quantile::Refused(Refusal::NoDistribution) => page.raw("<small>no distribution</small>"),
        Quantile::Refused(Refusal::Beyond { .. }) => page.raw("<small>beyond the histogram</small>"),
        Quantile::Refused(Refusal::LowerRefused { .. }) => page.raw("<small>few samples</small>"),
        Quantile::Refused(Refusal::FewExceedances { times_as_long, .. }) => {
            let more = measured.map(|measured| duration(measured.ns() as f64 * (times_as_long - 1.0)));
            match more {
                Some(more) => page.add(format_args!("<small>needs {more} more</small>")),
                None => page.raw("<small>few samples</small>"),
            }
        }
        Quantile::Known { .. } | Quantile::Refused(Refusal::NoSamples) => {}
    }
}

/// Returns an interval, with one unit where both ends have the same.
pub(super) fn between(lower_ns: i64, upper_ns: i64) -> String {
    let (lower, upper) = (ns(lower_ns), ns(upper_ns));
    let unit = |text: &str| text.rsplit_once(' ').map(|(_, unit)| unit.to_owned());
    match lower.rsplit_once(' ') {
        Some((number, unit_below)) if unit(&upper).as_deref() == Some(unit_below) => format!("{number}\u{2013}{upper}"),
        _ => format!("{lower}\u{2013}{upper}"),
    }
}

pub(super) fn ns(ns: i64) -> String {
    duration(ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_name_their_unit_once() {
        assert_eq!(between(41_000, 45_300), "41\u{2013}45.3 us");
        assert_eq!(between(910_000, 1_200_000), "910 us\u{2013}1.2 ms");
    }

    #[test]
    fn the_latest_is_the_darkest() {
        let heat = Heat::over([3_000, -7, 40_000_000].into_iter()).unwrap();
        assert_eq!([-7, 0, 3_000, 40_000_000, i64::MAX].map(|ns| heat.of(ns)), [0, 0, 0, 7, 7]);
        assert!(Heat::over([-7, 0].into_iter()).is_none());
    }
}
