//! `punctual report`: writes runs and imported measurements as one page for a browser, or one script for gnuplot.

use super::read;
use super::read::Read;
use crate::cli::arguments::{ReportArguments, ReportFormat};
use crate::cli::terminal::{Outcome, note, output};
use model::{Entry, Header};
use report::{OwnRun, Results, html};
use std::path::{Path, PathBuf};

pub(super) fn report(arguments: &ReportArguments) -> Outcome {
    let mut paths = arguments.runs.clone();
    if paths.is_empty() {
        paths.push(read::named_or_latest(None)?);
    }
    let mut runs = Vec::new();
    for path in &paths {
        let run = Read::open(path)?;
        run.note_damage();
        runs.push((path.display().to_string(), run));
    }
    let shown: Vec<_> = runs.iter().map(|(name, run)| run.results(name)).collect();
    let path = match (&arguments.output, &paths[..]) {
        (Some(path), _) => path.clone(),
        (None, [run]) => store::report_path(run),
        (None, _) => PathBuf::from("report.html"),
    };
    let (path, text) = match arguments.format {
        ReportFormat::Html => (path, html(&shown)),
        ReportFormat::Gnuplot if arguments.output.is_none() => {
            (path.with_extension("gnuplot"), output::gnuplot(&shown)?)
        }
        ReportFormat::Gnuplot => (path, output::gnuplot(&shown)?),
    };
    store::write_page(&path, arguments.output.is_some(), &text)?;
    output::write(format!("{}\n", path.display()).as_bytes())?;
    Ok(0)
}

/// Writes the page of a run into its directory and prints its path. A failure is printed but is not an error, because
/// the measurements are safe.
pub(super) fn beside_run(dir: &Path, header: &Header, entries: &[Entry]) {
    let summary = analysis::summarise(header, entries);
    let path = store::report_path(dir);
    let ours = Results::Own(OwnRun { name: &dir.display().to_string(), header, entries, summary: &summary });
    match store::write_page(&path, false, &html(&[ours])) {
        Ok(()) => note(format_args!("report: {}", path.display())),
        Err(err) => note(format_args!("punctual: {err}")),
    }
}
