//! What was counted over links, as sentences below the table of cells.

use super::super::responses;
use super::markup::{Markup, Text};
use super::{Shown, shown};

pub(super) fn write(page: &mut Markup, runs: &[Shown<'_>]) {
    for (index, run) in shown::ours(runs) {
        let sentences = responses::sentences(run.summary);
        if sentences.is_empty() {
            continue;
        }
        let letter = super::letter(runs, index).map(|letter| format!(" <b class=run>{letter}</b>")).unwrap_or_default();
        page.add(format_args!("<section class=later>\n<h2>Triggers and answers{letter}</h2>\n"));
        sentences.iter().for_each(|sentence| page.add(format_args!("<p>{}</p>\n", Text(sentence))));
        page.raw("</section>\n");
    }
}
