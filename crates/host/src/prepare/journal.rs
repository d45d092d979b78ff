//! The journal: planned changes of a process, on disk before it makes any.

use super::change::Change;
use super::plan::GRAVITY;
use crate::HostFs;
use crate::process;
use punctual_model::{Order, Prepare};
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Directory of the journals, one per process, below the root. Cleared at boot, as the changes are (hier(7)).
const DIRECTORY: &str = "run/punctual";
const SUFFIX: &str = "journal.json";
/// Maximum size of a journal, bytes: a change takes some 200 bytes, and there are at most some ten for each CPU.
const JOURNAL_BYTES: u64 = 16 << 20;

/// The journal of this process.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
}

/// The content of a journal.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The process that made the changes.
    pub(super) pid: u32,
    /// Start time of that process, clock ticks since boot; `null` when unknown.
    pub(super) started_ticks: Option<u64>,
    /// The boot of that process; settings do not survive a reboot.
    pub(super) boot_id: Option<String>,
    /// In the order in which they were made.
    pub(super) changes: Vec<Change>,
}

impl Journal {
    /// Writes the planned changes of this process; they are on disk when this returns. `kind` tells its journals apart:
    /// empty, or with a dot at its end. Errors: one line, when the
    /// journal cannot be written: then nothing may be changed.
    pub(super) fn write(fs: &HostFs, kind: &str, changes: &[Change]) -> Result<Journal, String> {
        let pid = std::process::id();
        let directory = fs.root.join(DIRECTORY);
        let path = directory.join(format!("{pid}.{kind}{SUFFIX}"));
        let entry = Entry {
            pid,
            started_ticks: process::started_ticks_of(pid),
            boot_id: fs.boot_id(),
            changes: changes.to_vec(),
        };
        let failed = |err: io::Error| {
            format!("cannot write the journal of settings {}: {err}; nothing was changed (run as root)", path.display())
        };
        DirBuilder::new().recursive(true).mode(0o755).create(&directory).map_err(failed)?;
        check_directory(&directory)?;
        // Complete or absent, whenever this process is killed.
        let unfinished = path.with_extension("unfinished");
        let _ = std::fs::remove_file(&unfinished);
        let text = serde_json::to_vec(&entry).map_err(io::Error::from).map_err(failed)?;
        punctual_sys::fail::point("journal-begun");
        write_synced(&unfinished, &text).map_err(failed)?;
        punctual_sys::fail::point("journal-unnamed");
        std::fs::rename(&unfinished, &path).map_err(failed)?;
        File::open(&directory).and_then(|directory| directory.sync_all()).map_err(failed)?;
        punctual_sys::fail::point("journal-written");
        Ok(Journal { path })
    }

    /// Removes the journal, after everything is restored.
    pub(super) fn remove(self) {
        let _ = std::fs::remove_file(self.path);
        punctual_sys::fail::point("journal-removed");
    }
}

fn write_synced(path: &Path, text: &[u8]) -> io::Result<()> {
    // A new file, so that neither a planted link is followed nor a planted file of another user is written.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?;
    punctual_sys::fail::write_all("journal-half", &mut file, text)?;
    file.sync_all()
}

/// All journals with their paths, and an error line for each unusable one. Unfinished journals are removed: their
/// processes had changed nothing yet.
pub(super) fn all(fs: &HostFs) -> Vec<(PathBuf, Result<Entry, String>)> {
    let directory = fs.root.join(DIRECTORY);
    let Ok(entries) = std::fs::read_dir(&directory) else { return Vec::new() };
    if let Err(reason) = check_directory(&directory) {
        return vec![(directory, Err(reason))];
    }
    let mut journals = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(SUFFIX) {
            let entry = read(&path).map_err(|reason| {
                format!(
                    "invalid journal {}: {reason}; settings may still be changed: check them, then remove this file",
                    path.display()
                )
            });
            journals.push((path, entry));
        } else if is_abandoned(&name) {
            let _ = std::fs::remove_file(&path);
        }
    }
    journals.order_by(|a, b| a.0.cmp(&b.0));
    journals
}

