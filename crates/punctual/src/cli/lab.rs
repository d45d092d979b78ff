//! `punctual lab`: the kernels of the lab, and whether its promise holds here.

mod bisect;
mod check;
mod fetch;
mod list;

use super::arguments::LabCommand;
use super::{ERROR, Outcome, start};
use model::{Axes, Header, Kernel, Load, Method, Period, Plan, Policy, Span};
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::time::SystemTime;

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
    method: Method,
    duration: Span,
    /// How many times it is measured.
    blocks: u32,
}

/// Time before the cycles that count: the load has to reach its pace.
const WARM_UP: Span = Span(50_000_000);

impl Asked {
    /// The run with that cell.
    ///
    /// # Errors
    /// When the kernel is none of the lab, or the lab cannot carry it out here.
    fn header(self, title: &str) -> Result<Header, Box<dyn Error>> {
        if self.kernel == Kernel::Running {
            return Err("`running` is this machine's own kernel, which no guest boots; name one like debian:6.1".into());
        }
        let plan = Plan {
            title: title.to_owned(),
            repetitions: self.blocks,
            duration: self.duration,
            warm_up: WARM_UP,
            seed: Some(0),
            axes: Axes {
                kernel: vec![self.kernel],
                load: vec![self.load],
                policy: vec![self.policy],
                period: vec![self.period],
                method: vec![self.method],
                runtime: Vec::new(),
            },
            ..Plan::default()
        };
        start::header(plan, false, SystemTime::now())
    }
}
