//! `punctual measure`: measures one cell, by a subcommand or by options alone.

use super::cost::cost;
use super::one_cell::one;
use super::response::response;
use super::sleep::sleep;
use crate::cli::arguments::{MeasureArguments, MeasureCommand};
use crate::cli::terminal::Outcome;

pub(super) fn measure(arguments: MeasureArguments) -> Outcome {
    match arguments.command {
        Some(MeasureCommand::Sleep(arguments)) => return sleep(*arguments),
        Some(MeasureCommand::Response(arguments)) => return response(*arguments),
        Some(MeasureCommand::Cost(arguments)) => return cost(*arguments),
        None => {}
    }
    let (common, keep, plan) = arguments.cell.ask("measure", arguments.task);
    one(plan, &common, &keep, arguments.samples.as_deref(), common.format.into())
}
