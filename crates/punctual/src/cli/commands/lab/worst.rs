//! `punctual lab worst`: searches the longest delays of wake-ups in virtual time.

use super::TestCell;
use crate::cli::arguments::{Format, LabSearchCell, LabWorstArguments};
use crate::cli::terminal::{ERROR, Outcome, note, output};
use punctual_analysis::wording::{count, duration, things};
use punctual_campaign::Session;
use punctual_lab::{Limit, Monitor, Search};
use punctual_model::{Cell, Delay, DelayKind, Kernel, LongestDelays, Period, Span, Task};
use punctual_report::SEARCH_LIMITS;
use std::error::Error;
use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

/// Period of the sampled thread: it meets each delay that is longer. Shorter ones cost more, but sample more wake-ups.
const PERIOD: Span = Span(50_000);
/// Measured time of a guest: ten thousand wake-ups.
const DURATION: Span = Span(500_000_000);

pub(super) fn worst(arguments: LabWorstArguments) -> Outcome {
    let LabWorstArguments { cell, budget, top, seed, state, format } = arguments;
    let limit = Limit { budget, top: top.into(), seed };
    let found = in_search(cell, |search, monitor| {
        let symbols = search.symbols(monitor)?;
        Ok(search.longest(limit, &symbols, state.as_deref(), monitor)?)
    })?;
    let mut text = Vec::new();
    match format {
        Format::Json => output::json(&mut text, &found)?,
        Format::Text => text = said(&found).into_bytes(),
    }
    output::write(&text)?;
    Ok(if found.delays.is_empty() { ERROR } else { 0 })
}

/// Takes the machine and passes the search of this cell to `act`.
pub(super) fn in_search<T>(
    cell: LabSearchCell,
    act: impl FnOnce(&Search, Monitor<'_>) -> Result<T, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    let LabSearchCell { kernel, load, policy } = cell;
    let asked = TestCell {
        kernel,
        load,
        policy,
        period: Period::try_from(PERIOD)?,
        task: Task::CLOCK_NANOSLEEP,
        duration: DURATION,
        blocks: 1,
    };
    in_lab(asked, None, act)
}

/// Takes the machine and passes the search of this cell of a run to `act`.
pub(super) fn in_run<T>(
    cell: &Cell,
    act: impl FnOnce(&Search, Monitor<'_>) -> Result<T, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    let Cell { kernel, load, policy, period, task, duration, .. } = cell.clone();
    in_lab(TestCell { kernel, load, policy, period, task, duration, blocks: 1 }, Some(cell), act)
}

fn in_lab<T>(
    asked: TestCell,
    of_run: Option<&Cell>,
    act: impl FnOnce(&Search, Monitor<'_>) -> Result<T, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    let session: Session = asked.begin("lab worst", true)?;
    let cell = of_run.unwrap_or(session.cell());
    let Kernel::Lab(kernel) = &cell.kernel else { return Err("no kernel of the lab".into()) };
    let stop = session.stop();
    let is_stopped = || stop.flag().load(Relaxed);
    let monitor = Monitor { is_stopped: &is_stopped, say: &|line| note(line) };
    act(&Search::new(cell, kernel, monitor)?, monitor)
}

fn ns(ns: u64) -> String {
    duration(ns as f64)
}

fn said(found: &LongestDelays) -> String {
    let LongestDelays { kernel, load, policy, .. } = found;
    let mut text = format!("{SEARCH_LIMITS}\n");
    let condition = format!("{kernel}; {load}, {policy}; seed {}", found.seed);
    let _ = match found.delays.first() {
        Some(longest) => writeln!(
            text,
            "longest delay found: {}, {} in {} ({condition})",
            ns(longest.latency_ns),
            longest.kind.name().replace('-', " "),
            longest.begins
        ),
        None => writeln!(text, "no late wake-up found ({condition})"),
    };
    let _ = writeln!(
        text,
        "{} sampled wake-ups in {}: maximum {}; {} moved ones; {} of virtual time",
        count(found.sampled),
        things(found.guests.into(), "guest"),
        ns(found.sampled_max_ns),
        count(found.moved),
        ns(found.searched_ns)
    );
    for failed in &found.failed {
        let _ = writeln!(text, "failed: {failed}");
    }
    let Some(longest) = found.delays.first() else { return text };
    text += "\n   latency ns  kind            part ns  reached  witness           begins in, most in\n";
    found.delays.iter().for_each(|delay| row(&mut text, delay));
    text += &composed(found, longest);
    let _ = writeln!(
        text,
        "\npunctual lab film \"{kernel}\" --load \"{load}\" --policy {policy} --witness {} --out film",
        longest.witness
    );
    text
}

fn row(text: &mut String, delay: &Delay) {
    let Delay { latency_ns, kind, kind_instructions, reached, begins, function, .. } = delay;
    let at_least = if delay.is_whole { ' ' } else { '>' };
    let most = if begins == function { String::new() } else { format!(", {function}") };
    let (kind, witness) = (kind.name().replace('-', " "), delay.witness.to_string());
    let _ = writeln!(
        text,
        "{at_least}{latency_ns:>12}  {kind:<14} {kind_instructions:>8}  {reached:>7}  {witness:<16}  {begins}{most}"
    );
    if delay.path.len() > 1 {
        let _ = writeln!(text, "{:>15}called by {}", "", delay.path.join(" > "));
    }
}

/// The sum of the longest of each kind, beside the longest delay with a witness.
fn composed(found: &LongestDelays, longest: &Delay) -> String {
    let parts = DelayKind::ALL.into_iter().zip(found.longest_of_kind).filter(|(_, instructions)| *instructions > 0);
    let words: Vec<_> =
        parts.clone().map(|(kind, instructions)| format!("{} {instructions}", kind.name().replace('-', " "))).collect();
    let sum: u64 = parts.map(|(_, instructions)| instructions).sum();
    format!(
        "\nwith a witness {}; composed {} ({}), {} more: assumes that the longest found of each kind can follow each \
         other in one wake-up, once each, and that none is longer\n",
        ns(longest.latency_ns),
        ns(sum),
        words.join(" + "),
        ns(sum.saturating_sub(longest.latency_ns))
    )
}
