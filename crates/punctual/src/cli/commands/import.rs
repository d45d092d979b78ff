//! `punctual import`: stores measurements of other tools as a directory that `show` reads.

use super::read::Read;
use super::run_directory;
use crate::cli::arguments::{ImportArguments, ImportUnit, RunFormat};
use crate::cli::terminal::{Outcome, note, output};
use punctual_import::{ImportOptions, READS_RESULTS, Unit, import as read, left_out};
use punctual_model::{ImportHeader, RUN_FORMAT, TOOL};
use punctual_store::ImportedRun;
use std::collections::BTreeSet;
use std::time::SystemTime;

pub(super) fn import(arguments: &ImportArguments) -> Outcome {
    if !READS_RESULTS {
        return Err(left_out().into());
    }
    let stated = ImportOptions {
        unit: arguments.unit.map(|unit| match unit {
            ImportUnit::Ns => Unit::Ns,
            ImportUnit::Us => Unit::Us,
            ImportUnit::Ms => Unit::Ms,
            ImportUnit::S => Unit::S,
        }),
        period: arguments.period,
        policy: arguments.policy,
        load: arguments.load.clone(),
    };
    let mut named = BTreeSet::new();
    let mut measurements = Vec::new();
    for file in &arguments.files {
        if !named.insert(file) {
            return Err(format!("duplicate file {}; name each file once", file.display()).into());
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
    let dir = arguments.out.clone().unwrap_or_else(|| run_directory::new_directory(now));
    let path = punctual_store::keep_imported(&dir, &header, &measurements)?;
    let read = Read::imported(ImportedRun { header, measurements, damage: Vec::new() });
    output::write(&output::document(&read.results(&dir.display().to_string()), arguments.format.into())?)?;
    if arguments.format == RunFormat::Text {
        note(path.display());
    }
    Ok(read.status())
}
