//! `punctual show`, `report`, `list`: what runs hold, as text, as a page, in a list.

use super::read;
use super::read::Read;
use crate::cli::arguments::{Format, ListArguments, ReportArguments, ReportFormat, RunFormat, ShowArguments};
use crate::cli::terminal::output::OutputOptions;
use crate::cli::terminal::{ERROR, Outcome, note, output};
use punctual_model::{Entry, Header};
use punctual_report::json::{List, Unreadable};
use punctual_report::{GnuplotKind, OwnRun, Results, html};
use std::path::{Path, PathBuf};

/// Prints a run. The verdict does not change the exit status: `check` judges.
pub(super) fn show(arguments: &ShowArguments) -> Outcome {
    let ShowArguments { run, all, cell, columns, format } = arguments;
    let dir = read::named_or_latest(run.as_deref())?;
    let read = Read::open_cell(&dir, cell.as_deref())?;
    if columns.is_some() && *format != RunFormat::Text {
        return Err("unsupported: --columns with a format other than text; leave one out".into());
    }
    if columns.is_some() && !matches!(read, Read::Own(..)) {
        return Err("unsupported: --columns with imported measurements; leave it out".into());
    }
    let spikes = if *all { usize::MAX } else { 0 };
    let options = OutputOptions { format: *format, all_findings: *all, spikes, columns: *columns };
    output::write(&output::document(&read.results(&dir.display().to_string()), options)?)?;
    if let (RunFormat::Text, Read::Own(run, _)) = (format, &read) {
        output::name_samples(&run.header, &dir);
    }
    read.note_damage();
    Ok(if read.is_whole() { 0 } else { ERROR })
}

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
        (None, [run]) => punctual_store::report_path(run),
        (None, _) => PathBuf::from("report.html"),
    };
    let is_named = arguments.output.is_some();
    let beside = |name: &str, suffix: &str| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        path.with_file_name(format!("{stem}-{name}.{suffix}"))
    };
    let files: Vec<(PathBuf, String)> = match arguments.format {
        ReportFormat::Html => vec![(path, html(&shown))],
        ReportFormat::Gnuplot => GnuplotKind::ALL
            .into_iter()
            .filter_map(|(kind, name)| Some((beside(name, "gnuplot"), punctual_report::gnuplot(&shown, kind)?)))
            .collect(),
        ReportFormat::Svg => {
            punctual_report::pictures(&shown).into_iter().map(|one| (beside(&one.name, "svg"), one.svg)).collect()
        }
    };
    if files.is_empty() {
        return Err("unsupported: a picture without a cell that has a histogram".into());
    }
    for (path, text) in files {
        punctual_store::write_page(&path, is_named, &text)?;
        output::write(format!("{}\n", path.display()).as_bytes())?;
    }
    Ok(0)
}

/// Writes the page of a run into its directory and prints its path. A failure is printed but is not an error, because
/// the measurements are safe.
pub(super) fn beside_run(dir: &Path, header: &Header, entries: &[Entry]) {
    let summary = punctual_analysis::summarise(header, entries);
    let path = punctual_store::report_path(dir);
    let ours = Results::Own(OwnRun { name: &dir.display().to_string(), header, entries, summary: &summary });
    match punctual_store::write_page(&path, false, &html(&[ours])) {
        Ok(()) => note(format_args!("report: {}", path.display())),
        Err(err) => note(format_args!("punctual: {err}")),
    }
}

pub(super) fn list(arguments: &ListArguments) -> Outcome {
    let mut list = List::default();
    let (found, closed) = punctual_store::below(&arguments.dir)?;
    for found in found {
        let path = found.dir.display().to_string();
        match Read::open(&found.dir) {
            Ok(read) => list.add(found.bytes, &read.results(&path), read.damage()),
            Err(err) => list.add_unreadable(Unreadable { path, bytes: found.bytes, reason: err.to_string() }),
        }
    }
    let mut text = Vec::new();
    match arguments.format {
        Format::Text => {
            punctual_report::list_text(&list, &mut text, &arguments.dir.display().to_string(), output::style(false))?
        }
        Format::Json => output::json(&mut text, &serde_json::to_value(&list)?)?,
    }
    output::write(&text)?;
    closed.iter().for_each(|why| note(format_args!("punctual: {why}")));
    // Naming damaged runs is part of the list and not an error.
    Ok(0)
}
