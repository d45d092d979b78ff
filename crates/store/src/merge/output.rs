//! The directory of the merged run.

use super::super::captures::{captures_dir, names_in};
use super::super::writer::{UNFINISHED, sample_name, stem};
use super::super::{FILE, StoreError, films, line, own_directory, samples_dir};
use super::part::{Part, Place};
use super::{Header, MergeError};
use punctual_host::file::{self, Replacement};
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Names of this program in a directory of an unfinished merge.
const OURS: [&str; 6] = [FILE, "failed.jsonl", films::FILE, "samples", "captures", "report.html"];

/// The directory, locked against other merges. Dropping it removes a new one that is still empty.
#[derive(Debug)]
pub(super) struct Output {
    dir: PathBuf,
    is_new: bool,
    /// Held, not used.
    _lock: File,
}

impl Output {
    /// Opens or creates the directory; also returns the run that is there. Errors: if it holds something else, a shard,
    /// or a run that is being written.
    pub(super) fn open(dir: &Path) -> Result<(Output, Option<Part>), MergeError> {
        let refused = |reason: &str| MergeError::Out { path: dir.to_owned(), reason: reason.to_owned() };
        if dir.symlink_metadata().is_ok() && !dir.is_dir() {
            return Err(refused("it is not a directory; name a new one"));
        }
        let is_new = !dir.is_dir();
        fs::create_dir_all(dir).map_err(StoreError::io("make", dir))?;
        let lock = File::open(dir).map_err(StoreError::io("read", dir))?;
        if is_locked(&lock) {
            return Err(refused("another merge writes it; wait for its end"));
        }
        let output = Output { dir: dir.to_owned(), is_new, _lock: lock };
        let path = dir.join(FILE);
        if path.symlink_metadata().is_err() {
            if !is_new && !is_left_over(dir) {
                return Err(refused("it exists and is not a run; name a new directory"));
            }
            return Ok((output, None));
        }
        let Some(before) = Part::open(dir)? else { return Ok((output, None)) };
        match before.header.shard {
            Some(shard) => Err(refused(&format!("it is shard {shard}; name another directory"))),
            None if is_locked(before.file()) => Err(refused("a measurement writes it; wait for its end")),
            None => Ok((output, Some(before))),
        }
    }

    /// Writes the run of these lines of `parts`, and copies their samples and captures. Returns notes about missing
    /// samples.
    pub(super) fn write(
        &self,
        header: &Header,
        parts: &[Part],
        lines: &[(usize, Place)],
        has_before: bool,
    ) -> Result<Vec<String>, MergeError> {
        let mut notes = Vec::new();
        let new = lines.iter().filter(|(index, _)| !has_before || *index > 0);
        for (part, place) in new.filter_map(|(index, place)| Some((parts.get(*index)?, place))) {
            if header.samples {
                notes.extend(self.copy_samples(part, place)?);
            }
            self.copy_captures(part, place)?;
        }
        let path = self.dir.join(FILE);
        let written = |err: io::Error| MergeError::from(StoreError::io("write", &path)(err));
        let mut new = BufWriter::with_capacity(1 << 20, Replacement::new(&path, UNFINISHED).map_err(written)?);
        new.write_all(&line(header).map_err(written)?).map_err(written)?;
        for (part, place) in lines.iter().filter_map(|(index, place)| Some((parts.get(*index)?, place))) {
            new.write_all(&part.line(place)?).map_err(written)?;
        }
        new.flush().map_err(written)?;
        new.get_mut().commit().map_err(written)?;
        file::sync_directory_of(&self.dir).map_err(written)?;
        Ok(notes)
    }

    /// Copies the samples of a measurement; returns a note if the part has none.
    fn copy_samples(&self, part: &Part, place: &Place) -> Result<Option<String>, MergeError> {
        let name = sample_name(&place.planned);
        let (from, to) = (samples_dir(&part.dir), samples_dir(&self.dir));
        let is_there = copy(&from, &to, &name)?;
        Ok((!is_there).then(|| format!("missing samples: {}", from.join(name).display())))
    }

    /// Copies the captures of a measurement, if it has any.
    fn copy_captures(&self, part: &Part, place: &Place) -> Result<(), MergeError> {
        let begin = format!("{}-", stem(&place.planned));
        let (from, to) = (captures_dir(&part.dir), captures_dir(&self.dir));
        for name in names_in(&from).iter().filter(|name| name.starts_with(&begin)) {
            copy(&from, &to, name)?;
        }
        Ok(())
    }
}

/// Copies a file to another directory; returns whether it is there.
fn copy(from: &Path, to: &Path, name: &str) -> Result<bool, MergeError> {
    let path = from.join(name);
    let is_link = fs::symlink_metadata(from).is_ok_and(|found| found.is_symlink());
    let opened =
        if is_link { Err(io::Error::other("its directory is a link")) } else { file::open_without_link(&path) };
    let mut source = match opened {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(false),
        source => source.map_err(StoreError::io("read", &path))?,
    };
    let to = own_directory(to.to_owned())?.join(name);
    let written = StoreError::io("write", &to);
    let copied = Replacement::new(&to, UNFINISHED).and_then(|mut copy| {
        io::copy(&mut source, &mut copy)?;
        copy.commit()
    });
    copied.map_err(written)?;
    Ok(true)
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.is_new {
            // A directory with a run is not removed, rmdir(2).
            let _ = fs::remove_dir(&self.dir);
        }
    }
}

/// Whether another process has locked the file. Some network file systems have no locks.
fn is_locked(file: &File) -> bool {
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Whether a killed merge has left the directory: it holds nothing of others.
fn is_left_over(dir: &Path) -> bool {
    let is_ours = |name: &str| OURS.contains(&name.strip_suffix(UNFINISHED).unwrap_or(name));
    let ours = |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|one| one.file_name().to_str().is_some_and(is_ours));
    fs::read_dir(dir).is_ok_and(|mut entries| entries.all(ours))
}
