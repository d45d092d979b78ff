//! The machine lock, and recovery of settings that a killed measurement has left changed.

use super::stop::Stop;
use host::{HostFs, LockError, MachineLock};
use model::Recovered;
use std::error::Error;
use std::path::PathBuf;

/// Takes the machine lock. With `wait` it passes the holder that it waits for to `note`, once.
///
/// # Errors
/// If another measurement holds it and `wait` is false, or the lock file cannot be used.
pub fn take_lock(wait: bool, note: &dyn Fn(&str)) -> Result<MachineLock, LockError> {
    match MachineLock::take(false) {
        Err(LockError::Held { holder }) if wait => {
            note(&format!("punctual: waiting for {holder}"));
            MachineLock::take(true)
        }
        taken => taken,
    }
}

/// What is measured while the machine is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// This machine, at least in one cell.
    Machine,
    /// Guests in virtual time only. They depend on no setting of this machine, but would disturb its measurement.
    VirtualTime,
}

/// Takes the lock and, for a measurement of this machine, restores settings that an earlier one has left changed. A
/// signal ends the wait.
///
/// # Errors
/// Like [`take_lock`], and if a setting cannot be restored.
pub(super) fn take_machine(
    subject: Subject,
    wait: bool,
    stop: &Stop,
    note: &dyn Fn(&str),
) -> Result<MachineLock, Box<dyn Error>> {
    let lock = take_lock(wait, note)?;
    stop.defer();
    lock.limit.iter().for_each(|limit| note(&format!("punctual: {limit}")));
    if subject == Subject::VirtualTime {
        host::remove_leftovers_of_guests();
        return Ok(lock);
    }
    let all = host::recover(&HostFs::here());
    let removed = host::remove_leftovers();
    if !all.is_empty() || !removed.is_empty() {
        recovery_lines(&all, &removed).iter().for_each(|line| note(&format!("punctual: {line}")));
    }
    match all.iter().flat_map(|recovered| &recovered.failed).next() {
        Some(reason) => Err(format!("cannot measure: {reason}").into()),
        None => Ok(lock),
    }
}

/// Messages of a recovery: one line for each setting, or a single line if there was nothing to restore.
pub fn recovery_lines(all: &[Recovered], removed: &[PathBuf]) -> Vec<String> {
    let mut lines = Vec::new();
    for recovered in all {
        let process = recovered.pid.map_or_else(|| "a process".to_owned(), |pid| format!("killed process {pid}"));
        if recovered.rebooted {
            lines.push(format!("settings changed by {process} before this boot were restored by the boot"));
        }
        let restored = recovered.restored.iter().map(|what| format!("restored, left changed by {process}: {what}"));
        let left = recovered.left.iter().chain(&recovered.failed).cloned();
        lines.extend(restored.chain(left));
    }
    lines.extend(removed.iter().map(|path| {
        let what = if host::is_process(path) { "terminated" } else { "removed" };
        format!("{what}, left behind by a killed process: {}", path.display())
    }));
    if lines.is_empty() {
        lines.push("nothing to restore and nothing to remove".to_owned());
    }
    lines
}
