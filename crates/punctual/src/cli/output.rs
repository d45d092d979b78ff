//! Showing a result on stdout in the form that was asked for.

use super::arguments::Format;
use super::note;
use crate::report::{self, Style};
use crate::store;
use analysis::RunSummary;
use model::{Entry, Header};
use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Summarises a run, writes it to stdout, and returns the exit status of its verdict.
pub(super) fn show(
    header: &Header,
    entries: &[Entry],
    format: Format,
    all_findings: bool,
) -> Result<u8, Box<dyn Error>> {
    let summary = analysis::summarise(header, entries);
    let mut text = Vec::new();
    write_report(&mut text, header, &summary, format, all_findings)?;
    write(&text)?;
    Ok(summary.verdict.exit_status())
}

/// Writes a result to stdout.
pub(super) fn write(text: &[u8]) -> Result<(), Box<dyn Error>> {
    write_while_read(text).map(|_| ())
}

/// Writes a part of a result to stdout. Whether anybody reads it: not after `punctual load cpu | head`.
pub(super) fn write_while_read(text: &[u8]) -> Result<bool, Box<dyn Error>> {
    match io::stdout().write_all(text) {
        Err(err) if err.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => Ok(written.map(|()| true).map_err(|err| format!("cannot write to stdout: {err}"))?),
    }
}

/// Says where the samples of a run are, if it keeps them; `named` is its directory or its file.
pub(super) fn name_samples(header: &Header, named: &Path) {
    if header.samples {
        note(format_args!("samples: {}", store::samples_dir(named).display()));
    }
}

fn write_report(
    out: &mut Vec<u8>,
    header: &Header,
    summary: &RunSummary,
    format: Format,
    all_findings: bool,
) -> Result<(), Box<dyn Error>> {
    match format {
        Format::Text => report::text(out, header, summary, style(all_findings))?,
        Format::Json => json(out, &report::json(header, summary))?,
    }
    Ok(())
}

/// Writes a document, with a line feed at its end.
pub(super) fn json(out: &mut Vec<u8>, document: &serde_json::Value) -> serde_json::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    out.push(b'\n');
    Ok(())
}

/// What the terminal can show. `NO_COLOR` (no-color.org) and pipes are respected.
pub(super) fn style(all_findings: bool) -> Style {
    let is_terminal = io::stdout().is_terminal();
    let colour = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let width = rt::sys::terminal::width().filter(|_| is_terminal).unwrap_or(100);
    let unicode = shows_unicode();
    Style { width, colour, unicode, all_findings }
}

/// Whether the locale is one of UTF-8, locale(7).
pub(super) fn shows_unicode() -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    locale.is_some_and(|locale| locale.to_ascii_lowercase().replace('-', "").contains("utf8"))
}
