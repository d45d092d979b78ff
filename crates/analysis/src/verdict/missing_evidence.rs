//! Missing evidence of a cell: limits that cannot be shown to be met however small its numbers are.

use super::Limit;
use crate::findings::{NotSent, Several};
use crate::row::{Origin, Row};
use crate::summary::cell::CellSummary;
use crate::summary::imported::ImportedCell;
use crate::summary::instrument::InstrumentSummary;
use crate::summary::watched::{WatchSummary, WatchedSummary};
use crate::wording::{count, duration, things};
use punctual_model::{Level, Span, WatchSample};

/// Reason why `limit` cannot be shown to be met; `None` if it can.
pub(super) fn why(row: &Row<'_>, limit: Limit) -> Option<String> {
    match (row.origin, limit) {
        (_, Limit::Waiting(percent)) => waiting_unseen(row.own().and_then(|cell| cell.watch.as_ref()), percent),
        (Origin::Own(cell, _), limit) if let Some(instrument) = &cell.instrument => of_program(cell, instrument, limit),
        (Origin::Own(cell, _), _) if cell.cobalt.is_some_and(|cobalt| cobalt.mode_switches > 0) => {
            Some("its threads left primary mode of Cobalt".to_owned())
        }
        (Origin::Own(cell, _), _) if cell.cobalt.is_some_and(|cobalt| cobalt.unknown > 0) => {
            Some("a thread did not end, so that its mode switches are unknown".to_owned())
        }
        (Origin::Own(cell, _), limit) if let Some(watch) = &cell.watch => {
            let sample = cell.cell.task.watch().map(|watch| watch.sample);
            of_watched(watch, sample == Some(WatchSample::Response), limit)
        }
        (Origin::Own(cell, _), Limit::Quantile(level, _)) => of_answers(cell, level),
        (Origin::Own(..), _) => None,
        (Origin::Imported(cell, _), Limit::Max(limit)) => of_largest(cell, limit),
        (Origin::Imported(cell, _), Limit::Quantile(level, _)) => {
            let is_open = row.allows_interval(level) && row.quantiles.at(level).interval_ns().is_none();
            let why = match cell.steadiness.stretches {
                0 => "the file has no time series, so quantiles have no intervals",
                _ => "too few independent samples, so the quantile has no interval",
            };
            if is_open { Some(why.to_owned()) } else { of_due_times(cell) }
        }
        (Origin::Imported(..), Limit::MissesPerHour(_)) => Some("the file has no time series of misses".to_owned()),
    }
}

/// The delay of answers to triggers that were not sent is unknown: they may be at most half of the share allowed beyond
/// the limit.
fn of_answers(cell: &CellSummary, level: Level) -> Option<String> {
    let due = cell.samples + cell.missed.unwrap_or(0);
    let unsent = cell.response.as_ref()?.unsent;
    let is_untold =
        cell.samples > 0 && unsent as f64 > due as f64 * (1.0 - level.p()) / 2.0 && !cell.cell.task.misses_when_late();
    is_untold.then(|| format!("{level} is unknown: {}", NotSent { unsent, due }))
}

/// Without gaps in the trace, activations show whether limits are met; a quantile only if each thread alone meets it,
/// because a rare thread disappears among the activations of the others.
fn of_watched(watch: &WatchSummary, is_response: bool, limit: Limit) -> Option<String> {
    if watch.gaps > 0 {
        return Some("events of the watched threads were lost, so late activations may be missing".to_owned());
    }
    if is_response && let Some(why) = watch.threads.iter().find_map(|one| releases_unseen(one, limit)) {
        return Some(why);
    }
    match limit {
        Limit::Quantile(level, limit) if watch.threads.len() > 1 => {
            let within = |interval: (i64, i64)| u64::try_from(interval.1).unwrap_or(0) <= limit.ns();
            let meets = |one: &&WatchedSummary| one.response.at(level).interval_ns().is_some_and(within);
            let open = watch.threads.iter().find(|one| !meets(one))?;
            Some(format!(
                "{level} of thread {} alone is not shown to be within the limit; choose it with --thread",
                open.name
            ))
        }
        Limit::MissesPerHour(_) => {
            let open = watch.threads.iter().find(|one| one.deadline.is_none())?;
            Some(format!("thread {} has neither a period nor a deadline, so its misses are unknown", open.name))
        }
        _ => None,
    }
}

