//! `punctual floor`: what takes a CPU however the machine is set up, what the kernel takes, and what can be treated.

use super::run_directory;
use crate::cli::arguments::FloorArguments;
use crate::cli::terminal::progress::Lines;
use crate::cli::terminal::{Outcome, note};
use punctual_analysis::{FLOOR, FLOOR_SETTINGS, floor_of, floor_prepare};
use punctual_campaign::{Limits, Request, Session};
use punctual_host::{HostFs, SmiCounter, changes_something, keep_floor};
use punctual_model::{
    Axes, Conditions, CpuSet, Explain, Header, Kernel, Load, Period, Plan, Policy, Prepare, Selector, Span, Task,
};
use std::error::Error;

/// Policy and method of the wake-ups that show idle states, and the loop that never waits.
const WAKE_UPS: (&str, &str) = ("fifo:80", "clock_nanosleep");
const LOOP: &str = "noise";
/// Shortest time of one cell. The threshold of late wake-ups is known after a second.
const SHORTEST: Span = Span(500_000_000);

pub(super) fn floor(arguments: FloorArguments) -> Outcome {
    let fs = HostFs::here();
    let plan = plan(&arguments, &fs)?;
    let permit = |_: &Header| Ok(());
    let request = Request::here(plan, arguments.wait, &permit, &|line| note(line));
    let mut session = Session::begin(request)?;
    if session.header.host.hypervisor.is_none()
        && let Some(Err(why)) = session.cell().cpus.iter().next().map(SmiCounter::open)
    {
        note(format_args!("{why}; gaps without an event stay unknown"));
    }
    if session.header.host.cpus_online.as_ref().is_some_and(|cpus| cpus.len() <= 1) {
        note("one CPU only: what the threads of punctual itself take there counts as treatable");
    }
    let dir = run_directory::keep(&mut session, &arguments.keep)?;
    let mut lines = Lines::new(&session.header, 0);
    let result = session.carry_out(lines.say_above(), &mut lines, Limits::default());
    lines.finish();
    if let Err(err) = result {
        session.discard_empty();
        return Err(run_directory::error(&session, &err, dir.as_deref()));
    }
    if let Some(floor) = floor_of(&session.header, &session.entries) {
        keep_floor(&fs, &floor).unwrap_or_else(note);
    }
    run_directory::finish(&session, dir.as_deref(), arguments.format.into())
}

/// The plan: the loop and the wake-ups on one CPU, as the machine is, with each setting that can be switched here, and
/// with all of them.
fn plan(arguments: &FloorArguments, fs: &HostFs) -> Result<Plan, Box<dyn Error>> {
    let usable = punctual_sys::sched::affinity(0)?;
    let last = usable.iter().last().ok_or("this process may use no CPU")?;
    let cpus: CpuSet = [arguments.cpu.unwrap_or(last)].into_iter().collect();
    if !cpus.minus(&usable).is_empty() {
        return Err(format!("cannot use CPU {cpus}: this process may use {usable}").into());
    }
    let each = FLOOR_SETTINGS.map(|(_, changes)| (changes, floor_prepare(changes)));
    let held: Vec<_> = each.into_iter().filter(|(_, prepare)| changes_something(fs, prepare, &cpus)).collect();
    let mut all = Prepare::default();
    for (changes, _) in &held {
        changes.iter().try_for_each(|(key, value)| all.set(key, value))?;
    }
    let mut arms = vec![Prepare::default()];
    arms.extend(held.into_iter().map(|(_, prepare)| prepare).chain([all]));
    let mut seen: Vec<Prepare> = Vec::new();
    arms.retain(|arm| {
        !seen.contains(arm) && {
            seen.push(arm.clone());
            true
        }
    });
    let cells = 2 * arms.len() as u64;
    let duration = Span(arguments.time.ns() / cells);
    if duration < SHORTEST {
        let least = Span(SHORTEST.ns() * cells);
        return Err(format!("invalid --for `{}`: expected at least {least} for {cells} cells", arguments.time).into());
    }
    let (wakes, method): (Policy, Task) = (WAKE_UPS.0.parse()?, WAKE_UPS.1.parse()?);
    let looping: Task = LOOP.parse()?;
    let only =
        |policy: Policy, task: &Task| -> Result<Selector, String> { format!("policy={policy},method={task}").parse() };
    let mut policy = vec![arguments.policy, wakes];
    policy.dedup();
    Ok(Plan {
        title: FLOOR.to_owned(),
        repetitions: 1,
        duration,
        cpus: Some(cpus),
        conditions: Conditions {
            explain: Some(Explain::default()),
            cpu_dma_latency_us: None,
            ..Plan::default().conditions
        },
        axes: Axes {
            kernel: vec![Kernel::Running],
            load: vec![Load::NONE],
            only: vec![only(arguments.policy, &looping)?, only(wakes, &method)?],
            policy,
            period: vec![Period::try_from(Span(1_000_000))?],
            task: vec![looping, method],
            prepare: arms,
            ..Plan::default().axes
        },
        ..Plan::default()
    })
}
