//! A run as people and programs read it: text for the terminal, one JSON document.

mod answer;
pub(crate) mod comparison;
pub(crate) mod cost;
mod doctor;
mod explained;
mod formats;
mod frontier;
mod host;
mod html;
mod imported;
mod intensity;
mod lines;
mod list;
mod published;
mod responses;
mod standout;
mod table;
mod tracers;

use analysis::{Finding, RunSummary, Verdict};
use lines::Lines;
use model::{Header, Method, RuntimeRecord};
use std::io;

pub(crate) use doctor::Examination;
pub(crate) use formats::{Named, Page, csv, hgrm, junit, lava, markdown, prometheus, tap};
pub(crate) use frontier::Searched;
pub(crate) use html::{Imports, Ours, Shown, html};
pub(crate) use imported::{json as imported_json, text as imported_text};
pub(crate) use intensity::{load_rate, machine_share};
pub(crate) use lines::labelled;
pub(crate) use list::{size, text as list_text};
pub(crate) use responses::target;

/// What a number without a unit is. Virtual time is never shown as if it were time.
fn unit(summary: &RunSummary) -> &'static str {
    match summary.cells.iter().filter(|cell| cell.cell.kernel.is_virtual()).count() {
        0 => "microseconds where no unit stands",
        n if n == summary.cells.len() => "virtual time, in 1000 instructions (\"us\") where no unit stands",
        _ => "microseconds where no unit stands; of lab kernels virtual ones, 1000 instructions",
    }
}

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
    /// Every explained spike, not only their causes.
    pub(crate) each_spike: bool,
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
        if summary.cells.iter().any(|cell| cell.cell.method.waits()) {
            table::write(out, summary, &lines)?;
        }
        cost::write(out, summary, &lines)?;
        languages(out, summary, &lines)?;
        responses::write(out, summary, &lines)?;
        intensity::write(out, summary, &lines)?;
        tracers::write(out, summary, &lines)?;
        writeln!(out)?;
    }
    explained::write(out, summary, &lines, style.each_spike)?;
    standout::write(out, summary, &lines, style.all_findings)?;
    if let Some(shortfalls) = &summary.shortfalls {
        lines.paragraph(out, "", &answer::enough(shortfalls))?;
    }
    if summary.verdict == Verdict::NoneAsked {
        lines.paragraph(out, "", &answer::how_late(summary))?;
    }
    lines.verdict(out, &summary.verdict)
}

/// Writes what became of each limit in each cell, in what a baseline differs (of all that is `beside`), then the verdict.
///
/// # Errors
/// When `out` does not take it.
pub(crate) fn cases(out: &mut dyn io::Write, page: &Page<'_>, beside: &[Finding], style: Style) -> io::Result<()> {
    let lines = Lines::new(style);
    for case in page.cases() {
        let cell = case.cell.as_deref().unwrap_or("run");
        let said = case.verdict.to_string();
        let said = said.strip_prefix("Verdict: ").unwrap_or(&said).trim_end();
        lines.paragraph(out, "", &format!("{cell} {}: {said}", case.limit))?;
    }
    let differences = beside.iter().filter(|finding| matches!(finding, Finding::BaselineDiffers { .. }));
    for difference in differences {
        lines.paragraph(out, "", &difference.to_string())?;
    }
    writeln!(out)?;
    lines.verdict(out, page.verdict())
}

/// The run as one JSON document.
pub(crate) fn json(header: &Header, summary: &RunSummary) -> serde_json::Value {
    serde_json::to_value(analysis::document(header, summary)).expect("plain fields with text keys always become JSON")
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
