//! `punctual measure response`: how soon another thread answers, over a link.

use super::Outcome;
use super::arguments::ResponseArguments;
use super::one_cell::one;
use model::Task;

/// One cell, measured on one CPU.
pub(super) fn response(arguments: ResponseArguments) -> Outcome {
    let (common, keep, plan) = arguments.cell.ask("measure", Task::Response(arguments.to));
    one(plan, &common, &keep, None, common.format.into())
}
