//! What the kernel's tracers saw, as a table below that of the cells.

use super::super::tracers::{self, Traced};
use super::markup::{Markup, Text};
use super::{Shown, shown};

pub(super) fn write(page: &mut Markup, runs: &[Shown<'_>]) {
    for (index, run) in shown::ours(runs) {
        let Some(Traced { heads, rows, notes }) = tracers::of(run.summary) else { continue };
        let letter = super::letter(runs, index).map(|letter| format!(" <b class=run>{letter}</b>")).unwrap_or_default();
        page.add(format_args!("<section class=later>\n<h2>The kernel&#39;s tracers{letter}</h2>\n"));
        page.raw("<div class=scroll tabindex=0 role=region aria-label=\"The kernel&#39;s tracers\"><table><thead><tr>");
        heads.iter().for_each(|(head, _)| page.add(format_args!("<th scope=col>{head}")));
        page.raw("</thead>\n");
        for row in &rows {
            page.raw("<tr>");
            for (field, (_, is_text)) in row.iter().zip(&heads) {
                let cell = if *is_text { "<th scope=row>" } else { "<td>" };
                page.add(format_args!("{cell}{}", Text(field)));
            }
            page.raw("\n");
        }
        page.raw("</table></div>\n");
        notes.iter().for_each(|note| page.add(format_args!("<p class=quiet>{}</p>\n", Text(note))));
        page.raw("</section>\n");
    }
}