/// Reads the journal at `path`. Errors: the reason why it is not a complete journal of this program.
fn read(path: &Path) -> Result<Entry, String> {
    // A FIFO is opened without waiting for its other end, and is then refused.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|err| err.to_string())?;
    let metadata = file.metadata().map_err(|err| err.to_string())?;
    if !metadata.is_file() {
        return Err("expected a regular file".to_owned());
    }
    if metadata.len() > JOURNAL_BYTES {
        return Err(format!("larger than {} MiB", JOURNAL_BYTES >> 20));
    }
    why_not_ours(&metadata, 0o022).map_or(Ok(()), Err)?;
    let mut text = Vec::new();
    file.take(JOURNAL_BYTES).read_to_end(&mut text).map_err(|err| err.to_string())?;
    let entry: Entry = serde_json::from_slice(&text).map_err(|err| err.to_string())?;
    match entry.changes.iter().filter_map(Change::path).find(|path| !is_setting(path)) {
        Some(path) => Err(format!("/{path} is not a setting that punctual changes")),
        None => Ok(entry),
    }
}

/// Whether a preparation changes the file with this path.
fn is_setting(path: &str) -> bool {
    let irq = path.strip_prefix("proc/irq/").and_then(|rest| rest.strip_suffix("/smp_affinity_list"));
    path == GRAVITY || irq.is_some_and(|irq| irq.parse::<u32>().is_ok()) || Prepare::may_change(path)
}

/// Refuses a directory in which another user may have written or may replace journals. Errors: one line with the owner
/// or the permission, and advice.
fn check_directory(directory: &Path) -> Result<(), String> {
    let failed = |reason: String| {
        let shown = directory.display();
        format!("cannot use the journals in {shown}: {reason}; check the settings that they list, then remove {shown}")
    };
    let metadata = directory.symlink_metadata().map_err(|err| failed(err.to_string()))?;
    if !metadata.is_dir() {
        return Err(failed("expected a directory".to_owned()));
    }
    // With the sticky bit no other user can replace a file there; the owner of each journal is checked, too.
    let others = if metadata.mode() & 0o1000 == 0 { 0o022 } else { 0 };
    why_not_ours(&metadata, others).map_or(Ok(()), |reason| Err(failed(reason)))
}

/// The reason why a file is not from root or this user alone: its owner, or bits of `others` in its mode.
fn why_not_ours(metadata: &Metadata, others: u32) -> Option<String> {
    let owner = metadata.uid();
    if owner != 0 && owner != punctual_sys::process::effective_user_id() {
        return Some(format!("owned by user {owner}"));
    }
    (metadata.mode() & others != 0).then(|| "writable by other users".to_owned())
}

/// Whether `name` is an unfinished journal of an ended process.
fn is_abandoned(name: &str) -> bool {
    let pid = name.split('.').next().and_then(|pid| pid.parse().ok());
    name.ends_with(".unfinished") && pid.is_some_and(process::is_gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_are_put_back() {
        for (path, is) in [
            ("proc/sys/kernel/timer_migration", true),
            ("proc/sys/kernel/core_pattern", false),
            ("proc/sys/kernel/./core_pattern", false),
            ("proc/sys/kernel//modprobe", false),
            ("proc/sys/fs/binfmt_misc/register", false),
            ("sys/kernel/uevent_helper", false),
            ("proc/xenomai/clock/coreclk", true),
            ("proc/irq/24/smp_affinity_list", true),
            ("proc/irq/24/spurious", false),
            ("proc/irq/../sys/smp_affinity_list", false),
            ("sys/fs/cgroup/user.slice/cpuset.cpus", true),
            ("", false),
            ("etc/passwd", false),
            ("/proc/sys/kernel/timer_migration", false),
            ("../proc/sys/x", false),
            ("proc/sys/../../etc/passwd", false),
            ("sys/..", false),
            ("proc/sysrq-trigger", false),
            ("system/x", false),
        ] {
            assert_eq!(is_setting(path), is, "{path}");
        }
    }
}