/// Reason why a watched thread may have waited for a CPU for more than this percentage of its time; `None` if none did.
fn waiting_unseen(watch: Option<&WatchSummary>, percent: f64) -> Option<String> {
    let Some(watch) = watch else { return Some("only of watched threads is it known how long they wait".to_owned()) };
    if watch.gaps > 0 {
        return Some("events of the watched threads were lost, so waits may be missing".to_owned());
    }
    watch.threads.iter().find_map(|one| {
        let account = one.account.as_ref().and_then(|account| Some((account, account.unknown?)));
        let Some((account, unknown)) = account else {
            return Some(format!("{}: the record does not say where all of its time went", one.name));
        };
        let (at_most, all) = (account.waiting_for_cpu.ns() + unknown.ns(), account.total().ns());
        let is_within = unknown == Span(0) || at_most as f64 * 100.0 <= percent * all as f64;
        let [unknown, all] = [unknown.ns(), all].map(|ns| duration(ns as f64));
        (!is_within).then(|| format!("{}: nothing is known of {unknown} of {all}", one.name))
    })
}

/// Reason why it is unknown whether a response of a thread took longer than `limit`; `None` if it is known.
pub(crate) fn response_unseen(one: &WatchedSummary, limit: Span) -> Option<String> {
    releases_unseen(one, Limit::Max(limit))
}

/// Where a call returned at once, its data had come before, and an activation may be several that the kernel does not
/// tell apart: responses may have taken longer than they show, or be more.
fn releases_unseen(one: &WatchedSummary, limit: Limit) -> Option<String> {
    let at_once = one.releases.immediate;
    if at_once == 0 && one.activations_at_most.is_none() {
        return None;
    }
    let beyond = |limit: Span| one.at_most.as_ref().map_or(at_once, |bounds| bounds.count_above(limit.ns()));
    let is_told = match limit {
        Limit::Max(limit) => one.at_most.is_some() && beyond(limit) == 0,
        Limit::Quantile(level, limit) => beyond(limit) as f64 <= one.activations as f64 * (1.0 - level.p()) / 2.0,
        Limit::MissesPerHour(_) => beyond(one.deadline?) <= one.late?,
        Limit::Waiting(_) => true,
    };
    let longest = one.response_max_at_most_ns.map(|ns| format!(", at most {}", duration(ns as f64)));
    let data_waited = || {
        let (at_once, all, longest) =
            (count(at_once), things(one.activations, "activation"), longest.unwrap_or_default());
        format!("{}: data had waited in {at_once} of {all}, for an unknown time{longest}", one.name)
    };
    (!is_told).then(|| several(one).unwrap_or_else(data_waited))
}

/// That activations may be several; `None` if not.
fn several(one: &WatchedSummary) -> Option<String> {
    let most = one.activations_at_most?;
    Some(Several { thread: one.name.clone(), activations: one.activations, at_most: most }.to_string())
}

/// Whether a quantile that cannot be shown to meet a limit may still be shown to violate it: of watched threads, what
/// is unknown is longer than it shows, and due times that a tool does not count were missed.
pub(super) fn shows_violations(row: &Row<'_>) -> bool {
    match row.origin {
        Origin::Own(cell, _) => cell.watch.as_ref().is_some_and(|watch| watch.gaps == 0),
        Origin::Imported(cell, _) => missing(cell) == 0,
    }
}

