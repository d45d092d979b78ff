//! `punctual frontier`: searches and confirms the smallest period without a missed cycle on this machine.

use super::consent;
use crate::cli::arguments::{Format, FrontierArguments};
use crate::cli::terminal::{Outcome, note, output};
use indicatif::{ProgressBar, ProgressStyle};
use punctual_analysis::frontier::{self, Frontier, Search, SearchParameters, Step};
use punctual_analysis::wording::duration;
use punctual_campaign::{Child, Executor, Request, Session, Stop};
use punctual_model::{Axes, Cell, Conditions, Ended, Header, Kernel, Method, Period, Plan, Record, Span};
use punctual_report::SearchReport;
use std::error::Error;

/// Exit status of a search without result, equal to that of an inconclusive verdict.
const NOT_FOUND: u8 = 3;

pub(super) fn frontier(arguments: FrontierArguments) -> Outcome {
    let asked = asked(&arguments)?;
    let FrontierArguments { from, wait, yes, format, .. } = arguments;
    let task = arguments.task.label();
    let permit = |header: &Header| {
        consent::permit_floods(header, yes)?;
        let cell = header.cells.first().ok_or("nothing to measure")?;
        Ok(Cell { period: from, ..cell.clone() }.check()?)
    };
    let plan = plan(arguments);
    let request = Request::here(plan, wait, &permit, &|line| note(line));
    let session = Session::begin(request)?;
    let trials = asked.usual_trials();
    session.announce(usize::try_from(trials)?);
    let cell = session.cell();
    let (label, cpus, time) = (cell.label(), cell.cpus.named(), duration(cell.duration.ns() as f64));
    note(format_args!("{label}, {task}, on {cpus}: about {trials} trials of {time}, more if stalls are random"));
    let mut search = Search::new(asked);
    let frontier = carry_out(&mut search, &session)?;
    let searched = SearchReport { header: &session.header, cell, asked: &asked, search: &search };
    let mut text = Vec::new();
    match format {
        Format::Text => searched.text(&mut text, output::style(false))?,
        Format::Json => output::json(&mut text, &searched.json())?,
    }
    output::write(&text)?;
    Ok(if matches!(frontier, Some(Frontier::Confirmed(_))) { 0 } else { NOT_FOUND })
}

/// The parameters of the search. Errors: if the range is empty, or the method has no due times whose period could be
/// searched.
fn asked(arguments: &FrontierArguments) -> Result<SearchParameters, Box<dyn Error>> {
    let FrontierArguments { ref task, from, to, confirm, resolution, .. } = *arguments;
    // setitimer(2) takes microseconds.
    let unit = Span(if task.method() == Some(Method::Itimer) { 1_000 } else { 1 });
    let asked = SearchParameters { from, to, unit, confirm, resolution };
    asked.check()?;
    let is_handoff = task.method().is_some_and(|method| method.handoff().is_some());
    if !task.misses_when_late() || !task.has_latencies() || task.is_noise() || is_handoff {
        return Err(format!(
            "unsupported: {task} has no due times that can be missed; use a method with absolute times, like timerfd"
        )
        .into());
    }
    if task.method() == Some(Method::Deadline) {
        return Err("unsupported: method deadline, whose period is that of its policy; use another method".into());
    }
    Ok(asked)
}

/// Runs the trials of `search` with a line for each; `None` if interrupted.
fn carry_out(search: &mut Search, session: &Session) -> Result<Option<Frontier>, Box<dyn Error>> {
    let line = ProgressBar::no_length();
    line.set_style(ProgressStyle::with_template("{msg}")?);
    let frontier = loop {
        match search.step() {
            Step::Done(frontier) => break Some(frontier),
            Step::Measure(period, purpose) => {
                let n = search.trials().len() + 1;
                let begins = format!("trial {n}: {} ({purpose})", duration(period.ns() as f64));
                // The outcome is in the table at the end, once.
                if line.is_hidden() {
                    note(&begins);
                }
                line.set_message(begins);
                let Some(outcome) = trial(session.cell(), period, session.stop())? else { break None };
                search.take(outcome);
            }
        }
    };
    line.finish_and_clear();
    Ok(frontier)
}

/// Measures one period; `None` if interrupted, because the remaining misses are unknown.
fn trial(cell: &Cell, period: Period, stop: &Stop) -> Result<Option<frontier::Outcome>, Box<dyn Error>> {
    if stop.is_requested() {
        return Ok(None);
    }
    match Child.execute(&Cell { period, ..cell.clone() }, 0, None, stop, &mut |_| ()) {
        Ok(Record { ended: Ended::Interrupted, .. }) => Ok(None),
        Ok(record) => Ok(Some(frontier::Outcome::of(&record).map_err(|why| format!("a trial of {period}: {why}"))?)),
        // The error of an interrupted cell is not a failure.
        Err(_) if stop.is_requested() => Ok(None),
        Err(err) => Err(format!("a trial of {period}: {err}").into()),
    }
}

/// The plan of every trial, with the longest period.
fn plan(arguments: FrontierArguments) -> Plan {
    arguments.load.ask(Plan {
        title: format!("frontier {}", arguments.task),
        repetitions: 1,
        duration: arguments.duration,
        seed: None,
        cpus: arguments.cpus,
        axes: Axes {
            kernel: vec![Kernel::Running],
            load: Vec::new(),
            policy: vec![arguments.policy],
            period: vec![arguments.to],
            task: vec![arguments.task],
            runtime: Vec::new(),
            prepare: Vec::new(),
            only: Vec::new(),
        },
        conditions: Conditions {
            warm_up: arguments.warm_up,
            timer_slack: arguments.timer_slack,
            cpu_dma_latency_us: arguments
                .cpu_dma_latency
                .map_or(Plan::default().conditions.cpu_dma_latency_us, |asked| asked.0),
            prepare: arguments.prepare.unwrap_or_default(),
            ..Plan::default().conditions
        },
        ..Plan::default()
    })
}
