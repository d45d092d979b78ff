//! Writing a run, so that a crash at any instant costs at most the measurement under way.

use super::{FILE, StoreError};
use model::{Entry, Header, Planned};
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What a run is called until its header is whole.
const UNFINISHED: &str = "run.jsonl.new";

/// Appends to a run.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    path: PathBuf,
    dir: PathBuf,
    kept: usize,
}

/// Makes a new run directory with its header.
///
/// # Errors
/// When `dir` holds something already, or cannot be written.
pub(crate) fn create(dir: &Path, header: &Header) -> Result<Writer, StoreError> {
    if dir.join(FILE).exists() {
        return Err(StoreError::Exists(dir.to_owned()));
    }
    if dir.exists() {
        let is_ours = |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name() == UNFINISHED);
        let is_empty = dir.is_dir() && fs::read_dir(dir).map_err(StoreError::io("read", dir))?.all(is_ours);
        if !is_empty {
            return Err(StoreError::NotARun(dir.to_owned()));
        }
    }
    fs::create_dir_all(dir).map_err(StoreError::io("make", dir))?;
    // Under its name only once its header is whole: a run that exists can be gone on with.
    let (path, unfinished) = (dir.join(FILE), dir.join(UNFINISHED));
    let written = write_header(&unfinished, header).and_then(|file| fs::rename(&unfinished, &path).map(|()| file));
    let file = written.map_err(|source| {
        let _ = fs::remove_file(&unfinished);
        StoreError::Io { action: "make", path: path.clone(), source }
    })?;
    // The new names are on disk, too.
    for directory in [Some(dir), dir.parent().filter(|parent| !parent.as_os_str().is_empty())].into_iter().flatten() {
        File::open(directory).and_then(|dir| dir.sync_all()).map_err(StoreError::io("sync", directory))?;
    }
    Ok(Writer { file, path, dir: dir.to_owned(), kept: 0 })
}

fn write_header(path: &Path, header: &Header) -> io::Result<File> {
    let mut file = OpenOptions::new().append(true).create(true).truncate(false).open(path)?;
    file.set_len(0)?;
    file.write_all(&line(header)?)?;
    file.sync_data()?;
    Ok(file)
}

/// Writes a page under its name once it is whole: whoever looks at the file meanwhile sees the one before.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write_page(path: &Path, page: &str) -> Result<(), StoreError> {
    // A pipe or a device is written to as it is.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return fs::write(path, page).map_err(StoreError::io("write", path));
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    let written = fs::write(&unfinished, page).and_then(|()| fs::rename(&unfinished, path));
    written.map_err(|source| {
        let _ = fs::remove_file(&unfinished);
        StoreError::Io { action: "write", path: path.to_owned(), source }
    })
}

/// A value as one line of JSON.
fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// Opens a run to append to it; `kept` measurements are there already.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn append(dir: &Path, kept: usize) -> Result<Writer, StoreError> {
    let path = super::file_of(dir);
    let mut file =
        OpenOptions::new().read(true).append(true).open(&path).map_err(StoreError::io("append to", &path))?;
    let torn = ends_torn(&mut file).map_err(StoreError::io("read", &path))?;
    let mut writer = Writer { file, path, dir: dir.to_owned(), kept };
    if torn {
        // Nothing is rewritten: the line that was cut off is closed, and stays as a damaged line.
        writer.write(b"\n")?;
    }
    Ok(writer)
}

fn ends_torn(file: &mut File) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

impl Writer {
    /// Records one measurement; it is on disk when this returns.
    ///
    /// # Errors
    /// When there is no room or the disk fails: the measurements before it are kept.
    pub(crate) fn entry(&mut self, entry: &Entry) -> Result<(), StoreError> {
        let line = line(entry).map_err(|err| self.error(err))?;
        self.write(&line)?;
        self.kept += 1;
        Ok(())
    }

    /// Where the samples of a measurement are to be kept. A file that is there already belongs to a measurement that was
    /// never recorded; it goes.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub(crate) fn samples(&self, planned: &Planned) -> Result<PathBuf, StoreError> {
        let dir = super::samples_dir(&self.dir);
        fs::create_dir_all(&dir).map_err(StoreError::io("make", &dir))?;
        let path = dir.join(format!("b{:02}-c{:02}.parquet", planned.block, planned.cell_index));
        super::discard_samples(&path);
        Ok(path)
    }

    /// One `write`: appended whole, or, when the disk is full, cut off where a reader sees it.
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let written = self.file.write_all(bytes).and_then(|()| self.file.sync_data());
        written.map_err(|source| self.error(source))
    }

    fn error(&self, source: io::Error) -> StoreError {
        StoreError::Append { path: self.path.clone(), dir: self.dir.clone(), source, kept: self.kept }
    }
}
