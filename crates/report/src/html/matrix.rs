//! The matrix as a table: one row for each cell, coloured by latency, sorted by the script when asked.

use super::axes::Counted;
use super::cells::{Member, counted};
use super::markup::{Markup, Text};
use super::scale::Log;
use super::table::framed;
use crate::sections::latencies::{dash, shown_levels};
use analysis::wording::{count, duration};
use analysis::{Level, Quantile, Refusal, Row, Told};
use model::Span;

/// Rows of one table. A browser lays out a table as a whole: with thousands of rows in one it would stand still, so there
/// are several, and those out of sight are left for later.
const ROWS: usize = 100;

/// Steps of the colour scale.
const HEATS: f64 = 8.0;

/// What stands behind the quantiles. What matters most stands first: on a phone the rest is reached by scrolling.
const BEHIND: [&str; 5] = ["max", "missed", "wake-ups", "min", "mean"];

/// Colours by latency: the same scale for the whole page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heat(Log);

impl Heat {
    /// The scale from the smallest to the largest of these latencies, ns; `None` without any.
    pub(super) fn over(latencies_ns: impl Iterator<Item = i64> + Clone) -> Option<Heat> {
        let positive = latencies_ns.filter(|ns| *ns > 0);
        Some(Heat(Log::around(positive.clone().min()? as f64, positive.max()? as f64)))
    }

    /// The step of a latency, 0 to 7.
    pub(super) fn of(self, latency_ns: i64) -> i64 {
        super::path::whole((self.0.share(latency_ns as f64) * HEATS).floor().min(HEATS - 1.0))
    }
}

