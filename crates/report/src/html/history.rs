//! The page of histories: a table of all series, and pictures of those that changed.

mod picture;

use super::markup::{Markup, Text};
use super::{foot, opening, table, top};
use crate::history::{Buckets, History, day, limits, mark, name, sentence, table as rows};
use punctual_analysis::history::SeriesHistory;
use std::collections::BTreeSet;

/// Changes of the machine that are listed for a series; the last ones.
const MARKS: usize = 40;

/// Returns the page: the answer, the pictures of the series that changed, the table of all, and the other pictures.
/// `histograms` are those of the last runs of each series that [`History::shown_in_full`] returns.
pub fn history_html(history: &History, histograms: &[Vec<Buckets>]) -> String {
    let mut body = Markup::default();
    let none = Vec::new();
    let shown = history.shown_in_full();
    let one = |body: &mut Markup, index: usize, one: &SeriesHistory| {
        series(body, index, one, histograms.get(index).unwrap_or(&none));
    };
    // Without a change, the first stands for all.
    let changed = shown.iter().take_while(|series| !series.changes.is_empty()).count().max(1);
    shown.iter().take(changed).enumerate().for_each(|(index, series)| one(&mut body, index, series));
    body.section("series", "", "Series", None);
    table::numbers(&mut body, "Series", "", &rows(history.all()));
    body.add(format_args!("<p class=quiet>{}</p>\n</section>\n", Text(limits())));
    let others = history.all().len() - shown.len();
    if others > 0 {
        body.add(format_args!("<p class=quiet>{others} more series are in the table only.</p>\n"));
    }
    if shown.len() > changed {
        // The table of contents lists what is open.
        let mut rest = Markup::default();
        shown.iter().enumerate().skip(changed).for_each(|(index, series)| one(&mut rest, index, series));
        body.folded("Series without a change", |body| body.raw(&rest.into_string()));
    }
    let mut page = Markup::default();
    opening(&mut page, "History");
    page.raw("<main id=top>\n<header>\n");
    top::answer(&mut page, None, &history.answer());
    page.raw("<h1>History</h1>\n");
    let (facts, last_unix_ms) = about(history);
    top::facts(&mut page, &facts, ("last run ", last_unix_ms), None);
    page.raw("</header>\n");
    page.add(format_args!("<nav class=contents aria-label=Contents>\n{}</nav>\n", body.contents()));
    page.raw(&body.into_string());
    page.raw("</main>\n");
    foot(&mut page);
    page.into_string()
}

/// Machines and kernels that a head names.
const NAMED: usize = 4;

/// The machines, their last kernels, and the start of the last run, ms since 1970-01-01 UTC.
fn about(history: &History) -> (Vec<String>, u64) {
    let last = |one: &SeriesHistory| one.series.points.last().map(|point| point.started_unix_ms);
    let of = |one: &SeriesHistory| {
        let kernel = one.series.points.last().and_then(|point| point.kernel_release.clone());
        let kernel = kernel.map(|kernel| format!(", Linux {kernel}")).unwrap_or_default();
        format!("{}{kernel}", one.series.machine)
    };
    let all: BTreeSet<String> = history.all().iter().map(of).collect();
    let more = all.len().saturating_sub(NAMED);
    let named = all.into_iter().take(NAMED).chain((more > 0).then(|| format!("{more} more")));
    (named.collect(), history.all().iter().filter_map(last).max().unwrap_or(0))
}

/// Writes a series: its changes, its picture, and the changes of its machine.
fn series(page: &mut Markup, index: usize, history: &SeriesHistory, histograms: &[Buckets]) {
    page.section(&format!("series{index}"), "later", &name(history), None);
    page.add(format_args!("<p class=quiet>{}</p>\n", Text(&history.series.details)));
    if !history.changes.is_empty() {
        page.raw("<ul class=findings>\n");
        let lines = history.changes.iter().map(sentence);
        lines.for_each(|line| page.add(format_args!("<li>{}\n", Text(line))));
        page.raw("</ul>\n");
    }
    picture::write(page, history, histograms);
    if !history.marks.is_empty() {
        let listed = history.marks.get(history.marks.len().saturating_sub(MARKS)..).unwrap_or_default();
        page.add(format_args!("<details><summary>Changes of the machine ({})</summary><ul>\n", history.marks.len()));
        for one in listed {
            page.add(format_args!("<li>{} {}\n", day(one.unix_ms), Text(mark(one))));
        }
        page.raw("</ul></details>\n");
    }
    page.raw("</section>\n");
}
