//! `punctual tune`: which settings change the latency, by a screening and a confirmation.

mod keep;

use super::arguments::{Format, TuneArguments};
use super::consent::{self, Origin};
use super::progress::Lines;
use super::{Outcome, note, output, plan, run_directory};
use analysis::tune::{self, KnobAnswer};
use campaign::{Limits, Request, Session};
use host::HostFs;
use model::{Axes, Cell, Conditions, Entry, Header, Kernel, Knob, Plan, Span, Task};
use report::TuneReport;
use std::error::Error;
use std::path::Path;

/// Exit status if a knob is undecided, equal to that of an inconclusive verdict.
const UNDECIDED: u8 = 3;

pub(super) fn tune(arguments: TuneArguments) -> Outcome {
    let (plan, origin) = asked(&arguments)?;
    let knobs = plan.knobs.clone();
    let design = tune::design(&knobs).ok_or("no knobs")?;
    let screening = cells(&plan, &design.runs)?;
    let permit = |header: &Header| {
        let all = Header { cells: screening.clone(), ..header.clone() };
        origin.iter().try_for_each(|origin| origin.permit(&all, arguments.yes))?;
        consent::permit_floods(&all, arguments.yes)?;
        Ok(())
    };
    let as_is = plan.with_knobs(&vec![false; knobs.len()])?;
    let plan_as_is = Plan { knobs: knobs.clone(), ..as_is };
    let request = Request::here(plan_as_is, arguments.wait, &permit, &|line| note(line));
    let mut session = Session::begin(request)?;
    let dir =
        arguments.out.clone().unwrap_or_else(|| run_directory::new_directory(run_directory::started(&session.header)));
    let blocks = arguments.blocks.unwrap_or(if arguments.quick { 2 } else { 3 });
    note(format_args!("screening of {} knobs", knobs.len()));
    let (header, entries) = measure(&mut session, screening, blocks, &dir.join("screening"))?;
    let screened = tune::screened(&knobs, arguments.response, &entries, header.seed)?;
    let candidates = screened.candidates();
    let mut confirmed = Vec::new();
    if candidates.is_empty() {
        note("no knob shows a hint of an effect; nothing to confirm");
    } else {
        let names: Vec<_> =
            candidates.iter().filter_map(|index| knobs.get(*index)).map(|knob| knob.key.as_str()).collect();
        note(format_args!("confirmation of {}", names.join(", ")));
        let blocks = arguments.confirm.unwrap_or(if arguments.quick { 8 } else { 12 });
        let cells = cells(&plan, &tune::confirmation(&knobs, &candidates))?;
        (_, confirmed) = measure(&mut session, cells, blocks, &dir.join("confirmation"))?;
    }
    let tuned = tune::tuned(&knobs, screened, &confirmed);
    let cell = header.cells.iter().zip(&design.runs).find(|(_, run)| run.iter().all(|changed| !changed));
    let shown = TuneReport {
        header: &header,
        cell: cell.map(|(cell, _)| cell).ok_or("no cell as it is")?,
        tuned: &tuned,
        dir: &dir.display().to_string(),
    };
    let mut text = Vec::new();
    match arguments.format {
        Format::Text => shown.text(&mut text, output::style(false))?,
        Format::Json => output::json(&mut text, &shown.json())?,
    }
    output::write(&text)?;
    if let Some(keep) = &arguments.keep {
        keep::write(keep, &plan, &tuned, &confirmed)?;
    }
    let is_open = tuned.knobs.iter().any(|knob| matches!(knob.answer, KnobAnswer::Undecided { .. }));
    Ok(if is_open { UNDECIDED } else { 0 })
}

/// The plan that is asked for, with its knobs, and its origin if it is a file.
///
/// # Errors
/// If it cannot be read, has no knobs, or asks for something that an experiment cannot have.
fn asked(arguments: &TuneArguments) -> Result<(Plan, Option<Origin>), Box<dyn Error>> {
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
    let knob =
        |key: String, as_is: &str, changed: &str| Knob { key, as_is: as_is.to_owned(), changed: changed.to_owned() };
    let measured = plan.cpus.clone().map_or_else(|| sys::sched::affinity(0), Ok)?;
    let mut knobs = Vec::new();
    if plan.axes.policy.iter().all(|policy| !policy.is_realtime()) {
        knobs.push(knob("timer_slack".to_owned(), "50us", "1ns"));
    }
    if sys::process::effective_user_id() == 0 {
        knobs.push(knob("cpu_dma_latency".to_owned(), Knob::AS_IS, "0us"));
        let settings = host::knobs(&HostFs::here(), &measured);
        knobs.extend(
            settings.into_iter().map(|(key, value)| knob(format!("{}{key}", Knob::PREPARE), Knob::AS_IS, value)),
        );
    } else {
        note("settings of the machine belong to root: only those of the program are tried");
    }
    if knobs.is_empty() {
        return Err("nothing to try: no setting of this machine can be changed by you; name knobs with --knob".into());
    }
    Ok(knobs)
}

/// The cells of these combinations of levels.
///
/// # Errors
/// If a combination cannot be measured here; the combination is named.
fn cells(plan: &Plan, runs: &[Vec<bool>]) -> Result<Vec<Cell>, Box<dyn Error>> {
    let cell = |levels: &Vec<bool>| {
        let named = || {
            let values =
                plan.knobs.iter().zip(levels).map(|(knob, level)| format!("{}={}", knob.key, knob.value(*level)));
            values.collect::<Vec<_>>().join(", ")
        };
        campaign::only_cell(&plan.with_knobs(levels)?).map_err(|err| format!("with {}: {err}", named()).into())
    };
    runs.iter().map(cell).collect()
}

/// Measures these cells as a run in the new directory `dir`.
///
/// # Errors
/// If it ends early; what was measured stays in the directory.
fn measure(
    session: &mut Session,
    cells: Vec<Cell>,
    blocks: u32,
    dir: &Path,
) -> Result<(Header, Vec<Entry>), Box<dyn Error>> {
    session.measure_instead(cells, blocks);
    session.keep_in(dir)?;
    let mut lines = Lines::new(&session.header, 0);
    let result = session.carry_out(lines.say_above(), &mut lines, Limits::default());
    lines.finish();
    result.map_err(|err| run_directory::error(session, &err, Some(dir)))?;
    if let Some(failed) = session.header.failed.first() {
        return Err(
            format!("a measurement failed twice: {}; the others are in {}", failed.reason, dir.display()).into()
        );
    }
    Ok((session.header.clone(), std::mem::take(&mut session.entries)))
}
