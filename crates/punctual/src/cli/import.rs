//! `punctual import`: what other tools have measured, kept as a directory that `show` understands.

use super::arguments::{ImportArguments, ImportUnit, RunFormat};
use super::output::{self, Shown};
use super::{ERROR, Outcome, note};
use campaign::stamp;
use import::{ImportOptions, Unit, import as read};
use model::{ImportHeader, RUN_FORMAT, Requirement, TOOL};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use store::ImportedRun;

pub(super) fn import(arguments: &ImportArguments) -> Outcome {
    let stated = ImportOptions {
        unit: arguments.unit.map(|unit| match unit {
            ImportUnit::Ns => Unit::Ns,
            ImportUnit::Us => Unit::Us,
        }),
        period: arguments.period,
        policy: arguments.policy,
        load: arguments.load.clone(),
    };
    let mut named = BTreeSet::new();
    let mut measurements = Vec::new();
    for file in &arguments.files {
        if !named.insert(file) {
            return Err(format!("{} is named twice; name each file once", file.display()).into());
        }
        measurements.extend(read(file, &stated)?);
    }
    let now = SystemTime::now();
    let unix = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let header = ImportHeader {
        format: RUN_FORMAT,
        tool: TOOL.to_owned(),
        imported_unix_ms: u64::try_from(unix.as_millis())?,
        title: arguments.title.clone().unwrap_or_default(),
        require: arguments.require.unwrap_or_default(),
    };
    let dir: PathBuf = arguments.out.clone().unwrap_or_else(|| Path::new("runs").join(stamp(now)));
    let path = store::keep_imported(&dir, &header, &measurements)?;
    let run = ImportedRun { header, measurements, damage: Vec::new() };
    let status = show(&run, None, arguments.format.into())?;
    if arguments.format == RunFormat::Text {
        note(path.display());
    }
    Ok(status)
}

/// Shows imported measurements; `require` stands in for what they were imported with.
pub(super) fn show(run: &ImportedRun, require: Option<&Requirement>, shown: Shown<'_>) -> Outcome {
    let header = ImportHeader { require: require.copied().unwrap_or(run.header.require), ..run.header.clone() };
    let summary = analysis::summarise_imported(&run.measurements, &header.require);
    output::write(&output::imported(&header, &summary, shown)?)?;
    run.damage.iter().for_each(|damage| note(format_args!("punctual: {damage}")));
    Ok(if run.damage.is_empty() { summary.verdict.exit_status() } else { ERROR })
}
