//! Run directories and files of samples: the only place that knows how results are kept in files.
//!
//! `run.jsonl` holds a header line and then one line for each measurement. Lines are only ever appended, each with one
//! `write` and on disk before the next measurement starts; a line that a crash cut off, or whose checksum does not match,
//! is passed over on reading and named.
//! `samples/` holds the raw samples of each measurement, if they were asked for.
#![forbid(unsafe_code)]

mod failed;
mod foreign;
mod imported;
mod lines;
mod list;
mod reader;
mod samples;
mod seal;
mod writer;

pub use imported::{ImportedRun, keep as keep_imported, read as read_imported};
pub use list::below;
pub use reader::{Hosts, Run, read};
pub use samples::{SampleWriter, discard as discard_samples};
pub use writer::{Writer, append, create, write_page};

use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// The file of a run directory that holds the run.
const FILE: &str = "run.jsonl";

/// The file that holds imported measurements.
const IMPORTED_FILE: &str = "imported.jsonl";

/// The file of the run that was named by its directory, or by the file itself.
pub fn file_of(named: &Path) -> PathBuf {
    if named.is_file() { named.to_owned() } else { named.join(FILE) }
}

/// The file of a directory that holds imported measurements; `None` when it holds none.
fn imported_file_in(named: &Path) -> Option<PathBuf> {
    let is_named = named.file_name().is_some_and(|name| name == IMPORTED_FILE) && named.is_file();
    let path = if is_named { named.to_owned() } else { named.join(IMPORTED_FILE) };
    path.is_file().then_some(path)
}

/// The directory of a run's samples; it need not be there. The run was named by its directory, or by its file.
pub fn samples_dir(named: &Path) -> PathBuf {
    file_of(named).with_file_name("samples")
}

/// Where the page of a run, or of imported measurements, is kept; it need not be there. The run was named by its directory, or by its file.
pub fn report_path(named: &Path) -> PathBuf {
    let file = imported_file_in(named).unwrap_or_else(|| file_of(named));
    file.with_file_name("report.html")
}

/// A plain struct as one line of JSON, with a checksum.
fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    Ok(seal::sealed(serde_json::to_vec(value)?))
}

/// Why a run cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or directory cannot be used.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// No run at all.
    #[error("{path} is no run: it has no {FILE}; name a directory that `punctual run` made", path = .0.display())]
    NoRun(PathBuf),
    /// Measurements of another tool, where only our own will do.
    #[error("{path} holds measurements of other tools, without the blocks that this needs; see them by: punctual show {path}", path = .0.display())]
    Imported(PathBuf),
    /// Something else is there already.
    #[error("{path} exists and is not a run; name a new directory with --out", path = .0.display())]
    NotARun(PathBuf),
    /// A run is there already.
    #[error("{path} holds a run already; go on with it by --resume, or name a new directory", path = .0.display())]
    Exists(PathBuf),
    /// A file of samples is there already.
    #[error("{path} exists; name another file with --samples, or remove it", path = .0.display())]
    SamplesExist(PathBuf),
    /// The header is missing or damaged.
    #[error("{path}:1: the header is damaged ({reason}); without it the run cannot be read", path = path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Written by a later version.
    #[error("{path}:1: format {format} is newer than this program reads ({known}); use a newer punctual", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u64,
        /// The newest format we read.
        known: u32,
    },
    /// No room, or another fault, while recording.
    #[error("cannot record in {path}: {source}; {kept} whole measurements are kept, go on with: punctual run --resume --out {dir}", path = path.display(), dir = dir.display())]
    Append {
        /// The file.
        path: PathBuf,
        /// The run directory.
        dir: PathBuf,
        /// The kernel's reason.
        source: io::Error,
        /// Measurements recorded before.
        kept: usize,
    },
}

impl StoreError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.to_owned();
        move |source| StoreError::Io { action, path, source }
    }
}

#[cfg(test)]
mod tests;
