//! The files of a run directory, and the errors of reading and writing them.

use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// File of the run in a run directory.
pub(super) const FILE: &str = "run.jsonl";

/// File of imported measurements.
pub(super) const IMPORTED_FILE: &str = "imported.jsonl";

/// The run file for a run named by its directory or by the file itself.
pub fn file_of(named: &Path) -> PathBuf {
    if named.is_file() { named.to_owned() } else { named.join(FILE) }
}

/// Whether the path names a run or imported measurements: their directory or their file.
pub fn is_run(named: &Path) -> bool {
    file_of(named).is_file() || imported_file_in(named).is_some()
}

/// The file of imported measurements in a directory; `None` when there is none.
pub(super) fn imported_file_in(named: &Path) -> Option<PathBuf> {
    let is_named = named.file_name().is_some_and(|name| name == IMPORTED_FILE) && named.is_file();
    let path = if is_named { named.to_owned() } else { named.join(IMPORTED_FILE) };
    path.is_file().then_some(path)
}

/// The samples directory of a run, which may not exist. `named` is the run's directory or its file.
pub fn samples_dir(named: &Path) -> PathBuf {
    file_of(named).with_file_name("samples")
}

/// Path of the HTML page of a run or of imported measurements, which may not exist. `named` is the directory or the
/// file.
pub fn report_path(named: &Path) -> PathBuf {
    let file = imported_file_in(named).unwrap_or_else(|| file_of(named));
    file.with_file_name("report.html")
}

/// The directory, which is created if needed, unless it is a link: that may lead to a directory that another user has
/// chosen.
pub(super) fn own_directory(dir: PathBuf) -> Result<PathBuf, StoreError> {
    fs::create_dir_all(&dir).map_err(StoreError::io("make", &dir))?;
    if fs::symlink_metadata(&dir).is_ok_and(|found| found.is_dir()) {
        return Ok(dir);
    }
    let source = io::Error::other("expected a directory, found a link; remove it");
    Err(StoreError::Io { action: "write to", path: dir, source })
}

/// A struct as one line of JSON with a checksum.
pub(super) fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    Ok(super::seal::sealed(serde_json::to_vec(value)?))
}

/// Reason why a run cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or directory cannot be used.
    #[error("cannot {action} {path}: {reason}", path = path.display(), reason = reason(action, source))]
    Io {
        /// The failed operation.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The directory does not contain a run.
    #[error("invalid run {path}: it has no {FILE}; name a directory written by `punctual run`", path = .0.display())]
    NoRun(PathBuf),
    /// Imported measurements in place of a run.
    #[error("unsupported: {path} holds measurements of other tools, without blocks; show them with: punctual show {path}", path = .0.display())]
    Imported(PathBuf),
    /// The path exists and is not a run.
    #[error("cannot create {path}: it exists and is not a run; name a new directory with --out", path = .0.display())]
    NotARun(PathBuf),
    /// A run exists already.
    #[error("cannot create {path}: it holds a run; continue it with --resume, or name a new directory", path = .0.display())]
    Exists(PathBuf),
    /// A sample file exists already.
    #[error("cannot create {path}: it exists; name another file with --samples, or remove it", path = .0.display())]
    SamplesExist(PathBuf),
    /// This program cannot write samples.
    #[error("{0}")]
    LeftOut(String),
    /// The header is missing or damaged.
    #[error("{path}:1: invalid header: {reason}; the run cannot be read without it", path = path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// Format of a later version of this program.
    #[error("{path}:1: unsupported: format {format} is newer than this program ({known}); use a newer punctual", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u64,
        /// The newest known format.
        known: u32,
    },
    /// A write error while recording, such as a full disk.
    #[error("cannot write {path}: {source}; {kept} complete measurements are kept, continue with: punctual run --resume --out {dir}", path = path.display(), dir = dir.display())]
    Append {
        /// The file.
        path: PathBuf,
        /// The run directory.
        dir: PathBuf,
        /// The kernel's reason.
        source: io::Error,
        /// Number of measurements recorded before.
        kept: usize,
    },
}

/// The error of the kernel; of what is not there to be read, what to do.
fn reason(action: &str, source: &io::Error) -> String {
    match (action, source.kind()) {
        ("read", io::ErrorKind::NotFound) => "it does not exist; measure first, or name another directory".to_owned(),
        _ => source.to_string(),
    }
}

impl StoreError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.to_owned();
        move |source| StoreError::Io { action, path, source }
    }
}
