//! `punctual report`: runs as one page for a browser.

use super::arguments::ReportArguments;
use super::{Outcome, note, output};
use crate::report::{Shown, html};
use crate::store;
use analysis::RunSummary;
use model::{Entry, Header};
use std::path::{Path, PathBuf};

pub(super) fn report(arguments: &ReportArguments) -> Outcome {
    let mut runs = Vec::new();
    for path in &arguments.runs {
        let run = store::read(path)?;
        run.damage.iter().for_each(|damage| note(format_args!("punctual: {damage}")));
        let summary = analysis::summarise(&run.header, &run.entries);
        runs.push((path.display().to_string(), run, summary));
    }
    let shown: Vec<_> =
        runs.iter().map(|(name, run, summary)| shown(name, &run.header, &run.entries, summary)).collect();
    let path = match (&arguments.output, &arguments.runs[..]) {
        (Some(path), _) => path.clone(),
        (None, [run]) => store::report_path(run),
        (None, _) => PathBuf::from("report.html"),
    };
    store::write_page(&path, &html(&shown))?;
    output::write(format!("{}\n", path.display()).as_bytes())?;
    Ok(0)
}

/// Writes the page of a run into its directory and says where. A page that cannot be written costs no measurement, so it is
/// said and no error.
pub(super) fn beside_run(dir: &Path, header: &Header, entries: &[Entry]) {
    let summary = analysis::summarise(header, entries);
    let path = store::report_path(dir);
    match store::write_page(&path, &html(&[shown(&dir.display().to_string(), header, entries, &summary)])) {
        Ok(()) => note(format_args!("report: {}", path.display())),
        Err(err) => note(format_args!("punctual: {err}")),
    }
}

fn shown<'a>(name: &'a str, header: &'a Header, entries: &'a [Entry], summary: &'a RunSummary) -> Shown<'a> {
    Shown { name, header, entries, summary }
}
