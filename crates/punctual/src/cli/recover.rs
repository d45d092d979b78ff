//! `punctual recover`: what a killed measurement has left changed is put back; also done before every measurement.

use super::arguments::{Format, RecoverArguments};
use super::{ERROR, Outcome, note};
use crate::host::{self, HostFs, MachineLock};
use model::{Recovered, Recovery};
use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;

pub(super) fn recover(arguments: &RecoverArguments) -> Outcome {
    // Whoever measures has changed settings on purpose.
    let _lock = MachineLock::take(arguments.wait)?;
    let recovery = Recovery { recovered: host::recover(&HostFs::here()), removed: host::remove_leftovers() };
    let Recovery { recovered, removed } = &recovery;
    let mut out = io::stdout().lock();
    match arguments.format {
        Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(&recovery)?)?,
        Format::Text => lines(recovered, removed).iter().try_for_each(|line| writeln!(out, "{line}"))?,
    }
    Ok(if recovered.iter().any(|recovered| !recovered.failed.is_empty()) { ERROR } else { 0 })
}

/// Takes the machine for a measurement, and puts back what an earlier one has left.
///
/// # Errors
/// When somebody else has it, or something cannot be put back.
pub(super) fn take_machine(wait: bool) -> Result<MachineLock, Box<dyn Error>> {
    let lock = MachineLock::take(wait)?;
    let all = host::recover(&HostFs::here());
    let removed = host::remove_leftovers();
    if !all.is_empty() || !removed.is_empty() {
        lines(&all, &removed).iter().for_each(|line| note(format_args!("punctual: {line}")));
    }
    match all.iter().flat_map(|recovered| &recovered.failed).next() {
        Some(reason) => Err(format!("{reason}; nothing is measured on a machine that is not as it was").into()),
        None => Ok(lock),
    }
}

/// One line for each setting, or one that says that there is nothing.
fn lines(all: &[Recovered], removed: &[PathBuf]) -> Vec<String> {
    let mut lines = Vec::new();
    for recovered in all {
        let who =
            recovered.pid.map_or_else(|| "a process".to_owned(), |pid| format!("process {pid}, which was killed"));
        if recovered.rebooted {
            lines.push(format!("{who}, had changed settings before this boot, which has put them back"));
        }
        let restored = recovered.restored.iter().map(|what| format!("put back, left changed by {who}: {what}"));
        let left = recovered.left.iter().chain(&recovered.failed).cloned();
        lines.extend(restored.chain(left));
    }
    lines.extend(removed.iter().map(|path| format!("removed, left by a process that was killed: {}", path.display())));
    if lines.is_empty() {
        lines.push("nothing was left changed, and nothing was left behind".to_owned());
    }
    lines
}
