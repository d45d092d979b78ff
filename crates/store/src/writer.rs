//! Writer of runs: a crash at any instant costs at most the current measurement.

use super::reader::{Hosts, read_sharing};
use super::{FILE, StoreError, line};
use punctual_host::file::{self, Replacement};
use punctual_model::{Entry, Failed, Header, Planned};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Suffix of the run file until its header is complete.
pub(super) const UNFINISHED: &str = ".new";

/// Appends measurements to a run.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    dir: PathBuf,
    kept: usize,
}

/// Creates a new run directory with its header. Errors: if `dir` is not empty, or cannot be written.
pub fn create(dir: &Path, header: &Header) -> Result<Writer, StoreError> {
    if dir.join(FILE).symlink_metadata().is_ok() {
        return Err(StoreError::Exists(dir.to_owned()));
    }
    if dir.exists() {
        let unfinished = file::with_suffix(Path::new(FILE), UNFINISHED);
        let is_ours = |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|entry| *entry.file_name() == *unfinished);
        let is_empty = dir.is_dir() && fs::read_dir(dir).map_err(StoreError::io("read", dir))?.all(is_ours);
        if !is_empty {
            return Err(StoreError::NotARun(dir.to_owned()));
        }
    }
    fs::create_dir_all(dir).map_err(StoreError::io("make", dir))?;
    punctual_sys::fail::point("run-directory-made");
    // The file is renamed when its header is complete: an existing run can always be resumed.
    let path = dir.join(FILE);
    let written = line(header).and_then(|header| {
        let mut new = Replacement::new(&path, UNFINISHED)?;
        punctual_sys::fail::write_all("header-half", &mut new, &header)?;
        punctual_sys::fail::point("header-unnamed");
        new.commit_open()
    });
    let file = written.map_err(StoreError::io("make", &path))?;
    // The entry of the directory itself is synced, too.
    file::sync_directory_of(dir).map_err(StoreError::io("sync", dir))?;
    punctual_sys::fail::point("run-made");
    mark_as_written(&file);
    Ok(Writer { file, path, dir: dir.to_owned(), kept: 0 })
}

/// Writes a page atomically: a reader sees either the previous or the new page.
///
/// A page that `is_named` by the user may be written to a pipe or a device; one in a run directory replaces the
/// existing file, which may come from another user.
pub fn write_page(path: &Path, is_named: bool, page: &str) -> Result<(), StoreError> {
    let write = if is_named { file::write_named } else { file::replace };
    write(path, page.as_bytes()).map_err(StoreError::io("write", path))
}

/// Opens a run to append to it; `kept` is the number of existing measurements.
pub fn append(dir: &Path, kept: usize) -> Result<Writer, StoreError> {
    let path = super::file_of(dir);
    let mut file = file::open_to_append(&path).map_err(StoreError::io("append to", &path))?;
    mark_as_written(&file);
    let torn = ends_torn(&mut file).map_err(StoreError::io("read", &path))?;
    let mut writer = Writer { file, path, dir: dir.to_owned(), kept };
    if torn {
        // The truncated line is terminated and stays as a damaged line; nothing is rewritten.
        writer.write(b"\n")?;
    }
    Ok(writer)
}

/// Whether the last line of a file has no end.
pub(super) fn ends_torn(file: &mut File) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Beginning of the names of a measurement's files.
pub(super) fn stem(planned: &Planned) -> String {
    format!("b{:02}-c{:02}", planned.block, planned.cell_index)
}

/// Name of the file of a measurement's samples.
pub(super) fn sample_name(planned: &Planned) -> String {
    format!("{}.parquet", stem(planned))
}

/// Marks the file of a run as being written, so that no merge replaces it. Some network file systems have no locks.
fn mark_as_written(file: &File) {
    let _ = file.try_lock_shared();
}

impl Writer {
    /// Writes the list of failed measurements, replacing the previous list.
    pub fn failed(&self, failed: &[Failed]) -> Result<(), StoreError> {
        super::failed::keep(&self.dir, failed)
    }

    /// Removes a run without measurements. Files of others in its directory are left.
    pub fn discard(self) {
        if self.kept == 0 {
            let _ = fs::remove_file(&self.path);
            let _ = fs::remove_dir(&self.dir);
        }
    }

    /// The measurements of the run so far, read from its file; their machines are [alike](Hosts::alike).
    pub fn read_back(&self) -> Result<Vec<Entry>, StoreError> {
        Ok(read_sharing(&self.path, Hosts::alike)?.entries)
    }

    /// The directory of the run.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The number of its measurements so far.
    pub(super) fn kept(&self) -> usize {
        self.kept
    }

    /// Writes one measurement of `all` that the run is to have: its captures to files, and the rest to the run. It is
    /// synced to disk when this returns. Errors: on a write error, such as a full disk; earlier measurements are kept.
    pub fn entry_of(&mut self, entry: &mut Entry, all: usize) -> Result<(), StoreError> {
        self.captures(entry, all)?;
        self.entry(entry)
    }

    /// Appends one measurement without captures; it is synced to disk when this returns. Errors: on a write error, such
    /// as a full disk; earlier measurements are kept.
    pub fn entry(&mut self, entry: &Entry) -> Result<(), StoreError> {
        let line = line(entry).map_err(|err| self.error(err))?;
        self.write(&line)?;
        punctual_sys::fail::point("record-kept");
        self.kept += 1;
        Ok(())
    }

    /// Path for the samples of a measurement. An existing file belongs to a measurement that was never recorded, and is
    /// removed. Errors: if the directory cannot be created.
    pub fn samples(&self, planned: &Planned) -> Result<PathBuf, StoreError> {
        let dir = super::own_directory(super::samples_dir(&self.dir))?;
        let path = dir.join(sample_name(planned));
        super::discard_samples(&path);
        Ok(path)
    }

    /// Appends with one `write`; on a full disk the line is truncated, which the reader detects.
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let written =
            punctual_sys::fail::write_all("record-half", &mut self.file, bytes).and_then(|()| self.file.sync_data());
        written.map_err(|source| self.error(source))
    }

    fn error(&self, source: io::Error) -> StoreError {
        StoreError::Append { path: self.path.clone(), dir: self.dir.clone(), source, kept: self.kept }
    }
}
