//! `punctual measure response`: latency of another thread's responses over a link.

use super::one_cell::one;
use crate::cli::arguments::ResponseArguments;
use crate::cli::terminal::Outcome;
use model::Task;

/// Measures one cell on one CPU.
pub(super) fn response(arguments: ResponseArguments) -> Outcome {
    let (common, keep, plan) = arguments.cell.ask("measure", Task::Response(arguments.to));
    one(plan, &common, &keep, None, common.format.into())
}
