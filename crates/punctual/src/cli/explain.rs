//! `punctual explain`: measures one cell with kernel tracing and explains each late wake-up.

use super::Outcome;
use super::arguments::ExplainArguments;
use super::one_cell::one;
use super::output::OutputOptions;
use model::{Conditions, Explain, Plan};
use std::error::Error;
use std::path::PathBuf;

/// Spikes that are shown one by one without `--all`.
const SPIKES: usize = 3;

pub(super) fn explain(arguments: ExplainArguments) -> Outcome {
    let ExplainArguments { all, above, keep: most, stacks, witness, export, waiting, cell: one_cell } = arguments;
    let export = export.map(directory).transpose()?;
    let asked = Explain { above: above.0, keep: most, stacks, witness, export, for_host: false };
    asked.check()?;
    let (common, keep, plan) = one_cell.ask("explain", waiting.task);
    let plan = Plan { conditions: Conditions { explain: Some(asked), ..plan.conditions }, ..plan };
    let spikes = if all { usize::MAX } else { SPIKES };
    one(plan, &common, &keep, None, OutputOptions { all_findings: all, spikes, ..common.format.into() })
}

/// Creates the directory if needed and returns its absolute path, valid in other processes.
pub(super) fn directory(path: PathBuf) -> Result<PathBuf, Box<dyn Error>> {
    let made = std::fs::create_dir_all(&path).and_then(|()| path.canonicalize());
    made.map_err(|err| format!("--export {}: {err}", path.display()).into())
}