/// What a cell is coloured by: high quantiles and maxima.
pub(super) fn heat(members: &[Member<'_>]) -> Option<Heat> {
    Heat::over(members.iter().flat_map(|member| high(&member.row)))
}

fn high(row: &Row<'_>) -> impl Iterator<Item = i64> + Clone + use<> {
    let max = row.max_ns;
    [row.quantiles.at(Level::P999).value_ns().or(row.quantiles.at(Level::P99).value_ns()).or(max), max]
        .into_iter()
        .flatten()
}

pub(super) fn write(page: &mut Markup, members: &[Member<'_>]) {
    page.raw("<section id=cells>\n<h2>Cells</h2>\n");
    if members.is_empty() {
        page.raw("<p>There is no cell in this run.</p></section>\n");
        return;
    }
    let heat = heat(members);
    let levels = shown_levels(members.iter().map(|member| member.row.quantiles));
    for (index, rows) in members.chunks(ROWS).enumerate() {
        let class = if members.len() > ROWS { "scroll later" } else { "scroll" };
        let from = if members.len() > ROWS { format!(", rows from {}", index * ROWS + 1) } else { String::new() };
        framed(page, class, &format!("Table of cells{from}"), |page| {
            page.raw("<table class=matrix><thead><tr>");
            let counted = counted(members);
            let word = |head: &&'static str| if *head == Counted::WakeUps.name() { counted.name() } else { *head };
            page.raw("<th scope=col>cell");
            levels.iter().for_each(|level| page.add(format_args!("<th scope=col>{level}")));
            BEHIND.iter().map(word).for_each(|head| page.add(format_args!("<th scope=col>{head}")));
            page.raw("</thead><tbody>\n");
            rows.iter().for_each(|member| row(page, member, &levels, heat));
            page.raw("</tbody></table>");
        });
    }
    page.raw(
        "<p class=quiet>Below a quantile stands its 95 % interval, of the state in which the machine was measured. The stronger the orange, the later, on a logarithmic scale. \
         Where fewer than 10 independent samples lie above a quantile, or above a lower one, it is an estimate (~) or a lower \
         limit (\u{2265}); how much longer to measure stands below.",
    );
    if members.iter().filter(|member| member.is_measured()).any(|member| member.curves.is_none()) {
        page.add(format_args!(
            " Pictures are drawn of {} cells: those with the largest p99.9 and the largest maxima.",
            super::cells::PICTURED
        ));
    }
    if members.iter().any(|member| member.row.is_virtual()) {
        page.add(format_args!(
            " <b>Virtual time</b>{}: an instruction counts as a nanosecond, so \"us\" are thousands of instructions.",
            if members.iter().all(|member| member.row.is_virtual()) { "" } else { " in cells of lab kernels" }
        ));
    }
    page.raw("</p>\n</section>\n");
}

fn row(page: &mut Markup, member: &Member<'_>, levels: &[Level], heat: Option<Heat>) {
    let row = &member.row;
    match &member.curves {
        Some(_) => page.add(format_args!("<tr><th scope=row><a href=#c{}>{}</a>", member.id, Text(member.name()))),
        None => page.add(format_args!("<tr><th scope=row>{}", Text(member.name()))),
    }
    for level in levels {
        quantile(page, row.quantiles.at(*level), row.measured, heat.filter(|_| *level == Level::P999));
    }
    match row.max_ns {
        None => page.raw("<td>-"),
        Some(max_ns) => {
            let class = heat.map(|heat| format!(" class=t{}", heat.of(max_ns))).unwrap_or_default();
            let more_than = if row.max().is_some_and(|max| max.at_least) { "&gt; " } else { "" };
            page.add(format_args!("<td{class}>{more_than}{}", ns(max_ns)));
            let on = row.max_cpu.map(|cpu| format!("{} {cpu}", member.of_number()));
            let block = row.max().map(|max| format!("block {}", max.block + 1));
            page.add(format_args!("<small>{}</small>", Vec::from_iter(on.into_iter().chain(block)).join(", ")));
        }
    }
    let class = if row.missed > Some(0) { " class=bad" } else { "" };
    page.add(format_args!("<td{class}>{}", row.missed.map_or_else(dash, count)));
    page.add(format_args!("<td>{}", row.samples.map_or_else(dash, count)));
    page.add(format_args!("<td>{}", row.min_ns.map_or_else(dash, ns)));
    page.add(format_args!("<td>{}", row.mean_ns.map_or_else(dash, duration)));
    page.raw("\n");
}

fn quantile(page: &mut Markup, quantile: &Quantile, measured: Option<Span>, heat: Option<Heat>) {
    match quantile.told() {
        Told::Known(value_ns) => {
            let class = heat.map(|heat| format!(" class=t{}", heat.of(value_ns))).unwrap_or_default();
            page.add(format_args!("<td{class}>{}", ns(value_ns)));
            if let Some((lower, upper)) = quantile.interval_ns() {
                page.add(format_args!("<small>{}</small>", between(lower, upper)));
            }
        }
        Told::About(value_ns) => page.add(format_args!("<td>~{}", ns(value_ns))),
        Told::AtLeast(value_ns) => page.add(format_args!("<td>\u{2265} {}", ns(value_ns))),
        Told::Nothing => page.raw("<td>-"),
    }
    match quantile {
        Quantile::Refused(Refusal::NoDistribution) => page.raw("<small>no distribution</small>"),
        Quantile::Refused(Refusal::Beyond { .. }) => page.raw("<small>beyond the histogram</small>"),
        Quantile::Refused(Refusal::LowerRefused { .. }) => page.raw("<small>few samples</small>"),
        Quantile::Refused(Refusal::FewExceedances { times_as_long, .. }) => {
            let more = measured.map(|measured| duration(measured.ns() as f64 * (times_as_long - 1.0)));
            match more {
                Some(more) => page.add(format_args!("<small>few samples; {more} more</small>")),
                None => page.raw("<small>few samples</small>"),
            }
        }
        Quantile::Known { .. } | Quantile::Refused(Refusal::NoSamples) => {}
    }
}

/// An interval, its unit once where both ends have the same.
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
