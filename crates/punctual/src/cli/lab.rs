//! `punctual lab`: the kernels of the lab, and whether its promise holds here.

mod bisect;
mod check;
mod fetch;
mod list;

use super::arguments::LabCommand;
use super::{ERROR, Outcome, note};
use campaign::{Request, Session};
use model::{Axes, Conditions, Kernel, Load, Period, Plan, Policy, Span, Task};
use std::error::Error;
use std::ffi::{OsStr, OsString};

pub(super) fn lab(command: LabCommand) -> Outcome {
    match command {
        LabCommand::List(arguments) => list::list(&arguments),
        LabCommand::Fetch(arguments) => fetch::fetch(&arguments),
        LabCommand::Check(arguments) => check::check(arguments),
        LabCommand::BisectStep(arguments) => bisect::bisect_step(arguments),
    }
}

/// The exit status of a command line that cannot be read: 1 says "bad" to `git bisect run`.
pub(super) fn status_of_mistake(words: &[OsString]) -> u8 {
    let is_step = words.iter().skip(1).map(OsString::as_os_str).take(2).eq(["lab", "bisect-step"].map(OsStr::new));
    if is_step { bisect::ABORT } else { ERROR }
}

/// What one cell of the lab is asked to be.
#[derive(Debug)]
struct Asked {
    kernel: Kernel,
    load: Load,
    policy: Policy,
    period: Period,
    task: Task,
    duration: Span,
    /// How many times it is measured.
    blocks: u32,
}

/// Time before the cycles that count: the load has to reach its pace.
const WARM_UP: Span = Span(50_000_000);

impl Asked {
    /// Takes the machine for a run with that cell.
    ///
    /// # Errors
    /// When the kernel is none of the lab, the lab cannot carry it out here, or the machine cannot be had.
    fn begin(self, title: &str, wait: bool) -> Result<Session, Box<dyn Error>> {
        if self.kernel == Kernel::Running {
            return Err("`running` is this machine's own kernel, which no guest boots; name one like debian:6.1".into());
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
            },
            conditions: Conditions { warm_up: WARM_UP, ..Plan::default().conditions },
            ..Plan::default()
        };
        let note = |line: &str| note(line);
        Session::begin(Request { plan, samples: false, at_most: None, wait, permit: &|_| Ok(()), note: &note })
    }
}
