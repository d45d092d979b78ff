//! The history of a monitor: lines with checksums, appended and synced one by one, in two files of limited size.
//!
//! `monitor.jsonl` begins with a start line. At [`MOST_BYTES`] it becomes `monitor.1.jsonl`, and a new one begins; the
//! file that had that name before is gone. A line that was cut off stays as a damaged one.

use super::lines::{Line, Lines};
use super::reader::{first_of, intact};
use super::writer::ends_torn;
use super::{StoreError, foreign, line};
use punctual_host::file::{self, Replacement};
use punctual_model::{MONITOR_FORMAT, MonitorLine, MonitorStart, MonitorWindow};
use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file that grows.
const FILE: &str = "monitor.jsonl";
/// The one before.
const EARLIER: &str = "monitor.1.jsonl";
/// Size, bytes, at which a file is complete: some months of one CPU, in windows of five minutes.
const MOST_BYTES: u64 = 32 << 20;
/// Part at the end of a file, bytes, that is searched for the last window.
const TAIL_BYTES: u64 = 4 << 20;

/// The open history of a running monitor.
#[derive(Debug)]
pub struct MonitorHistory {
    file: File,
    path: PathBuf,
    start: MonitorStart,
    bytes: u64,
    most_bytes: u64,
    /// Whether a line was cut off that could not be removed.
    is_torn: bool,
}

/// The lines of a history that can be read.
#[derive(Debug, Default)]
pub struct MonitorLines {
    /// Every start, in order.
    pub starts: Vec<MonitorStart>,
    /// Every window, in order.
    pub windows: Vec<MonitorWindow>,
    /// One line about what cannot be read; `None` if all can.
    pub damage: Option<String>,
}

impl MonitorHistory {
    /// Opens the history in `dir`, which is made if needed, for a monitor with these settings. Also returns the last
    /// window, if there is one. Errors: when the file is not a history, is that of a newer program, belongs to a
    /// running monitor, or cannot be written. It is unchanged then.
    pub fn open(dir: &Path, start: MonitorStart) -> Result<(MonitorHistory, Option<MonitorWindow>), StoreError> {
        MonitorHistory::open_limited(dir, start, MOST_BYTES)
    }

