//! Results for people and programs: text for a terminal, a page for a browser, JSON and other formats.
//!
//! Pure functions of summaries, without access to files, clocks or the machine. [`text`] writes for the terminal,
//! [`html()`] makes the page, and [`Page`] is the source of the formats of other programs; all take [`Results`].
#![forbid(unsafe_code)]

mod again;
mod bins;
mod cells;
mod doctor;
pub mod engines;
mod film;
mod formats;
mod frontier;
mod history;
mod html;
pub mod json;
mod kernels;
mod lines;
mod list;
mod monitor;
mod plan;
mod promises;
mod published;
mod query;
mod recorded;
mod results;
mod sections;
pub mod study;
mod table;
mod tune;
mod words;

use lines::{Lines, SCREEN_ROWS, rows};
use punctual_analysis::{Finding, RunSummary, Verdict};
use punctual_model::{Header, RuntimeRecord, Task};
use sections::{
    Section, conclusion, explained, findings, floor, imported, intensity, latencies, machine, noise, phases, responses,
    threads, tracers, watched,
};
use std::io;
use std::time::{Duration, SystemTime};

pub use again::{AgainDocument, JudgedAgain};
pub use doctor::Examination;
pub use film::{SEARCH_LIMITS, film_text, film_timeline, film_title};
pub use formats::{
    GnuplotKind, Page, csv, gnuplot, hgrm, junit, kcidb, lava, markdown, monitor_metrics, prometheus, tap,
};
pub use frontier::SearchReport;
pub use history::{Buckets, History, HistoryDocument, Judgment};
pub use html::{Picture, film_svg, history_html, html, pictures, tune_html};
pub use kernels::KernelPair;
pub use lines::COLORS;
pub use list::{size, text as list_text};
pub use monitor::{MonitorDocument, monitor_line, monitor_summary};
pub use plan::{dry_run, ready_plans};
pub use promises::{Verification, VerifyDocument};
pub use query::{FIELD_WIDTH, Rows, RowsFormat, RowsWriter, escaped_json};
pub use recorded::RecordedDocument;
pub use results::{ImportedSet, OwnRun, Results};
pub use sections::intensity::{load_rate, machine_share};
pub use sections::latencies::Columns;
pub use sections::responses::target;
pub use sections::{comparison, cost};
pub use tune::{TuneDocument, TuneReport};

/// The unit of numbers without one. Virtual time is never shown as if it were time.
fn unit(summary: &RunSummary) -> &'static str {
    match summary.cells.iter().filter(|cell| cell.cell.kernel.is_virtual()).count() {
        0 => "us unless marked",
        n if n == summary.cells.len() => "virtual time: 1 us = 1000 instructions",
        _ => "us unless marked, of lab kernels in virtual time: 1000 instructions",
    }
}

/// A date in UTC, to the second: `2026-11-22T08:15:00Z`. Later dates than the format permits become its last one.
fn rfc3339(unix_ms: u64) -> String {
    let since = Duration::from_millis(unix_ms.min(punctual_model::LAST_UNIX_MS));
    let time = SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH);
    humantime::format_rfc3339_seconds(time).to_string()
}

/// A date and time in UTC, to the second: `2026-11-22T08:15:00Z`.
pub fn utc(unix_ms: u64) -> String {
    rfc3339(unix_ms)
}

/// Capabilities of the terminal, and the amount of detail.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Columns; 80 are enough.
    pub width: usize,
    /// Whether colors may support the meaning; they never carry it alone.
    pub colour: bool,
    /// Whether non-ASCII characters are shown.
    pub unicode: bool,
    /// Whether every finding is shown, not only the most important.
    pub all_findings: bool,
    /// Maximum of explained spikes shown one by one, the worst first, besides their causes.
    pub spikes: usize,
    /// Columns of figures in the table of latencies; `None`: as many as fit.
    pub columns: Option<Columns>,
}

#[cfg(test)]
impl Style {
    /// Plain text of this width.
    fn plain(width: usize) -> Style {
        Style { width, colour: false, unicode: false, all_findings: false, spikes: 0, columns: None }
    }
}

/// Writes the report: machine, findings, table, answer. Without `style.all_findings` it fits a screen of 80 x 24 where
/// the table leaves room for the rest.
pub fn text(out: &mut dyn io::Write, results: &Results<'_>, style: Style) -> io::Result<()> {
    match results {
        Results::Own(run) => of_run(out, run, style),
        Results::Imported(run) => imported::text(out, run, style),
    }
}

/// Rows that the command writes around the report, like the run's directory. The brief report fits a screen with them.
const OTHER_ROWS: usize = 2;

/// The line without a verdict.
const VERDICT_ROWS: usize = 1;

/// The heading of the findings, with the line after them.
const HEADING_ROWS: usize = 2;

