//! `punctual launch`: executes another program with the settings of a cell.

use crate::cli::arguments::LaunchArguments;
use crate::cli::terminal::Outcome;
use workload::runtime::{Launch, launch};

pub(super) fn launch_program(arguments: LaunchArguments) -> Outcome {
    let LaunchArguments { parent, cpus, policy, timer_slack, program } = arguments;
    let settings = cpus.zip(policy).zip(timer_slack);
    let settings = settings.map(|((cpus, policy), timer_slack)| Launch { cpus, policy, timer_slack });
    Err(launch(parent, settings.as_ref(), &program).into())
}
