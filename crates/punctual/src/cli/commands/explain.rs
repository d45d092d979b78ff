//! `punctual explain`: measures one cell with kernel tracing and explains each late wake-up.

use super::again::again;
use super::measure::one;
use super::recorded::judge;
use crate::cli::arguments::{ExplainArguments, MethodOrRun};
use crate::cli::terminal::Outcome;
use crate::cli::terminal::output::{OutputOptions, SPIKES};
use punctual_model::{Conditions, Explain, Plan, Watch, WatchTarget};
use std::error::Error;
use std::path::PathBuf;

pub(super) fn explain(arguments: ExplainArguments) -> Outcome {
    let ExplainArguments { all, above, keep: most, stacks, witness, export, what, captures, cell: one_cell, .. } =
        arguments;
    let (thread, has_period) = (arguments.thread, arguments.has_period);
    let task = match what {
        MethodOrRun::Run(run) if arguments.again => return again(Some(&run), one_cell.common.format),
        MethodOrRun::Method(_) if arguments.again => return again(None, one_cell.common.format),
        MethodOrRun::Run(file) => {
            let mut watch = Watch::new(WatchTarget::Everywhere);
            thread.map_or(Ok(()), |thread| watch.set("thread", &thread))?;
            watch.period = has_period.then_some(one_cell.period);
            return judge(&file, watch, (above.0, most, Vec::new()), all, one_cell.common.format);
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
