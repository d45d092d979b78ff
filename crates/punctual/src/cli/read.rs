//! What a directory holds, read and summarised: a run of this program, or imported measurements.

use super::{ERROR, note};
use analysis::{ImportedSummary, RunSummary};
use report::{ImportedSet, OwnRun, Results};
use std::path::Path;
use store::{ImportedRun, Run};

/// What was read, and what it says.
pub(super) enum Read {
    Own(Box<Run>, RunSummary),
    Imported(ImportedRun, ImportedSummary),
}

impl Read {
    /// Reads the directory, or file, that was named.
    pub(super) fn open(path: &Path) -> Result<Read, store::StoreError> {
        if let Some(run) = store::read_imported(path)? {
            return Ok(Read::imported(run));
        }
        let run = store::read(path)?;
        let summary = analysis::summarise(&run.header, &run.entries);
        Ok(Read::Own(Box::new(run), summary))
    }

    pub(super) fn imported(run: ImportedRun) -> Read {
        let summary = analysis::summarise_imported(&run.measurements, &run.header.require);
        Read::Imported(run, summary)
    }

    pub(super) fn results<'a>(&'a self, name: &'a str) -> Results<'a> {
        match self {
            Read::Own(run, summary) => {
                Results::Own(OwnRun { name, header: &run.header, entries: &run.entries, summary })
            }
            Read::Imported(run, summary) => Results::Imported(ImportedSet { name, header: &run.header, summary }),
        }
    }

    /// Lines that cannot be read.
    pub(super) fn damage(&self) -> Vec<String> {
        let damage = match self {
            Read::Own(run, _) => &run.damage,
            Read::Imported(run, _) => &run.damage,
        };
        damage.iter().map(ToString::to_string).collect()
    }

    pub(super) fn note_damage(&self) {
        self.damage().iter().for_each(|damage| note(format_args!("punctual: {damage}")));
    }

    /// The exit status: that of the verdict, unless some of what it should be about cannot be read.
    pub(super) fn status(&self) -> u8 {
        let is_whole = match self {
            // A damaged line whose measurement was made again has cost nothing.
            Read::Own(run, _) => run.damage.is_empty() || run.entries.len() >= run.header.n_measurements(),
            Read::Imported(run, _) => run.damage.is_empty(),
        };
        if is_whole { self.results("").verdict().exit_status() } else { ERROR }
    }
}
