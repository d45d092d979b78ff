//! The request of `punctual tune`: the plan with its knobs.

use crate::cli::arguments::TuneArguments;
use crate::cli::commands::consent::Origin;
use crate::cli::commands::plan;
use crate::cli::terminal::note;
use punctual_analysis::comparison::{MIN_OF_EACH, Metric};
use punctual_host::HostFs;
use punctual_model::{Axes, Conditions, CpuSet, Kernel, Knob, Level, Plan, Span, Task};
use std::error::Error;

/// The plan that is asked for, with its knobs, and its origin if it is a file. Errors: if it cannot be read, has no
/// knobs, or asks for something that an experiment cannot have.
pub(super) fn asked(arguments: &TuneArguments) -> Result<(Plan, Option<Origin>), Box<dyn Error>> {
    let (mut plan, origin) = match &arguments.plan {
        Some(path) => plan::portable(path, &[])?,
        None => (without_plan(arguments), None),
    };
    plan.seed = arguments.seed.or(plan.seed);
    plan.cpus = arguments.cpus.clone().or(plan.cpus);
    let measured = plan.cpus.clone().map_or_else(|| punctual_sys::sched::affinity(0), Ok)?;
    let period = plan.axes.period.iter().max().map_or(Span(0), |period| period.span());
    let quick = || least_duration(arguments.response, period, &measured).max(Span(1_000_000_000));
    let duration = arguments.duration.or_else(|| arguments.quick.then(quick));
    if let Some(duration) = duration {
        (plan.duration, plan.cycles, plan.min_cycles) = (duration, None, None);
    }
    if plan.knobs.is_empty() && arguments.plan.is_some() {
        return Err("the plan has no knobs; name them in its table [knobs] (punctual help guide tune)".into());
    }
    if plan.knobs.is_empty() {
        plan.knobs = knobs_of_this_machine(&plan, &measured)?;
    }
    if plan.knobs.len() > Knob::MOST {
        return Err(format!("{} knobs are named, at most {} fit; leave some out", plan.knobs.len(), Knob::MOST).into());
    }
    for (index, knob) in plan.knobs.iter().enumerate() {
        if plan.knobs.iter().take(index).any(|other| other.key == knob.key) {
            return Err(format!("duplicate knob `{}`; give each once", knob.key).into());
        }
    }
    Ok((plan, origin))
}

/// Wake-ups that a measurement needs for this number; 0 if any do.
pub(super) fn wake_ups_needed(metric: Metric) -> u64 {
    // One of so many lies above the quantile.
    let one_of = match metric {
        Metric::Quantile(Level::P50) => 2,
        Metric::Quantile(Level::P99) => 100,
        Metric::Quantile(Level::P999) => 1_000,
        Metric::Quantile(_) | Metric::Max | Metric::Misses | Metric::Lost => 0,
    };
    MIN_OF_EACH * one_of
}

/// The shortest measurement of threads with this period on these CPUs that has enough wake-ups for the number.
pub(super) fn least_duration(metric: Metric, period: Span, cpus: &CpuSet) -> Span {
    let cpus = u64::try_from(cpus.len()).unwrap_or(1).max(1);
    Span(wake_ups_needed(metric).div_ceil(cpus).saturating_mul(period.ns()))
}

/// The plan of the options alone.
fn without_plan(arguments: &TuneArguments) -> Plan {
    let plan = Plan {
        title: "tune".to_owned(),
        duration: Span(5_000_000_000),
        axes: Axes {
            kernel: vec![Kernel::Running],
            load: Vec::new(),
            policy: vec![arguments.policy],
            period: vec![arguments.period],
            task: vec![Task::CLOCK_NANOSLEEP],
            runtime: Vec::new(),
            prepare: Vec::new(),
            only: Vec::new(),
        },
        knobs: arguments.knob.clone(),
        // Idle states are the machine's own, because they are among what is tried.
        conditions: Conditions { cpu_dma_latency_us: None, ..Plan::default().conditions },
        ..Plan::default()
    };
    arguments.load.clone().ask(plan)
}

/// What this machine and user can change for a cell, and what a program itself can. Errors: if there is nothing.
fn knobs_of_this_machine(plan: &Plan, measured: &CpuSet) -> Result<Vec<Knob>, Box<dyn Error>> {
    let knob = |key: String, as_is: &str, changed: &str| Knob::of(key, vec![as_is.to_owned(), changed.to_owned()]);
    let mut knobs = Vec::new();
    if plan.axes.policy.iter().all(|policy| !policy.is_realtime()) {
        knobs.push(knob("timer_slack".to_owned(), "50us", "1ns")?);
    }
    if punctual_sys::process::effective_user_id() == 0 {
        knobs.push(knob("cpu_dma_latency".to_owned(), Knob::AS_IS, "0us")?);
        let settings = punctual_host::knobs(&HostFs::here(), measured);
        for (key, value) in settings {
            knobs.push(knob(format!("{}{key}", Knob::PREPARE), Knob::AS_IS, value)?);
        }
    } else {
        note("settings of the machine belong to root: only those of the program are tried");
    }
    if knobs.is_empty() {
        return Err("nothing to try: no setting of this machine can be changed by you; name knobs with --knob".into());
    }
    Ok(knobs)
}
