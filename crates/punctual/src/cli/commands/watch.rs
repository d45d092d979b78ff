//! `punctual watch`: how late threads of other programs are, and why.

use super::again::again;
use super::explain::directory;
use super::measure::one;
use super::recorded::judge;
use crate::cli::arguments::WatchArguments;
use crate::cli::terminal::Outcome;
use crate::cli::terminal::output::{OutputOptions, SPIKES};
use punctual_model::{Axes, Conditions, Explain, Kernel, Period, Plan, Policy, Span, Task, Watch, WatchTarget};

/// Period of the cell where none is given; that of each thread is in its record.
const PERIOD: Span = Span(1_000_000);

pub(super) fn watch(arguments: WatchArguments) -> Outcome {
    if arguments.again {
        return again(arguments.run.as_deref(), arguments.common.format);
    }
    if let Some(file) = &arguments.from {
        let (watch, above, keep) = (arguments.watch()?, arguments.above.0, arguments.most);
        return judge(file, watch, (above, keep, arguments.marks), arguments.all, arguments.common.format);
    }
    if let Some(word) = &arguments.run {
        let word = punctual_model::plain(&word.display().to_string()).into_owned();
        let hint = format!("a program to watch comes after `--`: punctual watch -- {word}");
        return Err(format!("unknown argument `{word}`: {hint}").into());
    }
    let watch = arguments.watch()?;
    let WatchArguments { above, most, no_explain, all, export, record, keep, common, duration, load, .. } = arguments;
    let export = export.map(directory).transpose()?;
    let (stacks, captures) = (arguments.stacks, arguments.captures.captures);
    let asked = Explain { above: above.0, keep: most, stacks, export, captures, ..Explain::default() };
    asked.check()?;
    let policy = policy(&watch, arguments.policy);
    let period = watch.period.map_or_else(|| Period::try_from(PERIOD), Ok)?;
    // The watched program is to run as it does without us: no idle state is kept away unless that is asked for.
    let dma_latency = common.cpu_dma_latency.and_then(|asked| asked.0);
    let plan = load.ask(Plan {
        title: format!("watch {}", watch.name()),
        repetitions: 1,
        duration,
        cycles: None,
        min_cycles: None,
        seed: None,
        cpus: common.cpus.clone(),
        axes: Axes {
            kernel: vec![Kernel::Running],
            load: Vec::new(),
            policy: vec![policy],
            period: vec![period],
            task: vec![Task::Watch(Box::new(watch))],
            runtime: Vec::new(),
            prepare: Vec::new(),
            only: Vec::new(),
        },
        require: common.require.unwrap_or_default(),
        conditions: Conditions {
            warm_up: arguments.warm_up,
            on_spike: arguments.on_spike,
            marks: arguments.marks,
            cpu_dma_latency_us: dma_latency,
            explain: (!no_explain).then_some(asked),
            ..common.conditions()
        },
        ..Plan::default()
    });
    let spikes = if all { usize::MAX } else { SPIKES };
    one(plan, &common, &keep, record.as_deref(), OutputOptions { all_findings: all, spikes, ..common.format.into() })
}

/// Policy of a started program; that of a running process, which is left as it is.
fn policy(watch: &Watch, asked: Policy) -> Policy {
    let WatchTarget::Pid(pid) = watch.target else { return asked };
    let policy = punctual_sys::sched::known_policy(pid);
    policy.filter(|policy| !matches!(policy, Policy::Deadline(_))).unwrap_or(asked)
}
