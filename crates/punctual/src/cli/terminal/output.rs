//! Output of results to stdout in the requested format.

use super::note;
use crate::cli::arguments::RunFormat;
use punctual_analysis::wording::things;
use punctual_model::{Entry, Header, is_plain, plain};
use punctual_report::{COLORS, Columns, GnuplotKind, OwnRun, Results, Style};
use std::borrow::Cow;
use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Explained spikes that are shown one by one without `--all`.
pub(in crate::cli) const SPIKES: usize = 3;

/// Options of the output of a run.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct OutputOptions {
    pub(in crate::cli) format: RunFormat,
    /// Whether every finding is shown, not only the most important.
    pub(in crate::cli) all_findings: bool,
    /// Explained spikes that are shown one by one, besides their causes.
    pub(in crate::cli) spikes: usize,
    /// Columns of the text table; `None`: as many as fit.
    pub(in crate::cli) columns: Option<Columns>,
}

impl From<RunFormat> for OutputOptions {
    /// The options at the end of a measurement.
    fn from(format: RunFormat) -> Self {
        OutputOptions { format, all_findings: false, spikes: 0, columns: None }
    }
}

/// Rejects a format that cannot hold these cells, before anything is measured.
pub(in crate::cli) fn check(header: &Header, format: RunFormat) -> Result<(), Box<dyn Error>> {
    let is_one_of_many = format == RunFormat::Hgrm && header.cells.len() > 1;
    if is_one_of_many {
        return Err(
            "hgrm holds one cell; measure first, then show each cell: punctual show RUN --format hgrm --cell NAME"
                .into(),
        );
    }
    Ok(())
}

/// Summarizes the run in the directory `name`, which is empty if it was not kept, writes it to stdout, and returns the
/// exit status of its verdict.
pub(in crate::cli) fn show(
    name: &str,
    header: &Header,
    entries: &[Entry],
    options: OutputOptions,
) -> Result<u8, Box<dyn Error>> {
    let summary = punctual_analysis::summarise(header, entries);
    let results = Results::Own(OwnRun { name, header, entries, summary: &summary });
    write(&document(&results, options)?)?;
    Ok(summary.verdict.exit_status())
}

/// Writes a result to stdout.
pub(in crate::cli) fn write(text: &[u8]) -> Result<(), Box<dyn Error>> {
    write_while_read(text).map(|_| ())
}

/// Writes a part of a result to stdout; returns whether it still has a reader (`punctual load cpu | head`).
pub(in crate::cli) fn write_while_read(text: &[u8]) -> Result<bool, Box<dyn Error>> {
    is_read(io::stdout().write_all(harmless(text).as_bytes()))
}

/// Whether stdout still has a reader.
fn is_read<T>(written: io::Result<T>) -> Result<bool, Box<dyn Error>> {
    match written {
        Err(err) if err.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => Ok(written.map(|_| true).map_err(|err| format!("cannot write to stdout: {err}"))?),
    }
}

/// Exit status of a result that was written in parts.
pub(in crate::cli) fn written<T>(written: io::Result<T>) -> Result<u8, Box<dyn Error>> {
    is_read(written).map(|_| 0)
}

/// Writer of a result of any length to stdout. A failed command leaves out what is not flushed.
#[derive(Debug, Default)]
pub(in crate::cli) struct Parts(Vec<u8>);

impl Write for Parts {
    /// Takes whole characters, as `write!` hands them over.
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        /// Bytes of a part.
        const PART: usize = 1 << 16;
        self.0.extend_from_slice(text);
        if self.0.len() >= PART {
            self.flush()?;
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let text = std::mem::take(&mut self.0);
        io::stdout().write_all(harmless(&text).as_bytes())
    }
}

/// The text without terminal control sequences except our colors: names in it may come from another user.
fn harmless(text: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(text);
    let is_ours = |c: char| matches!(c, '\n' | '\t') || is_plain(c);
    if text.chars().all(is_ours) {
        return text;
    }
    let mut harmless = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(c) = rest.chars().next() {
        let color = COLORS.into_iter().find(|color| rest.starts_with(color));
        let (shown, length) = match color {
            Some(color) => (Cow::Borrowed(color), color.len()),
            None if is_ours(c) => (Cow::Borrowed(&rest[..c.len_utf8()]), c.len_utf8()),
            None => (plain(&rest[..c.len_utf8()]), c.len_utf8()),
        };
        harmless.push_str(&shown);
        rest = &rest[length..];
    }
    Cow::Owned(harmless)
}

/// The number of failed measurements in words.
pub(in crate::cli) fn failures(header: &Header) -> String {
    things(u64::try_from(header.failed.len()).unwrap_or(u64::MAX), "measurement")
}

/// The exit status of a run: a passed verdict becomes inconclusive if measurements failed.
pub(in crate::cli) fn status_with_failures(status: u8, header: &Header) -> u8 {
    const INCONCLUSIVE: u8 = 3;
    if status == 0 && !header.failed.is_empty() { INCONCLUSIVE } else { status }
}

/// Prints the directory of a run's samples, if it has any; `named` is its directory or file.
pub(in crate::cli) fn name_samples(header: &Header, named: &Path) {
    if header.samples {
        note(format_args!("samples: {}", punctual_store::samples_dir(named).display()));
    }
}