    fn open_limited(
        dir: &Path,
        start: MonitorStart,
        most_bytes: u64,
    ) -> Result<(MonitorHistory, Option<MonitorWindow>), StoreError> {
        fs::create_dir_all(dir).map_err(StoreError::io("make", dir))?;
        let path = dir.join(FILE);
        if path.symlink_metadata().is_err() {
            let begun = begin(&path, &start).and_then(|(new, bytes)| Ok((named(new)?, bytes)));
            let (file, bytes) = begun.map_err(StoreError::io("make", &path))?;
            let last = last_window(&dir.join(EARLIER)).ok().flatten();
            return Ok((MonitorHistory { file, path, start, bytes, most_bytes, is_torn: false }, last));
        }
        let mut file = file::open_to_append(&path).map_err(StoreError::io("append to", &path))?;
        lock(&file, &path)?;
        let mut lines = Lines::new(file::open(&path).map_err(StoreError::io("read", &path))?);
        let first = lines.next().map_err(StoreError::io("read", &path))?;
        check_first(&first.unwrap_or_else(|| Ok(Vec::new())), &path)?;
        let last = last_window(&path).map_err(StoreError::io("read", &path))?;
        let is_torn = ends_torn(&mut file).map_err(StoreError::io("read", &path))?;
        let bytes = file.metadata().map_err(StoreError::io("read", &path))?.len();
        let mut history = MonitorHistory { file, path, start, bytes, most_bytes, is_torn };
        let start = history.start.clone();
        history.append(&MonitorLine::Start(start))?;
        Ok((history, last))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a window; it is on disk when this returns. Errors: on a write error, such as a full disk: the file is as
    /// it was, and later windows can be appended.
    pub fn window(&mut self, window: &MonitorWindow) -> Result<(), StoreError> {
        self.append(&MonitorLine::Window(window.clone()))
    }

    fn append(&mut self, entry: &MonitorLine) -> Result<(), StoreError> {
        let path = self.path.clone();
        let written = line(entry).and_then(|line| {
            if self.bytes >= self.most_bytes {
                self.turn_over()?;
            }
            self.write(&line)
        });
        written.map_err(StoreError::io("append to", &path))
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(line.len() + 1);
        if self.is_torn {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(line);
        match self.file.write_all(&bytes).and_then(|()| self.file.sync_data()) {
            Ok(()) => {
                self.is_torn = false;
                self.bytes += bytes.len() as u64;
                Ok(())
            }
            Err(err) => {
                // A part of the line may be there.
                self.is_torn |= self.file.set_len(self.bytes).is_err();
                Err(err)
            }
        }
    }

    /// Begins a new file and renames the complete one. Errors: the windows until then are in it; later, this can be
    /// tried again.
    fn turn_over(&mut self) -> io::Result<()> {
        // First, because the disk may be full.
        let (new, bytes) = begin(&self.path, &self.start)?;
        let inode = self.file.metadata()?.ino();
        // It has the other name already where a try has failed after that.
        if fs::metadata(&self.path).is_ok_and(|found| found.ino() == inode) {
            fs::rename(&self.path, self.path.with_file_name(EARLIER))?;
        }
        (self.file, self.bytes, self.is_torn) = (named(new)?, bytes, false);
        Ok(())
    }
}

/// Writes the start line of a file that is to have the name `path`.
fn begin(path: &Path, start: &MonitorStart) -> io::Result<(Replacement, u64)> {
    let first = line(&MonitorLine::Start(start.clone()))?;
    let mut new = Replacement::new(path, ".new")?;
    new.write_all(&first)?;
    Ok((new, first.len() as u64))
}

/// Gives the file its name.
fn named(new: Replacement) -> io::Result<File> {
    let file = new.commit_open()?;
    let _ = file.try_lock();
    Ok(file)
}

fn lock(file: &File, path: &Path) -> Result<(), StoreError> {
    file.try_lock().map_err(|err| {
        let source = match err {
            TryLockError::WouldBlock => io::Error::other("another monitor writes to it; name another --dir"),
            TryLockError::Error(err) => err,
        };
        StoreError::io("append to", path)(source)
    })
}

/// Checks that a file is a history of this or an earlier version.
fn check_first(first: &Line, path: &Path) -> Result<(), StoreError> {
    let value = first_of(first, path)?;
    let reason = "expected the start of a monitor".to_owned();
    let format = value["format"].as_u64().filter(|_| value["line"] == "start");
    let format = format.ok_or(StoreError::Header { path: path.to_owned(), reason })?;
    if format > u64::from(MONITOR_FORMAT) {
        return Err(StoreError::Format { path: path.to_owned(), format, known: MONITOR_FORMAT });
    }
    Ok(())
}

/// The content of one line; `None` for an empty one, which follows a line that was cut off.
fn entry(line: &Line) -> Result<Option<MonitorLine>, String> {
    let text = intact(line)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    foreign::from_str(text, punctual_model::json::monitor_line).map(Some).map_err(|err| err.to_string())
}

/// The last window at the end of a file.
fn last_window(path: &Path) -> io::Result<Option<MonitorWindow>> {
    let mut file = file::open(path)?;
    let bytes = file.metadata()?.len();
    file.seek(SeekFrom::Start(bytes.saturating_sub(TAIL_BYTES)))?;
    let (mut lines, mut last) = (Lines::new(file), None);
    while let Some(line) = lines.next()? {
        // The first one may be the end of a line.
        if let Ok(Some(MonitorLine::Window(window))) = entry(&line) {
            last = Some(window);
        }
    }
    Ok(last)
}

/// Reads the history in `dir`: all that can be read of it. Errors: when there is none, or no line of it can be read, or
/// it is that of a newer program.
pub fn read_monitor(dir: &Path) -> Result<MonitorLines, StoreError> {
    let mut read = MonitorLines::default();
    let (mut damaged, mut first_damage, mut unknown) = (0, None, None);
    let mut paths = vec![dir.join(EARLIER), dir.join(FILE)];
    paths.retain(|path| path.symlink_metadata().is_ok());
    if paths.is_empty() {
        paths.push(dir.join(FILE));
    }
    for path in paths {
        let mut lines = Lines::new(file::open(&path).map_err(StoreError::io("read", &path))?);
        let mut number = 0_usize;
        while let Some(line) = lines.next().map_err(StoreError::io("read", &path))? {
            number += 1;
            let first = if number == 1 { check_first(&line, &path) } else { Ok(()) };
            match first {
                // The other lines, and those of the other file, may be intact.
                Err(err @ StoreError::Header { .. }) => unknown = unknown.or(Some(err)),
                checked => checked?,
            }
            match entry(&line) {
                Ok(Some(MonitorLine::Start(start))) => read.starts.push(start),
                Ok(Some(MonitorLine::Window(window))) => read.windows.push(window),
                Ok(None) => {}
                Err(reason) => {
                    damaged += 1;
                    first_damage.get_or_insert_with(|| format!("{}:{number}: {reason}", path.display()));
                }
            }
        }
    }
    if let Some(err) = unknown.filter(|_| read.starts.is_empty() && read.windows.is_empty()) {
        return Err(err);
    }
    read.damage = first_damage.map(|first| match damaged {
        1 => format!("{first}; line ignored"),
        n => format!("{first}; this and {} more lines ignored", n - 1),
    });
    Ok(read)
}

#[cfg(test)]
mod tests;
