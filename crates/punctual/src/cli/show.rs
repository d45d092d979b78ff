//! `punctual show`: the summary of a run.

use super::arguments::ShowArguments;
use super::{ERROR, Outcome, output};
use crate::{campaign, store};

pub(super) fn show(arguments: &ShowArguments) -> Outcome {
    let run = store::read(&arguments.run)?;
    let status = output::show(&run.header, &run.entries, arguments.format)?;
    for damage in &run.damage {
        eprintln!("punctual: {damage}");
    }
    // A damaged line whose measurement was made again has cost nothing.
    let all = campaign::planned(run.header.cells.len(), run.header.plan.repetitions, run.header.seed).len();
    let is_whole = run.damage.is_empty() || run.entries.len() >= all;
    Ok(if is_whole { status } else { ERROR })
}
