//! A run as people and programs read it: text for the terminal, one JSON document.

mod answer;
mod frontier;
mod host;
mod html;
mod intensity;
mod json;
mod lines;
mod published;
mod standout;
mod table;

use analysis::{RunSummary, Verdict};
use lines::Lines;
use model::{Header, Method, RuntimeRecord};
use std::io;

pub(crate) use frontier::Searched;
pub(crate) use html::{Shown, html};
pub(crate) use json::json;

/// What the terminal can show, and how much is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// Columns; 80 are enough.
    pub(crate) width: usize,
    /// Whether colours may support, never carry, the meaning.
    pub(crate) colour: bool,
    /// Whether characters beyond ASCII are shown.
    pub(crate) unicode: bool,
    /// Every finding, not only the most important.
    pub(crate) all_findings: bool,
}

/// Writes the whole report: machine, table, what stands out, answer.
///
/// # Errors
/// When `out` does not take it.
pub(crate) fn text(out: &mut dyn io::Write, header: &Header, summary: &RunSummary, style: Style) -> io::Result<()> {
    let lines = Lines::new(style);
    host::write(out, header, summary, &lines)?;
    writeln!(out)?;
    if !summary.cells.is_empty() {
        table::write(out, summary, &lines)?;
        languages(out, summary, &lines)?;
        intensity::write(out, summary, &lines)?;
        writeln!(out)?;
    }
    standout::write(out, summary, &lines, style.all_findings)?;
    if summary.verdict == Verdict::NoneAsked {
        lines.paragraph(out, "", &answer::how_late(summary))?;
    }
    lines.verdict(out, &summary.verdict)
}

/// Which implementations of the languages were measured.
fn languages(out: &mut dyn io::Write, summary: &RunSummary, lines: &Lines) -> io::Result<()> {
    let measured = summary.cells.iter().filter_map(|cell| match cell.cell.method {
        Method::Sleep(runtime) => Some((runtime, cell.runtime.as_ref()?)),
        _ => None,
    });
    let mut words: Vec<String> = Vec::new();
    for (runtime, RuntimeRecord { version, program }) in measured {
        let language = format!("{runtime}: {version} ({program})");
        if !words.contains(&language) {
            words.push(language);
        }
    }
    if words.is_empty() { Ok(()) } else { lines.paragraph(out, "", &words.join("; ")) }
}

#[cfg(test)]
mod tests;
