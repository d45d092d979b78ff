//! `punctual show`: the summary of a run.

use super::arguments::{RunFormat, ShowArguments};
use super::output::{self, Shown};
use super::{ERROR, Outcome, import, note};

pub(super) fn show(arguments: &ShowArguments) -> Outcome {
    let shown = Shown {
        format: arguments.format,
        all_findings: arguments.all,
        each_spike: arguments.all,
        cell: arguments.cell.as_deref(),
    };
    if let Some(imported) = store::read_imported(&arguments.run)? {
        return import::show(&imported, None, shown);
    }
    let run = store::read(&arguments.run)?;
    let status = output::show(&run.header, &run.entries, shown)?;
    if arguments.format == RunFormat::Text {
        output::name_samples(&run.header, &arguments.run);
    }
    for damage in &run.damage {
        note(format_args!("punctual: {damage}"));
    }
    // A damaged line whose measurement was made again has cost nothing.
    let is_whole = run.damage.is_empty() || run.entries.len() >= run.header.n_measurements();
    Ok(if is_whole { status } else { ERROR })
}
