//! The journal: what a process is about to change, on disk before it changes anything.

use super::change::Change;
use crate::host::HostFs;
use crate::host::process;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// One for each process that changes settings, below the root. Gone with the next boot, as the changes are (hier(7)).
const DIRECTORY: &str = "run/punctual";
const SUFFIX: &str = "journal.json";

/// The journal of this process.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
}

/// What a journal says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Who made the changes.
    pub(super) pid: u32,
    /// When that process was started, clock ticks since boot; `null` when it is not known.
    pub(super) started_ticks: Option<u64>,
    /// Which boot it was in; settings do not outlive one.
    pub(super) boot_id: Option<String>,
    /// In the order in which they were made.
    pub(super) changes: Vec<Change>,
}

impl Journal {
    /// Writes what this process is about to change, and has it on disk when this returns.
    ///
    /// # Errors
    /// One line, when it cannot be kept: then nothing may be changed.
    pub(super) fn write(fs: &HostFs, changes: &[Change]) -> Result<Journal, String> {
        let pid = std::process::id();
        let directory = fs.root.join(DIRECTORY);
        let path = directory.join(format!("{pid}.{SUFFIX}"));
        let entry = Entry {
            pid,
            started_ticks: process::started_ticks_of(pid),
            boot_id: boot_id(fs),
            changes: changes.to_vec(),
        };
        let failed = |err: io::Error| {
            format!(
                "cannot note in {} what is to be put back: {err}; nothing was changed (run as root)",
                path.display()
            )
        };
        DirBuilder::new().recursive(true).mode(0o755).create(&directory).map_err(failed)?;
        // Whole or not at all, whenever this process is killed.
        let unfinished = path.with_extension("unfinished");
        let text = serde_json::to_vec(&entry).map_err(io::Error::from).map_err(failed)?;
        write_synced(&unfinished, &text).and_then(|()| std::fs::rename(&unfinished, &path)).map_err(failed)?;
        File::open(&directory).and_then(|directory| directory.sync_all()).map_err(failed)?;
        Ok(Journal { path })
    }

    /// Everything is put back.
    pub(super) fn remove(self) {
        let _ = std::fs::remove_file(self.path);
    }
}

fn write_synced(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text)?;
    file.sync_all()
}

/// Identifies the running boot.
pub(super) fn boot_id(fs: &HostFs) -> Option<String> {
    fs.text("proc/sys/kernel/random/boot_id")
}

/// The journals that there are, with their paths. Unfinished ones are removed: their process had changed nothing yet.
///
/// # Errors
/// One line for a journal that cannot be read.
pub(super) fn all(fs: &HostFs) -> Vec<(PathBuf, Result<Entry, String>)> {
    let entries = std::fs::read_dir(fs.root.join(DIRECTORY)).into_iter().flatten().flatten();
    let mut journals = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(SUFFIX) {
            let text = std::fs::read(&path).map_err(|err| err.to_string());
            let entry = text.and_then(|text| serde_json::from_slice(&text).map_err(|err| err.to_string()));
            journals.push((path.clone(), entry.map_err(|err| format!("{}: {err}", path.display()))));
        } else if is_abandoned(&name) {
            let _ = std::fs::remove_file(&path);
        }
    }
    journals.sort_by(|a, b| a.0.cmp(&b.0));
    journals
}

/// An unfinished journal of a process that is gone.
fn is_abandoned(name: &str) -> bool {
    let pid = name.split('.').next().and_then(|pid| pid.parse().ok());
    name.ends_with(".unfinished") && pid.is_some_and(|pid| process::started_ticks_of(pid).is_none())
}
