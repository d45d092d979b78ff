//! `punctual doctor`: what makes this machine late, and what changes it. It changes nothing itself.

use super::arguments::{DoctorArguments, Format};
use super::{Outcome, output};
use crate::TOOL;
use crate::host::{self, HostFs};
use crate::report::Examination;
use analysis::doctor;
use model::UnknownWord;
use std::sync::LazyLock;

/// The exit status when something will make it late: a verdict's "violated".
const LATE: u8 = 2;

pub(super) fn doctor(arguments: &DoctorArguments) -> Outcome {
    static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| doctor::checks().map(|check| check.name).collect());
    if let Some(unknown) = arguments.checks.iter().find(|name| !NAMES.contains(&name.as_str())) {
        let error = UnknownWord::new("check", unknown, &NAMES);
        let near = error.nearest().map(|word| format!("did you mean `{word}`? ")).unwrap_or_default();
        return Err(format!("unknown check `{unknown}` ({near}see punctual doctor --all)").into());
    }
    let host = host::snapshot(&HostFs::here());
    let is_asked = |name: &str| arguments.checks.is_empty() || arguments.checks.iter().any(|asked| asked == name);
    let checks = doctor::examine(&host).into_iter().filter(|check| is_asked(check.name)).collect();
    let examination = Examination { tool: TOOL, host: &host, checks };
    let mut text = Vec::new();
    match arguments.format {
        Format::Json => output::json(&mut text, &examination.json())?,
        Format::Text if arguments.checks.is_empty() => examination.text(&mut text, output::style(arguments.all))?,
        Format::Text => examination.explained(&mut text, output::style(arguments.all))?,
    }
    output::write(&text)?;
    Ok(if examination.will_be_late() { LATE } else { 0 })
}
