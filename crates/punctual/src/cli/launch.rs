//! `punctual launch`: executes another program with the settings of a cell.

use super::Outcome;
use super::arguments::LaunchArguments;
use workload::runtime::{Launch, launch};

pub(super) fn launch_program(arguments: LaunchArguments) -> Outcome {
    let LaunchArguments { parent, cpu, policy, timer_slack, program } = arguments;
    let settings = cpu.zip(policy).zip(timer_slack);
    let settings = settings.map(|((cpu, policy), timer_slack)| Launch { cpu, policy, timer_slack });
    Err(launch(parent, settings.as_ref(), &program).into())
}
