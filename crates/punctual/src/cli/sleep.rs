//! `punctual measure sleep`: languages and targets, one cell each, in a campaign of one block.

use super::arguments::SleepArguments;
use super::progress::Lines;
use super::recover::take_machine;
use super::start::{header, holder};
use super::{Outcome, consent, note, output};
use crate::campaign::{self, CampaignError, Child, Observer, Stop};
use crate::store;
use model::{Axes, Entry, Kernel, Plan, Planned, Progress, Span};
use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;
use std::time::SystemTime;

/// How long a target is measured unless told, and how many sleeps it gets at least.
const DURATION: Span = Span(2_000_000_000);
const SLEEPS: u64 = 5;

pub(super) fn sleep(arguments: SleepArguments) -> Outcome {
    let stop = Stop::on_signals()?;
    let (out, samples) = (arguments.out.clone(), arguments.samples);
    let (wait, yes, format) = (arguments.common.wait, arguments.common.yes, arguments.common.format);
    let plan = plan(arguments)?;
    // A mistake is said at once, not when the machine is free; what the machine is like is looked at then.
    let asked = header(plan.clone(), samples, SystemTime::now())?;
    consent::permit_floods(&asked, yes)?;
    output::check(&asked, format)?;
    let lock = take_machine(wait)?;
    let header = header(plan, samples, SystemTime::now())?;
    let mut writer = out.as_deref().map(|dir| store::create(dir, &header)).transpose()?;
    lock.say(&holder(&header, header.n_measurements()));
    let mut watch = Watch { lines: Lines::new(&header, 0), entries: Vec::new() };
    let result = campaign::carry_out(&header, Vec::new(), writer.as_mut(), &mut Child, &mut watch, &stop, &|_| false);
    watch.lines.finish();
    let entries = match result {
        Ok(entries) => entries,
        // Half an hour of measuring is not thrown away because of the last minute.
        Err(err) if out.is_none() && !watch.entries.is_empty() => {
            output::show(&header, &watch.entries, format.into())?;
            return Err(err.into());
        }
        Err(err @ CampaignError::Interrupted { .. }) => {
            let dir = out.map(|dir| format!("; go on with: punctual run --resume --out {}", dir.display()));
            return Err(format!("{err}{}", dir.unwrap_or_default()).into());
        }
        Err(err) => return Err(err.into()),
    };
    let status = output::show(&header, &entries, format.into())?;
    if let Some(dir) = out {
        note(dir.join("run.jsonl").display());
        output::name_samples(&header, &dir);
    }
    Ok(status)
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
        repetitions: 1,
        duration: duration.unwrap_or(DURATION),
        min_cycles: duration.is_none().then_some(SLEEPS),
        cpus: common.cpus,
        timer_slack,
        cpu_dma_latency_us: common.cpu_dma_latency.map_or(default.cpu_dma_latency_us, |asked| asked.0),
        axes: Axes { kernel: vec![Kernel::Running], load, policy, period: targets, runtime, ..default.axes },
        prepare: common.prepare.unwrap_or_default(),
        require: common.require.unwrap_or_default(),
        ..default
    })
}

fn none_twice<T: Eq + Hash + Display>(option: &str, values: &[T]) -> Result<(), String> {
    let mut seen = HashSet::new();
    let twice = values.iter().find(|value| !seen.insert(*value));
    twice.map_or(Ok(()), |value| Err(format!("{option}: `{value}` stands twice")))
}

/// Shows how it goes, and holds on to what is there.
struct Watch {
    lines: Lines,
    entries: Vec<Entry>,
}

impl Observer for Watch {
    fn starts(&mut self, planned: &Planned, done: usize) {
        self.lines.starts(planned, done);
    }

    fn progress(&mut self, progress: &Progress) {
        self.lines.progress(progress);
    }

    fn recorded(&mut self, entry: &Entry) {
        self.entries.push(entry.clone());
        self.lines.recorded(entry);
    }
}