/// Reason why a violation of `limit` is not shown: each activation beyond it may be several that are not.
pub(super) fn why_not_violated(row: &Row<'_>, limit: Limit) -> Option<String> {
    let Origin::Own(cell, _) = row.origin else { return None };
    let (watch, sample) = (cell.watch.as_ref()?, cell.cell.task.watch()?.sample);
    let why = watch.threads.iter().find_map(several).filter(|_| sample == WatchSample::Response)?;
    let all: u64 = watch.threads.iter().map(|one| one.activations).sum();
    let beyond = |one: &WatchedSummary, limit: Span| {
        let is_open = one.unfinished().is_some_and(|open| open.at_least > limit);
        one.at_least.count_above(limit.ns()) + u64::from(is_open)
    };
    let beyond_all = |limit: Span| watch.threads.iter().map(|one| beyond(one, limit)).sum::<u64>();
    let is_shown = match limit {
        Limit::Max(limit) => beyond_all(limit) > 0,
        Limit::Quantile(level, limit) => beyond_all(limit) as f64 > all as f64 * (1.0 - level.p()),
        Limit::MissesPerHour(_) => {
            watch.threads.iter().any(|one| one.deadline.is_some_and(|limit| beyond(one, limit) > 0))
        }
        Limit::Waiting(_) => true,
    };
    (!is_shown).then_some(why)
}

/// An outside program shows that a maximum is met, and a quantile only if it counts missed due times and has none.
fn of_program(cell: &CellSummary, instrument: &InstrumentSummary, limit: Limit) -> Option<String> {
    let program = &instrument.program;
    match limit {
        Limit::Max(_) if instrument.beyond.is_none() => Some("samples beyond the histogram are missing".to_owned()),
        Limit::Max(limit) if instrument.may_exceed(limit) => {
            Some("its values are truncated, so the largest may be above the limit".to_owned())
        }
        Limit::Max(_) | Limit::Waiting(_) => None,
        Limit::Quantile(..) => {
            of_missed(program, cell.missed, |_| format!("{program} does not report when it missed due times"))
        }
        Limit::MissesPerHour(_) => Some(format!("{program} does not report single misses")),
    }
}

/// A file can show that a maximum is violated, and rarely that it is met.
fn of_largest(cell: &ImportedCell, limit: Span) -> Option<String> {
    let Some(max_ns) = cell.max_ns else { return Some("the file has no samples".to_owned()) };
    // A value truncated to whole microseconds may be just above its limit.
    let resolution_ns = i64::try_from(cell.imported.resolution.ns()).unwrap_or(i64::MAX);
    let may_be_ns = u64::try_from(max_ns.saturating_add(resolution_ns - 1)).unwrap_or(0);
    let mut beyond = cell.imported.threads.iter().filter_map(|thread| thread.beyond);
    let why = match () {
        () if beyond.any(|beyond| beyond.samples.is_none()) => "samples beyond the histogram are missing",
        () if may_be_ns > limit.ns() => "its values are truncated, so the largest may be above the limit",
        () if cell.imported.measured.is_none_or(|measured| measured == Span(0)) => {
            "the file has no measured time, so no rate is excluded"
        }
        () => return of_missing(cell),
    };
    Some(why.to_owned())
}

/// A file shows that a quantile is met only if each due time has a value in it, as for [`of_program`].
fn of_due_times(cell: &ImportedCell) -> Option<String> {
    let has_due_times = cell.imported.conditions.what != "noise";
    let counted = |missed| format!("{} are in no quantile", things(missed, "missed due time"));
    let of_missed = || of_missed(&cell.imported.source.tool, cell.missed, counted).filter(|_| has_due_times);
    of_missing(cell).or_else(of_missed)
}

/// Due times that `tool` missed, or does not count: they are late, and not in its numbers.
fn of_missed(tool: &str, missed: Option<u64>, counted: impl FnOnce(u64) -> String) -> Option<String> {
    match missed {
        Some(0) => None,
        Some(missed) => Some(counted(missed)),
        None => Some(format!("{tool} does not count missed due times")),
    }
}

/// Samples that the tool took, whose values are not in the file.
fn of_missing(cell: &ImportedCell) -> Option<String> {
    let missing = missing(cell);
    let all = cell.samples.unwrap_or(missing);
    (missing > 0).then(|| format!("{} of {} have no value in the file", count(missing), things(all, "sample")))
}

fn missing(cell: &ImportedCell) -> u64 {
    cell.imported.threads.iter().fold(0, |all, thread| all.saturating_add(thread.missing()))
}
