//! `punctual recover`: restores the settings that a killed measurement has changed.

use crate::cli::arguments::{Format, RecoverArguments};
use crate::cli::terminal::{ERROR, Outcome, note, output};
use punctual_campaign::{recovery_lines, take_lock};
use punctual_host::{HostFs, Subject};
use punctual_model::Recovery;

pub(super) fn recover(arguments: &RecoverArguments) -> Outcome {
    // The settings of a running measurement are intended.
    let _lock = take_lock(Subject::Settings, arguments.wait, &|line| note(line))?;
    let mut removed = punctual_host::remove_leftovers();
    removed.extend(punctual_cell::trace::Instance::remove_abandoned());
    let boots = punctual_host::forget_boots(&HostFs::here());
    removed.extend(boots.iter().flatten().cloned());
    let recovery = Recovery { recovered: punctual_host::recover(&HostFs::here()), removed };
    let Recovery { recovered, removed } = &recovery;
    let text = match arguments.format {
        Format::Json => serde_json::to_string_pretty(&recovery)?,
        Format::Text => recovery_lines(recovered, removed).join("\n"),
    };
    output::write((text + "\n").as_bytes())?;
    boots?;
    Ok(if recovered.iter().any(|recovered| !recovered.failed.is_empty()) { ERROR } else { 0 })
}
