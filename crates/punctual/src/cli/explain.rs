//! `punctual explain`: measures one cell with kernel tracing and explains each late wake-up.

use super::Outcome;
use super::again::again;
use super::arguments::{ExplainArguments, MethodOrRun};
use super::one_cell::one;
use super::output::OutputOptions;
use model::{Conditions, Explain, Plan};
use std::error::Error;
use std::path::PathBuf;

/// Spikes that are shown one by one without `--all`.
const SPIKES: usize = 3;

pub(super) fn explain(arguments: ExplainArguments) -> Outcome {
    let ExplainArguments { all, above, keep: most, stacks, witness, export, what, captures, cell: one_cell, .. } =
        arguments;
    let task = match what {
        MethodOrRun::Run(run) if arguments.again => return again(Some(&run), one_cell.common.format),
        MethodOrRun::Method(_) if arguments.again => return again(None, one_cell.common.format),
        MethodOrRun::Run(run) => {
            let run = run.display().to_string();
            let run = model::shell_word(&run);
            return Err(
                format!("invalid method `{run}`: expected a way to wait; to explain the spikes of a run: punctual explain {run} --again").into()
            );
        }
        MethodOrRun::Method(task) => task,
    };
    let export = export.map(directory).transpose()?;
    let captures = captures.captures;
    let asked = Explain { above: above.0, keep: most, stacks, witness, export, for_host: false, captures };
    asked.check()?;
    let (common, keep, plan) = one_cell.ask("explain", task);
    let plan = Plan { conditions: Conditions { explain: Some(asked), ..plan.conditions }, ..plan };
    let spikes = if all { usize::MAX } else { SPIKES };
    one(plan, &common, &keep, None, OutputOptions { all_findings: all, spikes, ..common.format.into() })
}

/// Creates the directory if needed and returns its absolute path, valid in other processes.
pub(super) fn directory(path: PathBuf) -> Result<PathBuf, Box<dyn Error>> {
    let made = std::fs::create_dir_all(&path).and_then(|()| path.canonicalize());
    made.map_err(|err| format!("--export {}: {err}", path.display()).into())
}
