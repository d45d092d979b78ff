//! Sections of the page, and its tables, each in a frame that scrolls where the window is too narrow for it.

use super::markup::{Markup, Text};
use crate::sections::Section;
use crate::table::Table;
use std::fmt::Display;

/// Writes `content` in a frame that scrolls; `label` says to a screen reader what is in it, `class` is of the frame.
pub(super) fn framed(page: &mut Markup, class: &str, label: &str, content: impl FnOnce(&mut Markup)) {
    page.add(format_args!("<div class=\"{class}\" tabindex=0 role=region aria-label=\"{}\">", Text(label)));
    content(page);
    page.raw("</div>\n");
}

/// Writes a table of this class (none: empty) in a frame; `rows` writes its body.
pub(super) fn table<H: Display>(
    page: &mut Markup,
    label: &str,
    class: &str,
    heads: impl IntoIterator<Item = H>,
    rows: impl FnOnce(&mut Markup),
) {
    framed(page, "scroll", label, |page| {
        let class = if class.is_empty() { String::new() } else { format!(" class={class}") };
        page.add(format_args!("<table{class}><thead><tr>"));
        heads.into_iter().for_each(|head| page.add(format_args!("<th scope=col>{}", Text(head))));
        page.raw("</thead><tbody>\n");
        rows(page);
        page.raw("</tbody></table>");
    });
}

/// Writes a table that text has, too.
pub(super) fn numbers(page: &mut Markup, label: &str, class: &str, numbers: &Table) {
    table(page, label, class, numbers.heads(), |page| numbers.rows.iter().for_each(|fields| row(page, fields)));
}

/// Writes a row whose first field is its head.
pub(super) fn row<F: Display>(page: &mut Markup, fields: impl IntoIterator<Item = F>) {
    page.raw("<tr>");
    for (field, kind) in fields.into_iter().zip(std::iter::once("<th scope=row>").chain(std::iter::repeat("<td>"))) {
        page.add(format_args!("{kind}{}", Text(field)));
    }
    page.raw("\n");
}

/// Writes a section that text and Markdown have, too; `badge` tells the runs of the page apart, `more` writes what only the page has.
pub(super) fn section(page: &mut Markup, section: &Section, badge: &str, more: impl FnOnce(&mut Markup)) {
    let Section { title, table, sentences, notes } = section;
    page.add(format_args!("<section class=later>\n<h2>{}{badge}</h2>\n", Text(title)));
    if let Some(table) = table {
        numbers(page, title, "", table);
    }
    sentences.iter().for_each(|sentence| page.add(format_args!("<p>{}</p>\n", Text(sentence))));
    notes.iter().for_each(|note| page.add(format_args!("<p class=quiet>{}</p>\n", Text(note))));
    more(page);
    page.raw("</section>\n");
}
