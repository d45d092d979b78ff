//! Imported measurements in a directory of their own: a header line and one line for each measurement, written at once.

use super::lines::{Line, Lines};
use super::{IMPORTED_FILE, StoreError, foreign, imported_file_in, line, reader};
use punctual_host::file::{self, Replacement};
use punctual_model::{ImportHeader, Imported, ImportedThread, RECORD_FORMAT};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Measurements imported together.
#[derive(Debug)]
pub struct ImportedRun {
    /// Date and source of the import.
    pub header: ImportHeader,
    /// Every readable measurement.
    pub measurements: Vec<Imported>,
    /// Unreadable lines.
    pub damage: Vec<reader::Damage>,
}

/// Writes measurements to a new directory. Errors: if the directory is not empty, or cannot be written.
pub fn keep(dir: &Path, header: &ImportHeader, measurements: &[Imported]) -> Result<PathBuf, StoreError> {
    let is_empty = |dir: &Path| fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
    if dir.exists() && !is_empty(dir) {
        return Err(StoreError::NotARun(dir.to_owned()));
    }
    fs::create_dir_all(dir).map_err(StoreError::io("make", dir))?;
    let path = dir.join(IMPORTED_FILE);
    write(&path, header, measurements).map_err(StoreError::io("make", &path))?;
    Ok(path)
}

fn write(path: &Path, header: &ImportHeader, measurements: &[Imported]) -> io::Result<()> {
    let mut file = BufWriter::new(Replacement::new(path, ".new")?);
    file.write_all(&line(header)?)?;
    for measurement in measurements {
        file.write_all(&line(measurement)?)?;
    }
    file.into_inner().map_err(io::IntoInnerError::into_error)?.commit()
}

/// Reads imported measurements from a directory or a file. `None` when there are none. Errors: if the header cannot be
/// read.
pub fn read(named: &Path) -> Result<Option<ImportedRun>, StoreError> {
    let Some(path) = imported_file_in(named) else { return Ok(None) };
    let mut lines = Lines::new(file::open(&path).map_err(StoreError::io("read", &path))?);
    let first = lines.next().map_err(StoreError::io("read", &path))?;
    let header = reader::first_line(first, &path, punctual_model::json::import_header)?;
    let (mut measurements, mut damage, mut number) = (Vec::new(), Vec::new(), 1);
    while let Some(line) = lines.next().map_err(StoreError::io("read", &path))? {
        number += 1;
        match measurement(&line) {
            Ok(measurement) => measurements.push(measurement),
            Err(reason) => damage.push(reader::Damage::new(&path, number, reason)),
        }
    }
    Ok(Some(ImportedRun { header, measurements, damage }))
}

fn measurement(line: &Line) -> Result<Imported, String> {
    let damaged = |why: String| format!("damaged line ({why})");
    let text = reader::intact(line).map_err(damaged)?;
    let imported = foreign::from_str(text, punctual_model::json::imported).map_err(|err| damaged(err.to_string()))?;
    if imported.format > RECORD_FORMAT {
        return Err(format!("unsupported: record format {} is newer than this program", imported.format));
    }
    let is_sound = !imported.threads.is_empty() && imported.threads.iter().all(ImportedThread::is_consistent);
    if is_sound { Ok(imported) } else { Err("contradictory counts".to_owned()) }
}
