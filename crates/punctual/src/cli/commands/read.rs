//! Reading and summary of a directory: a run of this program, or imported measurements.

use super::cells;
use crate::cli::terminal::{ERROR, RUNS, note};
use punctual_analysis::{ImportedSummary, RunSummary};
use punctual_report::{ImportedSet, OwnRun, Results};
use punctual_store::{ImportedRun, Run};
use std::error::Error;
use std::path::{Path, PathBuf};

/// The run that a command reads: the named one, or the latest below `runs`, which is named on stderr. Errors: if none
/// is named and there is none.
pub(super) fn named_or_latest(named: Option<&Path>) -> Result<PathBuf, Box<dyn Error>> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let latest = if Path::new(RUNS).is_dir() { punctual_store::latest(Path::new(RUNS))? } else { None };
    let latest = latest.ok_or("no run below runs/: name the directory of a run, or measure first: punctual run")?;
    note(format_args!("latest run: {}", latest.display()));
    Ok(latest)
}

/// Data of a directory and their summary.
pub(super) enum Read {
    Own(Box<Run>, RunSummary),
    Imported(ImportedRun, ImportedSummary),
}

impl Read {
    /// Reads the named directory or file.
    pub(super) fn open(path: &Path) -> Result<Read, punctual_store::StoreError> {
        if let Some(run) = punctual_store::read_imported(path)? {
            return Ok(Read::imported(run));
        }
        Ok(Read::own(punctual_store::read(path)?))
    }

    /// Reads the directory, or file, that was named; only the cell that `name` means, if given. Errors: if it cannot be
    /// read, or no cell or several cells match.
    pub(super) fn open_cell(path: &Path, name: Option<&str>) -> Result<Read, Box<dyn Error>> {
        let read = Read::open(path)?;
        let Some(name) = name else { return Ok(read) };
        Ok(match read {
            Read::Own(mut run, _) => {
                run.restrict(cells::named(&run, name)?.index);
                Read::own(*run)
            }
            Read::Imported(mut run, summary) => {
                let names: Vec<_> = summary.cells.iter().map(|cell| cell.name.as_str()).collect();
                let index = cells::position(&names, name)?;
                run.measurements = vec![run.measurements.swap_remove(index)];
                Read::imported(run)
            }
        })
    }

    fn own(run: Run) -> Read {
        let summary = punctual_analysis::summarise(&run.header, &run.entries);
        Read::Own(Box::new(run), summary)
    }

    pub(super) fn imported(run: ImportedRun) -> Read {
        let summary = punctual_analysis::summarise_imported(&run.measurements, &run.header.require);
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

    /// The damaged lines.
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

    /// The exit status of a command that judges: that of the verdict, or an error if a part of the run is unreadable.
    pub(super) fn status(&self) -> u8 {
        if self.is_whole() { self.results("").verdict().exit_status() } else { ERROR }
    }

    /// Whether every measurement of the run is readable.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            // A damaged line is harmless if its measurement was repeated.
            Read::Own(run, _) => run.damage.is_empty() || run.entries.len() >= run.header.n_measurements(),
            Read::Imported(run, _) => run.damage.is_empty(),
        }
    }
}
