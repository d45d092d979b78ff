//! `punctual measure sleep`: languages and targets, one cell each, in a campaign of one block.

use super::arguments::SleepArguments;
use super::progress::Lines;
use super::{Outcome, consent, note, output};
use campaign::{CampaignError, Child, Limits, Request, Session};
use model::{Axes, Conditions, Header, Kernel, Plan, Span};
use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;

/// How long a target is measured unless told, and how many sleeps it gets at least.
const DURATION: Span = Span(2_000_000_000);
const SLEEPS: u64 = 5;

pub(super) fn sleep(arguments: SleepArguments) -> Outcome {
    let (out, samples) = (arguments.out.clone(), arguments.samples);
    let (wait, yes, format) = (arguments.common.wait, arguments.common.yes, arguments.common.format);
    let permit = |header: &Header| {
        consent::permit_floods(header, yes)?;
        output::check(header, format)
    };
    let plan = plan(arguments)?;
    let request = Request { plan, samples, at_most: None, wait, permit: &permit, note: &|line| note(line) };
    let mut session = Session::begin(request)?;
    out.as_deref().map(|dir| session.keep_in(dir)).transpose()?;
    let mut lines = Lines::new(&session.header, 0);
    let result = session.carry_out(&mut Child, &mut lines, Limits::default());
    lines.finish();
    let Session { header, entries, .. } = &session;
    match (result, &out) {
        (Ok(()), _) => {}
        // Half an hour of measuring is not thrown away because of the last minute.
        (Err(err), None) if !entries.is_empty() => {
            output::show(header, entries, format.into())?;
            return Err(err.into());
        }
        (Err(err @ CampaignError::Interrupted { .. }), Some(dir)) => {
            return Err(format!("{err}; go on with: punctual run --resume --out {}", dir.display()).into());
        }
        (Err(err), _) => return Err(err.into()),
    }
    let status = output::show(header, entries, format.into())?;
    out.iter().for_each(|dir| output::name_run(header, dir));
    Ok(output::status_with_failures(status, header))
}

/// What the options mean as a plan.
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
    twice.map_or(Ok(()), |value| Err(format!("{option}: `{value}` stands twice")))
}
