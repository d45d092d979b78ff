//! The page of histories: a table of all series, and pictures of those that changed.

mod picture;

use super::markup::{Markup, Text};
use super::{foot, opening, table};
use crate::history::{Buckets, History, day, limits, mark, name, sentence, table as rows};
use punctual_analysis::history::SeriesHistory;

/// Changes of the machine that are listed for a series; the last ones.
const MARKS: usize = 40;

/// Returns the page. `histograms` are those of the last runs of each series that [`History::shown_in_full`] returns.
pub fn history_html(history: &History, histograms: &[Vec<Buckets>]) -> String {
    let mut body = Markup::default();
    body.section("series", "", "Series", None);
    table::numbers(&mut body, "Series", "", &rows(history.all()));
    body.add(format_args!("<p class=quiet>{}</p>\n</section>\n", Text(limits())));
    let none = Vec::new();
    let shown = history.shown_in_full();
    for (index, one) in shown.iter().enumerate() {
        let histograms = histograms.get(index).unwrap_or(&none);
        series(&mut body, index, one, histograms);
    }
    let others = history.all().len() - shown.len();
    if others > 0 {
        body.add(format_args!("<p class=quiet>{others} more series are in the table only.</p>\n"));
    }
    let mut page = Markup::default();
    opening(&mut page, "History");
    page.raw("<main id=top>\n<h1>History</h1>\n");
    page.add(format_args!("<p class=answer>{}</p>\n", Text(history.answer())));
    page.add(format_args!("<nav class=contents aria-label=Contents>\n{}</nav>\n", body.contents()));
    page.raw(&body.into_string());
    page.raw("</main>\n");
    foot(&mut page);
    page.into_string()
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
