//! A part of a run: a shard, or an earlier merge.

use super::super::lines::Lines;
use super::super::reader::{self, Damage};
use super::super::seal;
use super::super::{FILE, StoreError, failed, file_of};
use super::MergeError;
use super::belonging::Guest;
use punctual_analysis::on_all_cpus;
use punctual_host::file;
use punctual_model::{Header, Planned};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// An opened run with its header.
#[derive(Debug)]
pub struct Part {
    pub(super) dir: PathBuf,
    pub(super) header: Header,
    path: PathBuf,
    file: File,
}

/// The line of a measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) planned: Planned,
    /// Hash of the line without its line feed.
    pub(super) hash: u64,
    offset: u64,
    length: usize,
}

/// The measurements of a part.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Lines, and the guests that made their measurements.
    pub(super) places: Vec<(Place, Option<Guest>)>,
    pub(super) damage: Vec<Damage>,
}

impl Part {
    /// Opens the run in `dir`, following no link in it; `None` if its process was killed before it wrote the header.
    /// Errors: if the directory lacks a run, or its header cannot be read.
    pub fn open(dir: &Path) -> Result<Option<Part>, StoreError> {
        let path = file_of(dir);
        if path.symlink_metadata().is_err_and(|err| err.kind() == io::ErrorKind::NotFound) {
            let unfinished = file::with_suffix(Path::new(FILE), super::super::writer::UNFINISHED);
            let is_unfinished =
                |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|one| *one.file_name() == *unfinished);
            return match fs::read_dir(dir).is_ok_and(|mut entries| entries.all(is_unfinished)) {
                true => Ok(None),
                false => Err(StoreError::NoRun(dir.to_owned())),
            };
        }
        let file = file::open_without_link(&path).map_err(StoreError::io("read", &path))?;
        let first = Lines::new(again(&file, &path)?).next().map_err(StoreError::io("read", &path))?;
        let mut header = reader::header(first, &path)?;
        header.failed = failed::of_run(path.parent().unwrap_or(dir), &header);
        let dir = if dir.is_file() { path.parent().unwrap_or(dir) } else { dir }.to_owned();
        Ok(Some(Part { dir, header, path, file }))
    }

    /// The opened file, to check its owner.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The header as it is in the file.
    pub(super) fn header_without_failures(&self) -> Header {
        Header { failed: Vec::new(), ..self.header.clone() }
    }

    /// Checks every line; `order` holds the measurements of the whole run.
    pub(super) fn scan(&mut self, order: &[Planned]) -> Result<Scan, MergeError> {
        const BATCH_BYTES: u64 = 2 << 20;
        let read = |err| StoreError::io("read", &self.path)(err);
        let mut lines = Lines::new(again(&self.file, &self.path)?);
        lines.next().map_err(read)?;
        let (mut scan, mut seen, mut number) = (Scan::default(), HashSet::new(), 1);
        loop {
            let (mut batch, start) = (Vec::new(), lines.position());
            while lines.position() - start < BATCH_BYTES {
                let offset = lines.position();
                let Some(line) = lines.next().map_err(read)? else { break };
                batch.push((offset, line));
            }
            if batch.is_empty() {
                return Ok(scan);
            }
            let checked = on_all_cpus(&batch, |(offset, line)| {
                let Some(entry) = reader::entry(line, &self.header)? else { return Ok(None) };
                if !is_in(order, &entry.planned, self.header.cells.len()) {
                    return Err("the order of this run has this measurement elsewhere".to_owned());
                }
                let text = line.as_ref().map_or(&[][..], |line| line.trim_ascii_end());
                let (hash, length) = (seal::hash(text), text.len());
                let place = Place { planned: entry.planned, hash, offset: *offset, length };
                Ok(Some((place, Guest::of(entry.record))))
            });
            for line in checked {
                number += 1;
                match line {
                    Ok(Some((place, _))) if !seen.insert(place.planned) => {
                        scan.damage.push(Damage::new(&self.path, number, "duplicate measurement".to_owned()));
                    }
                    Ok(line) => scan.places.extend(line),
                    Err(reason) => scan.damage.push(Damage::new(&self.path, number, reason)),
                }
            }
        }
    }

    /// The line at `place`, with a line feed. Errors: if it cannot be read, or is not the same as when it was checked.
    pub(super) fn line(&self, place: &Place) -> Result<Vec<u8>, MergeError> {
        let mut line = vec![0; place.length];
        self.file.read_exact_at(&mut line, place.offset).map_err(StoreError::io("read", &self.path))?;
        if seal::hash(&line) != place.hash {
            let reason = "it was changed meanwhile; merge again".to_owned();
            return Err(MergeError::Invalid { path: self.path.clone(), reason });
        }
        line.push(b'\n');
        Ok(line)
    }
}

/// Whether `order` has this measurement at its place.
fn is_in(order: &[Planned], planned: &Planned, n_cells: usize) -> bool {
    let place = usize::try_from(planned.block).ok().and_then(|block| block.checked_mul(n_cells));
    let place = place.and_then(|place| place.checked_add(usize::try_from(planned.position).ok()?));
    place.and_then(|place| order.get(place)) == Some(planned)
}

/// The file, to be read from its beginning.
fn again(file: &File, path: &Path) -> Result<File, StoreError> {
    use std::io::{Seek, SeekFrom};
    let mut again = file.try_clone().map_err(StoreError::io("read", path))?;
    again.seek(SeekFrom::Start(0)).map_err(StoreError::io("read", path))?;
    Ok(again)
}
