//! `punctual launch`: becomes another program, with the settings of a cell.

use super::Outcome;
use super::arguments::LaunchArguments;
use crate::runtime::{Launch, launch};

pub(super) fn launch_program(arguments: LaunchArguments) -> Outcome {
    let LaunchArguments { parent, cpu, policy, timer_slack, program } = arguments;
    Err(launch(&Launch { parent, cpu, policy, timer_slack }, &program).into())
}
