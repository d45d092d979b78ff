//! `punctual show`: the summary of a run.

use super::arguments::{Format, ShowArguments};
use super::{ERROR, Outcome, note, output};
use crate::store;

pub(super) fn show(arguments: &ShowArguments) -> Outcome {
    let run = store::read(&arguments.run)?;
    let status = output::show(&run.header, &run.entries, arguments.format, arguments.all)?;
    if arguments.format == Format::Text {
        output::name_samples(&run.header, &arguments.run);
    }
    for damage in &run.damage {
        note(format_args!("punctual: {damage}"));
    }
    // A damaged line whose measurement was made again has cost nothing.
    let is_whole = run.damage.is_empty() || run.entries.len() >= run.header.n_measurements();
    Ok(if is_whole { status } else { ERROR })
}
