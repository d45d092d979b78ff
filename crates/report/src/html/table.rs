//! Sections of the page, and its tables, each in a frame that scrolls in a narrow window.

use super::markup::{Markup, Text};
use crate::sections::Section;
use crate::table::{Column, Table};
use std::fmt::Display;

/// Writes `content` in a frame that scrolls: `label` is its name for screen readers, `class` its class.
pub(super) fn framed(page: &mut Markup, class: &str, label: &str, content: impl FnOnce(&mut Markup)) {
    page.add(format_args!("<div class=\"{class}\" tabindex=0 role=region aria-label=\"{}\">", Text(label)));
    content(page);
    page.raw("</div>\n");
}

/// Writes a table in a frame; `class` may be empty, `rows` writes the body.
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

/// Writes a table of the terminal: columns of numbers end at the right.
pub(super) fn numbers(page: &mut Markup, label: &str, class: &str, numbers: &Table) {
    framed(page, "scroll", label, |page| {
        let class = if class.is_empty() { String::new() } else { format!(" class={class}") };
        page.add(format_args!("<table{class}><thead><tr>"));
        let side = |is_text: bool| if is_text { "" } else { " class=n" };
        for Column { head, is_text, .. } in &numbers.columns {
            page.add(format_args!("<th scope=col{}>{}", side(*is_text), Text(head)));
        }
        page.raw("</thead><tbody>\n");
        for fields in &numbers.rows {
            page.raw("<tr>");
            for (index, (field, column)) in fields.iter().zip(&numbers.columns).enumerate() {
                // The parts of the row above are indented.
                let kind = match index {
                    0 if field.starts_with("  ") => "th scope=row class=sub",
                    0 => "th scope=row",
                    _ => "td",
                };
                page.add(format_args!("<{kind}{}>{}", side(column.is_text), Text(field.trim_start())));
            }
            page.raw("\n");
        }
        page.raw("</tbody></table>");
    });
}

/// Writes a section that text and Markdown have, too; `more` writes the content that only the page has.
pub(super) fn section(
    page: &mut Markup,
    section: &Section,
    id: &str,
    letter: Option<char>,
    more: impl FnOnce(&mut Markup),
) {
    let Section { title, table, sentences, notes } = section;
    page.section(id, "later", title, letter);
    if let Some(table) = table {
        numbers(page, title, "", table);
    }
    sentences.iter().for_each(|sentence| page.add(format_args!("<p>{}</p>\n", Text(sentence))));
    notes.iter().for_each(|note| page.add(format_args!("<p class=quiet>{}</p>\n", Text(note))));
    more(page);
    page.raw("</section>\n");
}