/// Prints the file of a run in `dir`, and its samples.
pub(in crate::cli) fn name_run(header: &Header, dir: &Path) {
    note(dir.join("run.jsonl").display());
    name_samples(header, dir);
}

/// A run or imported measurements in the requested format.
pub(in crate::cli) fn document(results: &Results<'_>, options: OutputOptions) -> Result<Vec<u8>, Box<dyn Error>> {
    let OutputOptions { format, all_findings, spikes, columns } = options;
    let page = || punctual_report::Page::of(results, all_findings);
    let mut text = Vec::new();
    match format {
        RunFormat::Text => punctual_report::text(&mut text, results, Style { spikes, columns, ..style(all_findings) })?,
        RunFormat::Json => json(&mut text, &punctual_report::json::of_results(results))?,
        RunFormat::Kcidb => text = punctual_report::kcidb(&page()).into_bytes(),
        RunFormat::Hgrm => text = hgrm(results)?,
        RunFormat::Csv => text = punctual_report::csv(&page()).into_bytes(),
        RunFormat::Md => text = punctual_report::markdown(&page()).into_bytes(),
        RunFormat::Junit => text = punctual_report::junit(&page()).into_bytes(),
        RunFormat::Tap => text = punctual_report::tap(&page()).into_bytes(),
        RunFormat::Lava => text = punctual_report::lava(&page()).into_bytes(),
        RunFormat::Gnuplot => text = gnuplot(&[*results], GnuplotKind::Histogram)?.into_bytes(),
        RunFormat::Prom => text = punctual_report::prometheus(&page()).into_bytes(),
    }
    Ok(text)
}

/// A plot of these runs as a gnuplot script.
pub(in crate::cli) fn gnuplot(runs: &[Results<'_>], kind: GnuplotKind) -> Result<String, Box<dyn Error>> {
    punctual_report::gnuplot(runs, kind)
        .ok_or_else(|| "unsupported: gnuplot without a cell that has a histogram".into())
}

/// The distribution of the only cell.
fn hgrm(results: &Results<'_>) -> Result<Vec<u8>, Box<dyn Error>> {
    let cells = results.rows();
    let [cell] = &cells[..] else {
        let names = cells.iter().map(|cell| cell.name).collect::<Vec<_>>().join(", ");
        return Err(format!("hgrm holds one cell; name it with --cell (cells: {names})").into());
    };
    let histogram = results.histogram(0).ok_or_else(|| format!("{} has only a minimum and a maximum", cell.name))?;
    Ok(punctual_report::hgrm(cell, &histogram).into_bytes())
}

/// Writes a document with a line feed at its end.
pub(in crate::cli) fn json(out: &mut Vec<u8>, document: &impl serde::Serialize) -> serde_json::Result<()> {
    out.extend_from_slice(punctual_report::escaped_json(&serde_json::to_string_pretty(document)?).as_bytes());
    out.push(b'\n');
    Ok(())
}

/// Capabilities of the terminal. `NO_COLOR` (no-color.org) and pipes are respected.
pub(in crate::cli) fn style(all_findings: bool) -> Style {
    let is_terminal = io::stdout().is_terminal();
    let colour = is_terminal && wants_color();
    let width = punctual_sys::terminal::width().filter(|_| is_terminal).unwrap_or(100);
    let unicode = shows_unicode();
    Style { width, colour, unicode, all_findings, spikes: 0, columns: None }
}

/// Whether the user has not asked for text without color (no-color.org).
pub(in crate::cli) fn wants_color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether the locale has UTF-8 (locale(7)).
pub(in crate::cli) fn shows_unicode() -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    locale.is_some_and(|locale| locale.to_ascii_lowercase().replace('-', "").contains("utf8"))
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_escapes_reach_a_terminal() {
        for (text, shown) in [
            ("", ""),
            ("a\tb\n80 \u{b5}s\n", "a\tb\n80 \u{b5}s\n"),
            ("\x1b[1mhead\x1b[0m\n", "\x1b[1mhead\x1b[0m\n"),
            ("x\x1b[1;31mFAIL\x1b[0m \x1b[2J\x1b]0;t\x07", "x\x1b[1;31mFAIL\x1b[0m \u{fffd}[2J\u{fffd}]0;t\u{fffd}"),
            ("\u{9b}2J\r\u{202e}", "\u{fffd}2J \u{fffd}"),
        ] {
            assert_eq!(harmless(text.as_bytes()), shown, "{text:?}");
        }
        assert_eq!(harmless(b"a\xff"), "a\u{fffd}");
    }

    #[test]
    fn json_escapes_what_a_terminal_acts_upon_and_means_the_same() {
        let document = serde_json::json!({"a": "\u{9b}\u{202e}\x1b\x7f\"\\ \u{b5}", "\u{2028}": 1});
        let mut text = Vec::new();
        json(&mut text, &document).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.chars().all(|c| c == '\n' || is_plain(c)), "{text:?}");
        assert!(text.contains(r#""\u009b\u202e\u001b\u007f\"\\ "#), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), document);
    }
}
