//! Imported measurements in a directory of their own: a header line, then one line each, written at once.

use super::{StoreError, reader};
use model::{ImportHeader, Imported, ImportedThread, RECORD_FORMAT, RUN_FORMAT};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The file that holds them.
pub(super) const FILE: &str = "imported.jsonl";

/// What was imported together.
#[derive(Debug)]
pub(crate) struct ImportedRun {
    /// When and by what.
    pub(crate) header: ImportHeader,
    /// Every measurement that can be read.
    pub(crate) measurements: Vec<Imported>,
    /// Lines that cannot be read.
    pub(crate) damage: Vec<reader::Damage>,
}

/// The file of a directory that holds imported measurements; `None` when it holds none.
pub(super) fn file_in(named: &Path) -> Option<PathBuf> {
    let is_named = named.file_name().is_some_and(|name| name == FILE) && named.is_file();
    let path = if is_named { named.to_owned() } else { named.join(FILE) };
    path.is_file().then_some(path)
}

/// Keeps measurements in a new directory.
///
/// # Errors
/// When the directory holds something already, or cannot be written.
pub(crate) fn keep(dir: &Path, header: &ImportHeader, measurements: &[Imported]) -> Result<PathBuf, StoreError> {
    let is_empty = |dir: &Path| fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
    if dir.exists() && !is_empty(dir) {
        return Err(StoreError::NotARun(dir.to_owned()));
    }
    fs::create_dir_all(dir).map_err(StoreError::io("make", dir))?;
    let (path, unfinished) = (dir.join(FILE), dir.join("imported.jsonl.new"));
    let written = write(&unfinished, header, measurements).and_then(|()| fs::rename(&unfinished, &path));
    written.map_err(|source| {
        let _ = fs::remove_file(&unfinished);
        StoreError::Io { action: "make", path: path.clone(), source }
    })?;
    Ok(path)
}

fn write(path: &Path, header: &ImportHeader, measurements: &[Imported]) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    serde_json::to_writer(&mut file, header)?;
    for measurement in measurements {
        file.write_all(b"\n")?;
        serde_json::to_writer(&mut file, measurement)?;
    }
    file.write_all(b"\n")?;
    file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_data()
}

/// Reads imported measurements from a directory, or their file. `None` when there are none.
///
/// # Errors
/// When the header cannot be read.
pub(crate) fn read(named: &Path) -> Result<Option<ImportedRun>, StoreError> {
    let Some(path) = file_in(named) else { return Ok(None) };
    let text = fs::read_to_string(&path).map_err(StoreError::io("read", &path))?;
    let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line));
    let damaged = |reason: String| StoreError::Header { path: path.clone(), reason };
    let (_, first) = lines.next().ok_or_else(|| damaged("the file is empty".to_owned()))?;
    let header: ImportHeader = serde_json::from_str(first).map_err(|err| damaged(err.to_string()))?;
    if header.format > RUN_FORMAT {
        return Err(StoreError::Format { path, format: header.format.into(), known: RUN_FORMAT });
    }
    let (mut measurements, mut damage) = (Vec::new(), Vec::new());
    for (line, text) in lines {
        match measurement(text) {
            Ok(measurement) => measurements.push(measurement),
            Err(reason) => damage.push(reader::Damage::new(&path, line, reason)),
        }
    }
    Ok(Some(ImportedRun { header, measurements, damage }))
}

fn measurement(line: &str) -> Result<Imported, String> {
    let imported: Imported = serde_json::from_str(line).map_err(|err| format!("the line is damaged ({err})"))?;
    if imported.format > RECORD_FORMAT {
        return Err(format!("record format {} is newer than this program reads", imported.format));
    }
    let is_sound = !imported.threads.is_empty() && imported.threads.iter().all(ImportedThread::is_consistent);
    if is_sound { Ok(imported) } else { Err("its counts contradict each other".to_owned()) }
}
