//! Restoring the settings that a killed process has left changed.

use super::change::UndoResult;
use super::journal::{self, Entry};
use crate::HostFs;
use crate::process;
use punctual_model::Recovered;

/// Undoes every journal whose process has ended. Journals of running processes are reported and left alone: a
/// measurement holds the machine lock for as long as its cell runs, so its holder meets no such journal of its own.
pub fn recover(fs: &HostFs) -> Vec<Recovered> {
    let mut all = Vec::new();
    for (path, entry) in journal::all(fs) {
        let not = |pid, reason| Recovered {
            pid,
            restored: Vec::new(),
            left: Vec::new(),
            failed: vec![reason],
            rebooted: false,
        };
        let recovered = match entry {
            Ok(entry) if is_alive(&entry) => {
                let (pid, path) = (entry.pid, path.display());
                let reason = format!(
                    "process {pid} has changed settings and is still running ({path}); wait until it exits, or: kill {pid}"
                );
                not(Some(pid), reason)
            }
            Ok(entry) => undo(fs, &entry),
            Err(reason) => not(None, reason),
        };
        punctual_sys::fail::point("recover-undone");
        // A journal with remaining changes stays, for a user with the necessary rights.
        if recovered.failed.is_empty() {
            let _ = std::fs::remove_file(path);
            punctual_sys::fail::point("recover-removed");
        }
        all.push(recovered);
    }
    all
}

/// A running process that has changed settings.
pub fn changing_process(fs: &HostFs) -> Option<u32> {
    let mut entries = journal::all(fs).into_iter().filter_map(|(_, entry)| entry.ok());
    entries.find(is_alive).map(|entry| entry.pid)
}

fn is_alive(entry: &Entry) -> bool {
    let now = process::started_ticks_of(entry.pid);
    now.is_some() && (entry.started_ticks.is_none() || now == entry.started_ticks)
}

fn undo(fs: &HostFs, entry: &Entry) -> Recovered {
    // Where either is unknown, each value tells whether it is still the changed one.
    let rebooted = entry.boot_id.as_ref().zip(fs.boot_id()).is_some_and(|(then, now)| *then != now);
    let mut recovered =
        Recovered { pid: Some(entry.pid), restored: Vec::new(), left: Vec::new(), failed: Vec::new(), rebooted };
    for change in entry.changes.iter().rev().filter(|_| !rebooted) {
        punctual_sys::fail::point("recover-setting");
        match change.undo(fs) {
            Ok(UndoResult::Unchanged) => {}
            Ok(UndoResult::Restored(what)) => recovered.restored.push(what),
            Ok(UndoResult::NotRestored(why)) => recovered.left.push(why),
            Err(why) => recovered.failed.push(why),
        }
    }
    recovered
}