/// The answer comes first, table and verdict last, where the reader of a terminal looks; a report that is longer than a
/// screen repeats the answer there.
fn of_run(out: &mut dyn io::Write, run: &OwnRun<'_>, style: Style) -> io::Result<()> {
    let OwnRun { name, header, summary, .. } = *run;
    let lines = Lines::new(style);
    let (mut about, mut found, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    headline(&mut about, &Results::Own(*run), &lines)?;
    write_about(&mut about, header, summary, &lines, style)?;
    write_numbers(&mut numbers, run, &lines, style)?;
    if style.all_findings {
        lines.findings(&mut found, "Findings", findings::all(summary))?;
    } else {
        let left = SCREEN_ROWS.saturating_sub(rows(&about) + rows(&numbers) + VERDICT_ROWS + HEADING_ROWS + OTHER_ROWS);
        let digest = findings::Digest::fitting(summary, &lines, left);
        let heading = digest.heading(name);
        lines.findings(&mut found, &heading, digest.sentences.into_iter().chain(digest.limits))?;
    }
    let is_long = rows(&about) + rows(&found) + rows(&numbers) + VERDICT_ROWS + OTHER_ROWS > SCREEN_ROWS;
    [about, found, numbers].iter().try_for_each(|part| out.write_all(part))?;
    if is_long {
        writeln!(out)?;
        headline(out, &Results::Own(*run), &lines)?;
    }
    // Requirements apply to latencies, which operations lack.
    let has_latencies = summary.cells.is_empty() || summary.cells.iter().any(|cell| cell.cell.task.has_latencies());
    if summary.verdict == Verdict::NoneAsked && has_latencies { lines.verdict(out, &summary.verdict) } else { Ok(()) }
}

/// Writes the verdict; without limits the answer.
fn headline(out: &mut dyn io::Write, results: &Results<'_>, lines: &Lines) -> io::Result<()> {
    match results.verdict() {
        Verdict::NoneAsked => lines.answer(out, &results.answer()),
        verdict => lines.verdict(out, verdict),
    }
}

/// The machine, the extent of the run, and all tables that are not the answer.
fn write_about(
    out: &mut dyn io::Write,
    header: &Header,
    summary: &RunSummary,
    lines: &Lines,
    style: Style,
) -> io::Result<()> {
    machine::write(out, header, lines)?;
    lines.paragraph(out, "", &machine::measured(header, summary))?;
    languages(out, summary, lines)?;
    if !summary.cells.is_empty() {
        section(out, responses::of(summary), lines)?;
        if style.all_findings {
            intensity::write(out, summary, lines)?;
        }
        if let Some(tracers) = tracers::of(summary) {
            writeln!(out)?;
            tracers.write(out, lines)?;
        }
    }
    writeln!(out)?;
    explained::write(out, header, summary, lines, style.spikes)
}

/// The tables of latencies and costs, and what a run lacks that was to end once they are precise.
fn write_numbers(out: &mut dyn io::Write, run: &OwnRun<'_>, lines: &Lines, style: Style) -> io::Result<()> {
    let summary = run.summary;
    if summary.cells.iter().any(|cell| cell.cell.task.has_latencies()) {
        latencies::write(out, run, lines, style)?;
    }
    section(out, noise::of(summary), lines)?;
    section(out, floor::layers(summary), lines)?;
    section(out, floor::settings(summary), lines)?;
    section(out, threads::of(summary), lines)?;
    section(out, watched::of(summary), lines)?;
    section(out, phases::of(summary), lines)?;
    section(out, watched::chains(summary), lines)?;
    for costs in [cost::of(summary, style.all_findings), cost::of_loads(summary), cost::by_kernel(summary)] {
        section(out, costs, lines)?;
    }
    if let Some(shortfalls) = &summary.shortfalls {
        lines.paragraph(out, "", &conclusion::enough(shortfalls))?;
    }
    Ok(())
}

/// Writes a section, if there is one.
fn section(out: &mut dyn io::Write, section: Option<Section>, lines: &Lines) -> io::Result<()> {
    section.map_or(Ok(()), |section| section.write(out, lines))
}

/// Writes the verdict, the result of each limit in each cell, and the differences from a baseline.
pub fn cases(out: &mut dyn io::Write, results: &Results<'_>, style: Style) -> io::Result<()> {
    let lines = Lines::new(style);
    headline(out, results, &lines)?;
    writeln!(out)?;
    for case in results.cases() {
        let cell = case.cell.as_deref().unwrap_or("run");
        lines.paragraph(out, "", &format!("{cell} {}: {}", case.limit, case.verdict.sentence()))?;
    }
    let differences = results.findings().iter().filter(|one| matches!(one, Finding::BaselineDiffers(_)));
    for difference in differences {
        lines.paragraph(out, "", &difference.to_string())?;
    }
    let Results::Own(run) = results else { return Ok(()) };
    for (cell, findings) in run.summary.cells.iter().zip(&run.summary.cell_findings) {
        let floor = findings.iter().filter(|one| matches!(one, Finding::BelowFloor(_)));
        floor.map(|floor| format!("{}: {floor}", cell.name)).try_for_each(|said| lines.paragraph(out, "", &said))?;
    }
    Ok(())
}

/// Writes the measured implementations of the languages.
fn languages(out: &mut dyn io::Write, summary: &RunSummary, lines: &Lines) -> io::Result<()> {
    let measured = summary.cells.iter().filter_map(|cell| match cell.cell.task {
        Task::Sleep(runtime) => Some((runtime, cell.runtime.as_ref()?)),
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
