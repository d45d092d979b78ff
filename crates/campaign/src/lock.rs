//! The machine lock, and recovery of settings that a killed measurement has left changed.

use super::stop::Stop;
use punctual_host::{HostFs, LockError, MachineLock, Subject};
use punctual_model::{Plan, Recovered};
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

/// Interval of looking whether a process that has changed settings has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Takes the machine lock. With `wait` it passes the holder that it waits for to `note`, once, and then waits for a
/// process that has changed settings and does not hold the lock. Errors: if another measurement holds it and `wait` is
/// false, or the lock file cannot be used.
pub fn take_lock(subject: Subject, wait: bool, note: &dyn Fn(&str)) -> Result<MachineLock, LockError> {
    let lock = match MachineLock::take(subject, false) {
        Err(LockError::Held { holder }) if wait => {
            note(&format!("punctual: waiting for {holder}"));
            MachineLock::take(subject, true)?
        }
        taken => taken?,
    };
    let fs = HostFs::here();
    let changing = || punctual_host::changing_process(&fs).filter(|_| wait && subject != Subject::Guests);
    if let Some(pid) = changing() {
        note(&format!("punctual: waiting for process {pid}, which has changed settings"));
        while changing().is_some() {
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
    Ok(lock)
}

/// Takes the lock for a run of `plan`, or of an unknown one, and, for a measurement of this machine, restores settings
/// that an earlier one has left changed. A signal ends the wait. Errors: like [`take_lock`], and if a setting cannot be
/// restored.
pub(super) fn take_machine(
    plan: Option<&Plan>,
    wait: bool,
    stop: &Stop,
    note: &dyn Fn(&str),
) -> Result<MachineLock, Box<dyn Error>> {
    let has_settings = |plan: &Plan| !plan.settings().is_empty() || !plan.knobs.is_empty();
    let subject = match plan {
        Some(plan) if plan.is_virtual() => Subject::Guests,
        Some(plan) if !has_settings(plan) => Subject::Machine,
        _ => Subject::Settings,
    };
    let lock = take_lock(subject, wait, note)?;
    stop.defer();
    lock.limit.iter().for_each(|limit| note(&format!("punctual: {limit}")));
    if subject == Subject::Guests {
        punctual_host::remove_leftovers_of_guests();
        return Ok(lock);
    }
    let all = punctual_host::recover(&HostFs::here());
    let removed = punctual_host::remove_leftovers();
    let failed = all.iter().flat_map(|recovered| &recovered.failed).next();
    if !all.is_empty() || !removed.is_empty() {
        let lines = recovery_lines(&all, &removed);
        // The error has the first failure.
        lines.iter().filter(|line| Some(*line) != failed).for_each(|line| note(&format!("punctual: {line}")));
    }
    match failed {
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
        let what = if punctual_host::is_process(path) { "terminated" } else { "removed" };
        format!("{what}, left behind by a killed process: {}", path.display())
    }));
    if lines.is_empty() {
        lines.push("nothing to restore and nothing to remove".to_owned());
    }
    lines
}
