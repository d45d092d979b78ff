//! Why threads were late: the answers of explained wake-ups and of watched threads.

use super::sentence::Answer;
use crate::explain::{Totals, cause_name, main_cause, row_of};
use crate::findings::unfinished;
use crate::row::Row;
use crate::summary::cell::CellSummary;
use crate::summary::watched::WatchedSummary;
use crate::verdict::response_unseen;
use crate::wording::{count, duration, load, policy, things};
use punctual_model::{Cause, CauseTotal, ExplainRecord, Explanation, Share, Span};
use std::cmp::Reverse;

/// The answer of explained cells: the latest wake-up of all and its main cause. `None` if nothing is explained.
pub(super) fn of_explained(rows: &[Row<'_>]) -> Option<Answer> {
    let explained = rows.iter().filter_map(|row| Some((row, row.own()?, row.own()?.explained.as_ref()?)));
    let (row, cell, explained) = explained.max_by_key(|(row, ..)| row.max_ns)?;
    let load = row.load.as_ref().map_or(String::new(), |of| format!(" {}", load(of)));
    let name = format!("with {}{load}", policy(cell.cell.policy));
    let max = row.max_ns.map_or("unknown".to_owned(), |ns| duration(ns as f64));
    let at_least = if cell.may_be_later() { "at least " } else { "" };
    let worst = format!("worst wake-up {at_least}{max} {name}");
    let Some(above) = explained.above else {
        let why = format!("too few wake-ups to know which are late ({worst})");
        return Some(Answer::cannot_tell("why", &why, cell.cell.duration.ns()));
    };
    let above = duration(above.ns() as f64);
    let late = things(explained.spikes, "wake-up");
    Some(Answer::new(match (cell.not_caught(), explained.worst.first()) {
        (None, Some(first)) => format!("{worst}: {}", cause_of(first)),
        (None, None) if explained.spikes == 0 && at_least.is_empty() => {
            format!("no wake-up was later than {above} {name} (worst {max})")
        }
        (_, first) => {
            let others = first.map(|_| format!("; of {late} above {above}: {}", of_all(explained, &explained.causes)));
            format!("{worst}, whose cause was not captured{}", others.unwrap_or_default())
        }
    }))
}

/// The answer of watched threads: which was late how often, and the main cause.
pub(super) fn of_watched(cell: &CellSummary) -> Answer {
    let Some(watch) = &cell.watch else { return Answer::nothing(cell.cell.duration.ns()) };
    let ended = watch.status.as_ref().zip(watch.ended_after_ns);
    let ended = ended.map(|(status, ns)| format!("the program ended after {} ({status})", duration(ns as f64)));
    let missing = if watch.gaps > 0 { Some("events were lost".to_owned()) } else { ended };
    let answer = of_threads(&watch.threads, cell.explained.as_ref(), missing, cell.cell.duration);
    match watch.unseen.len() as u64 {
        0 => answer,
        n => Answer::new(format!("{answer}; nothing is known of {}", things(n, "other thread"))),
    }
}

/// The same of the threads of a recorded trace or of a cell, `asked` long; `missing` is what is unknown of all.
pub fn of_threads(
    threads: &[WatchedSummary],
    explained: Option<&ExplainRecord>,
    missing: Option<String>,
    asked: Span,
) -> Answer {
    // A deadline of 0 stands for none: nothing is known to be late.
    let deadline = |one: &WatchedSummary| one.deadline.filter(|limit| limit.ns() > 0);
    let late = |one: &WatchedSummary| one.late.filter(|_| deadline(one).is_some()).unwrap_or(0);
    // Of equal ones that of the highest priority: it is first.
    let key = |one: &&WatchedSummary| Reverse((late(one), deadline(one).is_some(), one.response_max_ns));
    let Some(latest) = threads.iter().min_by_key(key) else {
        let missing = missing.unwrap_or_else(|| "no watched thread waited twice in one call".to_owned());
        return Answer::cannot_tell("whether a thread is late", &missing, asked.ns());
    };
    let unknown = |one: &WatchedSummary| {
        let open = one.unfinished().map(|open| unfinished(&one.name, open)).or_else(|| one.ended.clone());
        missing.clone().or(open).or_else(|| response_unseen(one, deadline(one)?))
    };
    let (name, worst) = (&latest.name, worst(latest));
    let cycles = things(latest.activations, "cycle");
    let cause = explained.and_then(|explained| cause_of_thread(explained, name, threads.len() > 1));
    let cause = cause.unwrap_or_default();
    let after = |sign: &str| if cause.is_empty() { String::new() } else { format!("{sign} {cause}") };
    match (late(latest), deadline(latest)) {
        (n @ 1.., _) => {
            let at_least = if unknown(latest).is_some() { "at least " } else { "" };
            let others = threads.iter().filter(|one| one.name != *name && late(one) > 0).count() as u64;
            let others = match others {
                0 => String::new(),
                1 => "; 1 other thread was late, too".to_owned(),
                n => format!("; {} were late, too", things(n, "other thread")),
            };
            Answer::new(format!("{name} was late in {at_least}{} of {cycles}{}{others}", count(n), after(":")))
        }
        (0, Some(limit)) => match threads.iter().filter(|one| deadline(one).is_some()).find_map(unknown) {
            Some(why) if threads.len() > 1 => Answer::cannot_tell("whether a thread was late", &why, asked.ns()),
            Some(why) => Answer::cannot_tell(&format!("whether {name} was late"), &why, asked.ns()),
            None => {
                let limit = duration(limit.ns() as f64);
                Answer::new(format!("{name} was never late: {worst} of {limit} at worst in {cycles}{}", after(",")))
            }
        },
        // Without a period or a deadline nothing is late; a long response still has a cause.
        _ => Answer::new(format!("{name} took {worst} at worst in {cycles}{}", after(":"))),
    }
}

/// The largest response time of a thread.
fn worst(one: &WatchedSummary) -> String {
    match (one.open_ns(), one.response_max_ns) {
        (Some(ns), _) => format!("at least {}", duration(ns as f64)),
        (None, Some(ns)) => duration(ns as f64),
        (None, None) => "an unknown time".to_owned(),
    }
}

/// The main cause of the late activations of a thread; `None` where none of them was explained.
fn cause_of_thread(explained: &ExplainRecord, name: &str, is_one_of_several: bool) -> Option<String> {
    let is_own = |one: &&Explanation| one.thread.as_ref().is_none_or(|thread| thread.name == name);
    let own: Vec<&Explanation> = explained.worst.iter().filter(is_own).collect();
    own.first()?;
    if !is_one_of_several || own.len() == explained.worst.len() {
        return Some(of_all(explained, &explained.causes));
    }
    let mut totals = Totals::default();
    own.iter().for_each(|one| totals.add(one));
    let worst = own.into_iter().cloned().collect();
    Some(of_all(&ExplainRecord { late: Span(totals.late_ns), worst, ..ExplainRecord::default() }, &totals.causes()))
}

/// The main cause of all that is explained, with its share of their time.
fn of_all(explained: &ExplainRecord, causes: &[CauseTotal]) -> String {
    let Some(first) = causes.iter().find(|total| !is_usual(total.cause)).or(causes.first()) else {
        return "no cause is known".to_owned();
    };
    let percent = first.total.ns().saturating_mul(100) / explained.late.ns().max(1);
    let is_of = |share: &&Share| (share.cause, share.or) == (first.cause, first.or);
    let example = explained.worst.iter().find_map(|one| Some((one, one.shares.iter().find(is_of)?)));
    let cause = match example {
        Some((one, share)) => main_cause(share, one.thread.as_ref()),
        None => cause_name(first.cause, first.or),
    };
    format!("{percent} % {cause}")
}

/// Whether it is work that a wake-up always has: nothing to change.
fn is_usual(cause: Cause) -> bool {
    cause != Cause::Unknown && row_of(cause).advice.is_none()
}

/// The main cause of one wake-up, with its share of it.
fn cause_of(one: &Explanation) -> String {
    let Some(share) = one.blame() else { return "no cause is known".to_owned() };
    let percent = share.total.ns().saturating_mul(100) / one.latency.ns().max(1);
    format!("{percent} % {}", main_cause(share, one.thread.as_ref()))
}
