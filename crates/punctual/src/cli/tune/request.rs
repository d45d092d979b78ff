//! The request of `punctual tune`: the plan with its knobs.

use super::super::arguments::TuneArguments;
use super::super::consent::Origin;
use super::super::{note, plan};
use host::HostFs;
use model::{Axes, Conditions, Kernel, Knob, Plan, Span, Task};
use std::error::Error;

/// The plan that is asked for, with its knobs, and its origin if it is a file.
///
/// # Errors
/// If it cannot be read, has no knobs, or asks for something that an experiment cannot have.
pub(super) fn asked(arguments: &TuneArguments) -> Result<(Plan, Option<Origin>), Box<dyn Error>> {
    let (mut plan, origin) = match &arguments.plan {
        Some(path) => plan::portable(path, &[])?,
        None => (without_plan(arguments), None),
    };
    plan.seed = arguments.seed.or(plan.seed);
    plan.cpus = arguments.cpus.clone().or(plan.cpus);
    let duration = arguments.duration.or(arguments.quick.then_some(Span(1_000_000_000)));
    if let Some(duration) = duration {
        (plan.duration, plan.cycles, plan.min_cycles) = (duration, None, None);
    }
    if plan.knobs.is_empty() && arguments.plan.is_some() {
        return Err("the plan has no knobs; name them in its table [knobs] (docs/tune.md)".into());
    }
    if plan.knobs.is_empty() {
        plan.knobs = knobs_of_this_machine(&plan)?;
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
            only: Vec::new(),
        },
        knobs: arguments.knob.clone(),
        // Idle states are the machine's own, because they are among what is tried.
        conditions: Conditions { cpu_dma_latency_us: None, ..Plan::default().conditions },
        ..Plan::default()
    };
    arguments.load.clone().ask(plan)
}

/// What this machine and user can change for a cell, and what a program itself can.
///
/// # Errors
/// If there is nothing.
fn knobs_of_this_machine(plan: &Plan) -> Result<Vec<Knob>, Box<dyn Error>> {
    let knob = |key: String, as_is: &str, changed: &str| Knob::of(key, vec![as_is.to_owned(), changed.to_owned()]);
    let measured = plan.cpus.clone().map_or_else(|| sys::sched::affinity(0), Ok)?;
    let mut knobs = Vec::new();
    if plan.axes.policy.iter().all(|policy| !policy.is_realtime()) {
        knobs.push(knob("timer_slack".to_owned(), "50us", "1ns")?);
    }
    if sys::process::effective_user_id() == 0 {
        knobs.push(knob("cpu_dma_latency".to_owned(), Knob::AS_IS, "0us")?);
        let settings = host::knobs(&HostFs::here(), &measured);
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
