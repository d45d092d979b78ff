//! `punctual report`: runs and imported measurements as one page for a browser.

use super::arguments::ReportArguments;
use super::{Outcome, note, output};
use analysis::{ImportedSummary, RunSummary};
use model::{Entry, Header};
use report::{ImportedSet, OwnRun, PageRun, html};
use std::path::{Path, PathBuf};
use store::{ImportedRun, Run};

/// What a page is made of, while it is.
enum Read {
    Own(Box<Run>, RunSummary),
    Imported(ImportedRun, ImportedSummary),
}

pub(super) fn report(arguments: &ReportArguments) -> Outcome {
    let mut runs = Vec::new();
    for path in &arguments.runs {
        runs.push((path.display().to_string(), read(path)?));
    }
    let shown: Vec<_> = runs
        .iter()
        .map(|(name, run)| match run {
            Read::Own(run, summary) => ours(name, &run.header, &run.entries, summary),
            Read::Imported(run, summary) => PageRun::Imported(ImportedSet { name, header: &run.header, summary }),
        })
        .collect();
    let path = match (&arguments.output, &arguments.runs[..]) {
        (Some(path), _) => path.clone(),
        (None, [run]) => store::report_path(run),
        (None, _) => PathBuf::from("report.html"),
    };
    store::write_page(&path, arguments.output.is_some(), &html(&shown))?;
    output::write(format!("{}\n", path.display()).as_bytes())?;
    Ok(0)
}

fn read(path: &Path) -> Result<Read, store::StoreError> {
    if let Some(run) = store::read_imported(path)? {
        run.damage.iter().for_each(|damage| note(format_args!("punctual: {damage}")));
        let summary = analysis::summarise_imported(&run.measurements, &run.header.require);
        return Ok(Read::Imported(run, summary));
    }
    let run = store::read(path)?;
    run.damage.iter().for_each(|damage| note(format_args!("punctual: {damage}")));
    let summary = analysis::summarise(&run.header, &run.entries);
    Ok(Read::Own(Box::new(run), summary))
}

/// Writes the page of a run into its directory and says where. A page that cannot be written costs no measurement, so it is
/// said and no error.
pub(super) fn beside_run(dir: &Path, header: &Header, entries: &[Entry]) {
    let summary = analysis::summarise(header, entries);
    let path = store::report_path(dir);
    match store::write_page(&path, false, &html(&[ours(&dir.display().to_string(), header, entries, &summary)])) {
        Ok(()) => note(format_args!("report: {}", path.display())),
        Err(err) => note(format_args!("punctual: {err}")),
    }
}

fn ours<'a>(name: &'a str, header: &'a Header, entries: &'a [Entry], summary: &'a RunSummary) -> PageRun<'a> {
    PageRun::Own(OwnRun { name, header, entries, summary })
}
