//! `punctual frontier`: the smallest period that this machine keeps without a missed cycle, searched for and confirmed.

use super::arguments::{Format, FrontierArguments};
use super::recover::take_machine;
use super::start::{header, holder};
use super::{Outcome, consent, note, output};
use crate::campaign::{Child, Executor, Stop};
use crate::report::Searched;
use analysis::frontier::{self, Asked, Frontier, Search, Step};
use indicatif::{ProgressBar, ProgressStyle};
use model::{Axes, Cell, Ended, Kernel, Method, Period, Plan, Record, Span};
use std::error::Error;
use std::time::SystemTime;

/// The exit status of a search that found nothing, or was broken off: a verdict's "inconclusive".
const NOT_FOUND: u8 = 3;

pub(super) fn frontier(arguments: FrontierArguments) -> Outcome {
    let stop = Stop::on_signals()?;
    let FrontierArguments { method, from, to, confirm, resolution, wait, yes, format, .. } = arguments;
    // setitimer(2) takes microseconds.
    let unit = Span(if method == Method::Itimer { 1_000 } else { 1 });
    let asked = Asked { from, to, unit, confirm, resolution };
    asked.check()?;
    if method.is_relative() {
        return Err(format!(
            "{method} has no due times that could be missed; ask for one that waits until an instant, like timerfd"
        )
        .into());
    }
    if method == Method::Deadline {
        return Err(
            "method deadline has the period of its policy, which cannot be searched; ask for another method".into()
        );
    }
    let header = header(plan(arguments), false, SystemTime::now())?;
    consent::permit_floods(&header, yes)?;
    let cell = header.cells.first().ok_or("nothing to measure")?;
    Cell { period: from, ..cell.clone() }.check()?;
    let trials = asked.usual_trials();
    let lock = take_machine(wait)?;
    lock.say(&holder(&header, usize::try_from(trials)?));
    let (label, Cell { method, cpus, duration, .. }) = (cell.label(), cell);
    note(format_args!(
        "{label}, {method}, on CPU {cpus}: about {trials} trials of {duration}, more when stalls come by chance"
    ));

    let mut search = Search::new(asked);
    let line = ProgressBar::no_length();
    line.set_style(ProgressStyle::with_template("{msg}")?);
    let frontier = loop {
        match search.step() {
            Step::Done(frontier) => break Some(frontier),
            Step::Measure(period, purpose) => {
                let n = search.trials().len() + 1;
                line.set_message(format!("trial {n}: {} ({purpose})", in_words(period)));
                let Some(outcome) = trial(cell, period, &stop)? else { break None };
                search.take(outcome);
                if line.is_hidden() {
                    note(format_args!("{n:>5}  {:>8}  {purpose:<7}  {outcome}", in_words(period)));
                }
            }
        }
    };
    line.finish_and_clear();
    let searched = Searched { header: &header, cell, asked: &asked, search: &search };
    let mut text = Vec::new();
    match format {
        Format::Text => searched.text(&mut text, output::style(false))?,
        Format::Json => output::json(&mut text, &searched.json())?,
    }
    output::write(&text)?;
    Ok(if matches!(frontier, Some(Frontier::Confirmed(_))) { 0 } else { NOT_FOUND })
}

/// One measurement of one period; `None` when it was broken off, since what it would have missed is not known.
fn trial(cell: &Cell, period: Period, stop: &Stop) -> Result<Option<frontier::Outcome>, Box<dyn Error>> {
    if stop.is_asked() {
        return Ok(None);
    }
    match Child.execute(&Cell { period, ..cell.clone() }, 0, None, stop, &mut |_| ()) {
        Ok(Record { ended: Ended::Interrupted, .. }) => Ok(None),
        Ok(record) => Ok(Some(frontier::Outcome::of(&record))),
        // What a cell says that is told to stop is no failure of its own.
        Err(_) if stop.is_asked() => Ok(None),
        Err(err) => Err(format!("a trial of {period}: {err}").into()),
    }
}

fn in_words(period: Period) -> String {
    analysis::wording::duration(period.ns() as f64)
}

/// The plan of every trial, with the longest period.
fn plan(arguments: FrontierArguments) -> Plan {
    arguments.load.ask(Plan {
        title: format!("frontier {}", arguments.method),
        repetitions: 1,
        duration: arguments.duration,
        warm_up: arguments.warm_up,
        seed: None,
        cpus: arguments.cpus,
        timer_slack: arguments.timer_slack,
        cpu_dma_latency_us: arguments.cpu_dma_latency.map_or(Plan::default().cpu_dma_latency_us, |asked| asked.0),
        axes: Axes {
            kernel: vec![Kernel::Running],
            load: Vec::new(),
            policy: vec![arguments.policy],
            period: vec![arguments.to],
            method: vec![arguments.method],
            runtime: Vec::new(),
        },
        prepare: arguments.prepare.unwrap_or_default(),
        ..Plan::default()
    })
}
