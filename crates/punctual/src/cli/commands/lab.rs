//! `punctual lab`: the kernels of the lab, and checks of their virtual time and configurations.

mod bisect;
mod check;
mod check_config;
mod fetch;
mod film;
mod list;
mod worst;

use crate::cli::arguments::LabCommand;
use crate::cli::terminal::{ERROR, Outcome, note};
use punctual_campaign::{Request, Session};
use punctual_model::{Axes, Conditions, Kernel, Load, Period, Plan, Policy, Span, Task};
use std::error::Error;
use std::ffi::{OsStr, OsString};

pub(super) fn lab(command: LabCommand) -> Outcome {
    if !punctual_lab::STARTS_GUESTS {
        return Err(punctual_lab::left_out().into());
    }
    match command {
        LabCommand::List(arguments) => list::list(&arguments),
        LabCommand::Fetch(arguments) => fetch::fetch(&arguments),
        LabCommand::Check(arguments) => check::check(arguments),
        LabCommand::CheckConfig(arguments) => check_config::check_config(&arguments),
        LabCommand::Film(arguments) => film::film(arguments),
        LabCommand::Worst(arguments) => worst::worst(arguments),
        LabCommand::BisectStep(arguments) => bisect::bisect_step(arguments),
    }
}

/// Exit status of an invalid command line: status 1 would mean "bad" to `git bisect run`.
pub(in crate::cli) fn usage_error_status(words: &[OsString]) -> u8 {
    let is_step = words.iter().skip(1).map(OsString::as_os_str).take(2).eq(["lab", "bisect-step"].map(OsStr::new));
    if is_step { bisect::ABORT } else { ERROR }
}

/// Parameters of one cell of the lab.
#[derive(Debug)]
struct TestCell {
    kernel: Kernel,
    load: Load,
    policy: Policy,
    period: Period,
    task: Task,
    duration: Span,
    /// Number of measurements.
    blocks: u32,
}

/// Warm-up time, in which the load reaches its rate.
const WARM_UP: Span = Span(50_000_000);

impl TestCell {
    /// Takes the machine for a run with this cell. Errors: if the kernel does not belong to the lab, the lab cannot run
    /// it here, or the machine is not available.
    fn begin(self, title: &str, wait: bool) -> Result<Session, Box<dyn Error>> {
        if self.kernel.is_here() {
            return Err(format!(
                "invalid kernel `{}`: it is the host's kernel, which guests do not boot; expected one like debian:6.1",
                self.kernel
            )
            .into());
        }
        let plan = Plan {
            title: title.to_owned(),
            repetitions: self.blocks,
            duration: self.duration,
            seed: Some(0),
            axes: Axes {
                kernel: vec![self.kernel],
                load: vec![self.load],
                policy: vec![self.policy],
                period: vec![self.period],
                task: vec![self.task],
                runtime: Vec::new(),
                prepare: Vec::new(),
                only: Vec::new(),
            },
            conditions: Conditions { warm_up: WARM_UP, ..Plan::default().conditions },
            ..Plan::default()
        };
        let note = |line: &str| note(line);
        Session::begin(Request::here(plan, wait, &|_| Ok(()), &note))
    }
}
