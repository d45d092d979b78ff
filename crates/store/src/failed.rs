//! Failed measurements of a run, in a separate file of its directory.
//!
//! They are not lines of the run itself: `--resume` makes the missing measurements and removes their entries.

use super::StoreError;
use punctual_host::file;
use punctual_model::{Failed, Header};
use std::fs;
use std::io::{self, Read};
use std::path::Path;

const FILE: &str = "failed.jsonl";
/// Size limit, larger than any run needs, bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Writes the failed measurements to the run directory `dir`, replacing previous ones. Errors: if they cannot be
/// written.
pub(crate) fn keep(dir: &Path, failed: &[Failed]) -> Result<(), StoreError> {
    let path = dir.join(FILE);
    let written = if failed.is_empty() {
        fs::remove_file(&path).or_else(|err| if err.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(err) })
    } else {
        let lines: io::Result<Vec<Vec<u8>>> = failed.iter().map(super::line).collect();
        lines.and_then(|lines| file::replace(&path, &lines.concat()))
    };
    written.map_err(StoreError::io("write", &path))
}

/// The failed measurements in `dir` that can be read and that `header` plans.
pub(super) fn of_run(dir: &Path, header: &Header) -> Vec<Failed> {
    let mut text = String::new();
    // If the file is missing or damaged, these measurements just count as missing.
    let _ = file::open(&dir.join(FILE)).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
    let failed = text.lines().filter_map(|line| punctual_model::json::failed(line.as_bytes()).ok());
    failed.filter(|failed| failed.planned.cell_index < header.cells.len()).collect()
}
