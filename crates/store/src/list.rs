//! Search for runs in a directory tree.

use super::{FILE, StoreError};
use punctual_model::Order;
use std::fs;
use std::path::{Path, PathBuf};

/// A directory with a run, complete or not.
#[derive(Debug, PartialEq, Eq)]
pub struct ListedRun {
    /// The directory.
    pub dir: PathBuf,
    /// Total size of its files, samples included, bytes.
    pub bytes: u64,
}

/// Every run in and below `dir`, sorted by path, and the errors for directories that cannot be read and may hold runs.
/// Symbolic links are not followed. Errors: if `dir` itself cannot be read.
pub fn below(dir: &Path) -> Result<(Vec<ListedRun>, Vec<StoreError>), StoreError> {
    fs::read_dir(dir).map_err(StoreError::io("read", dir))?;
    let (mut found, mut closed, mut left) = (Vec::new(), Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = left.pop() {
        if dir.join(FILE).is_file() || super::imported_file_in(&dir).is_some() {
            found.push(ListedRun { bytes: bytes_in(&dir), dir });
            continue;
        }
        let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        match fs::read_dir(&dir) {
            Ok(entries) => left.extend(entries.flatten().filter(is_directory).map(|entry| entry.path())),
            Err(err) => closed.push(StoreError::io("read", &dir)(err)),
        }
    }
    found.order_by(|a, b| a.dir.cmp(&b.dir));
    Ok((found, closed))
}

/// The run in or below `dir` that was written last; `None` if there is none. Symbolic links are not followed. Errors:
/// if `dir` itself cannot be read.
pub fn latest(dir: &Path) -> Result<Option<PathBuf>, StoreError> {
    let (found, _) = below(dir)?;
    let written = |dir: &Path| {
        let files = [Some(dir.join(FILE)), super::imported_file_in(dir)];
        files.into_iter().flatten().filter_map(|file| fs::metadata(file).and_then(|file| file.modified()).ok()).max()
    };
    let dated = found.into_iter().filter_map(|run| Some((written(&run.dir)?, run.dir)));
    Ok(dated.max().map(|(_, dir)| dir))
}

fn bytes_in(dir: &Path) -> u64 {
    let (mut bytes, mut left) = (0, vec![dir.to_owned()]);
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            // The size of a link itself: `DirEntry::metadata` does not follow links.
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => left.push(entry.path()),
                Ok(metadata) => bytes += metadata.len(),
                Err(_) => {}
            }
        }
    }
    bytes
}
