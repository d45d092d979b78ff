//! `punctual measure`: measures one cell, by a subcommand or by options alone; sleeps in a campaign of one block.

use super::cost::cost;
use super::{consent, run_directory};
use crate::cli::arguments::{
    Common, Keep, MeasureArguments, MeasureCommand, NoiseArguments, ResponseArguments, RunFormat, SleepArguments,
};
use crate::cli::terminal::live::Live;
use crate::cli::terminal::output::OutputOptions;
use crate::cli::terminal::progress::Lines;
use crate::cli::terminal::{Outcome, note, output, sentence};
use punctual_analysis::enough::Outlook;
use punctual_campaign::{Limits, Request, Session};
use punctual_model::{Axes, Conditions, Explain, Header, Kernel, Method, Plan, Span, Task};
use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;
use std::path::Path;

pub(super) fn measure(arguments: MeasureArguments) -> Outcome {
    match arguments.command {
        Some(MeasureCommand::Sleep(arguments)) => return sleep(*arguments),
        Some(MeasureCommand::Response(arguments)) => return response(*arguments),
        Some(MeasureCommand::Noise(arguments)) => return noise(*arguments),
        Some(MeasureCommand::Cost(arguments)) => return cost(*arguments),
        None => {}
    }
    let (common, keep, plan) = arguments.cell.ask("measure", arguments.task);
    one(plan, &common, &keep, arguments.samples.as_deref(), common.format.into())
}

/// Measures the one cell of `plan` and prints it. Its latencies go to the new file `samples`, if given.
pub(super) fn one(plan: Plan, common: &Common, keep: &Keep, samples: Option<&Path>, options: OutputOptions) -> Outcome {
    let permit = |header: &Header| Ok(consent::permit_floods(header, common.yes)?);
    let (keeps, wait) = (samples.is_some(), common.wait);
    let request = Request { samples: keeps, ..Request::here(plan, wait, &permit, &|line| note(line)) };
    let mut session = Session::begin(request)?;
    let dir = run_directory::keep(&mut session, keep)?;
    // The number of gaps is not known before.
    if !session.cell().task.is_noise() {
        sentence(Outlook::of(session.cell(), 1));
    }
    let mut live = Live::new(session.cell());
    let result = session.measure(samples, &mut |progress| live.show(progress));
    live.finish();
    if let Err(err) = result {
        session.discard_empty();
        return Err(err);
    }
    let status = run_directory::finish(&session, dir.as_deref(), options)?;
    if let Some(samples) = samples.filter(|_| options.format == RunFormat::Text) {
        note(format_args!("samples: {}", samples.display()));
    }
    Ok(status)
}

/// Measures one cell on one CPU.
pub(super) fn response(arguments: ResponseArguments) -> Outcome {
    let (common, keep, plan) = arguments.cell.ask("measure", Task::Response(arguments.to));
    one(plan, &common, &keep, None, common.format.into())
}

/// Measures the gaps of one CPU, or of those named.
fn noise(arguments: NoiseArguments) -> Outcome {
    let NoiseArguments { threshold, duration, policy, explain, stop_above, load, keep, common } = arguments;
    if threshold == Some(Span(0)) {
        return Err("invalid --threshold: expected more than 0, like 1us".into());
    }
    let plan = load.ask(Plan {
        title: "noise".to_owned(),
        conditions: Conditions { stop_above, explain: explain.then(Explain::default), ..common.conditions() },
        repetitions: 1,
        duration,
        cpus: common.cpus.clone(),
        axes: Axes {
            kernel: vec![Kernel::Running],
            policy: vec![policy],
            task: vec![Task::Cyclic(Method::Noise { threshold })],
            period: vec![Method::NOISE_PERIOD],
            ..Plan::default().axes
        },
        require: common.require.unwrap_or_default(),
        ..Plan::default()
    });
    one(plan, &common, &keep, None, common.format.into())
}

/// Default duration of a target, and the least number of sleeps.
const DURATION: Span = Span(2_000_000_000);
const SLEEPS: u64 = 5;

pub(super) fn sleep(arguments: SleepArguments) -> Outcome {
    let (keep, samples) = (arguments.keep.clone(), arguments.samples);
    let (wait, yes, format) = (arguments.common.wait, arguments.common.yes, arguments.common.format);
    let permit = |header: &Header| {
        consent::permit_floods(header, yes)?;
        output::check(header, format)
    };
    let plan = plan(arguments)?;
    let request = Request { samples, ..Request::here(plan, wait, &permit, &|line| note(line)) };
    let mut session = Session::begin(request)?;
    let dir = run_directory::keep(&mut session, &keep)?;
    let mut lines = Lines::new(&session.header, 0);
    let result = session.carry_out(lines.say_above(), &mut lines, Limits::default());
    lines.finish();
    match (result, &dir) {
        (Ok(()), _) => run_directory::finish(&session, dir.as_deref(), format.into()),
        // Completed measurements are shown despite a later error.
        (Err(err), dir) if !session.entries.is_empty() => {
            run_directory::finish(&session, dir.as_deref(), format.into())?;
            Err(run_directory::error(&session, &err, dir.as_deref()))
        }
        (Err(err), _) => {
            session.discard_empty();
            Err(run_directory::error(&session, &err, None))
        }
    }
}

/// The plan of these options.
fn plan(arguments: SleepArguments) -> Result<Plan, String> {
    let SleepArguments { runtime, targets, policy, load, duration, timer_slack, common, .. } = arguments;
    none_twice("--runtime", &runtime)?;
    none_twice("--targets", &targets)?;
    none_twice("--policy", &policy)?;
    none_twice("--load", &load)?;
    let default = Plan::default();
    Ok(Plan {
        title: "sleep error".to_owned(),
        conditions: Conditions { timer_slack, ..common.conditions() },
        repetitions: 1,
        duration: duration.unwrap_or(DURATION),
        min_cycles: duration.is_none().then_some(SLEEPS),
        cpus: common.cpus,
        axes: Axes { kernel: vec![Kernel::Running], load, policy, period: targets, runtime, ..default.axes },
        require: common.require.unwrap_or_default(),
        ..default
    })
}

fn none_twice<T: Eq + Hash + Display>(option: &str, values: &[T]) -> Result<(), String> {
    let mut seen = HashSet::new();
    let twice = values.iter().find(|value| !seen.insert(*value));
    twice.map_or(Ok(()), |value| Err(format!("{option}: duplicate value `{value}`")))
}
