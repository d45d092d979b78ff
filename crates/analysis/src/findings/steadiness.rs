//! What the course of a cell says: changes, waves, spikes at regular distances.

use super::Finding;
use crate::stats::course::{Course, Measure};
use crate::stats::tail::{TailLimit, TailRefusal};
use crate::summary::cell::CellSummary;
use crate::summary::steadiness::{Steadiness, whole_ns};
use crate::wording::{count, duration};
use serde::Serialize;
use std::fmt;

/// A number that changed once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Changed {
    /// Which.
    pub what: Measure,
    /// In which block, from 0; `None` when there is only one.
    pub block: Option<u32>,
    /// How many seconds of the block were before it.
    pub second: u64,
    /// What it was before, ns; of maxima the median.
    pub before_ns: i64,
    /// What it was after, ns.
    pub after_ns: i64,
}

/// A number that rose or fell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drifted {
    /// Which.
    pub what: Measure,
    /// What it was in the first quarter, ns; of maxima the median.
    pub before_ns: i64,
    /// What it was in the last quarter, ns.
    pub after_ns: i64,
}

/// `p50 and p99 have no interval; `; nothing of maxima alone, which never have one.
fn no_interval(f: &mut fmt::Formatter<'_>, of: impl Iterator<Item = Measure>) -> fmt::Result {
    let levels: Vec<_> = of.filter(|what| *what != Measure::Maxima).collect();
    let have = if levels.len() == 1 { "has" } else { "have" };
    if levels.is_empty() { Ok(()) } else { write!(f, "{} {have} no interval; ", names(&levels)) }
}

/// `p50, p99 and the maxima of seconds`.
fn names(of: &[Measure]) -> String {
    let names: Vec<_> = of.iter().map(ToString::to_string).collect();
    match names.split_last() {
        Some((last, first @ [_, ..])) => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// `p99 changed at t = 37 s (12 us before, 18 us after)`.
pub(super) fn changed(f: &mut fmt::Formatter<'_>, changes: &[Changed]) -> fmt::Result {
    for (i, Changed { what, block, second, before_ns, after_ns }) in changes.iter().enumerate() {
        let verb = if i == 0 { " changed" } else { "" };
        write!(f, "{}{what}{verb} ", if i == 0 { "" } else { ", " })?;
        match block {
            Some(block) => write!(f, "in block {}, {} s into it", block + 1, count(*second))?,
            None => write!(f, "at t = {} s", count(*second))?,
        }
        write!(f, " ({} before, {} after)", duration(*before_ns as f64), duration(*after_ns as f64))?;
    }
    f.write_str(": ")?;
    no_interval(f, changes.iter().map(|changed| changed.what))?;
    f.write_str("find out what happened then")
}

/// `p99 rises from beginning to end (48 us in the first quarter, 77 us in the last)`.
pub(super) fn drifted(f: &mut fmt::Formatter<'_>, drifts: &[Drifted]) -> fmt::Result {
    for (i, Drifted { what, before_ns, after_ns }) in drifts.iter().enumerate() {
        let verb = if *what == Measure::Maxima { ["fall", "rise"] } else { ["falls", "rises"] };
        let verb = verb[usize::from(after_ns >= before_ns)];
        let (before, after) = (duration(*before_ns as f64), duration(*after_ns as f64));
        write!(f, "{}{what} {verb} ", if i == 0 { "" } else { ", " })?;
        write!(f, "from beginning to end ({before} in the first quarter, {after} in the last)")?;
    }
    f.write_str(": ")?;
    no_interval(f, drifts.iter().map(|drifted| drifted.what))?;
    f.write_str("let it settle first")
}

/// `calm and rough stretches of p99 follow each other`.
pub(super) fn in_waves(f: &mut fmt::Formatter<'_>, what: &[Measure]) -> fmt::Result {
    write!(f, "calm and rough stretches of {} follow each other: ", names(what))?;
    no_interval(f, what.iter().copied())?;
    f.write_str("measure for longer, in more blocks")
}

pub(super) fn findings(summary: &CellSummary) -> Vec<Finding> {
    let Steadiness { spikes_every, tail_limit, tail_refused, .. } = summary.steadiness;
    let of_several = summary.blocks > 1;
    let (mut changes, mut drifts, mut waves) = (Vec::new(), Vec::new(), Vec::new());
    for (what, course) in summary.steadiness.courses.all() {
        match course {
            Course::Untested | Course::Same => {}
            Course::Changed { at, before_ns, after_ns } => {
                let block = of_several.then_some(at.block);
                changes.push(Changed { what, block, second: at.second, before_ns, after_ns });
            }
            Course::Drifts { before_ns, after_ns } => drifts.push(Drifted { what, before_ns, after_ns }),
            // Spikes at regular distances are why seconds resemble others, and say more.
            Course::Waves if what == Measure::Maxima && spikes_every.is_some() => {}
            Course::Waves => waves.push(what),
        }
    }
    let course = [
        (!changes.is_empty()).then_some(Finding::LatencyChanged { changes }),
        (!drifts.is_empty()).then_some(Finding::LatencyDrifts { drifts }),
        (!waves.is_empty()).then_some(Finding::LatencyInWaves { what: waves }),
    ];
    let course = course.into_iter().flatten();
    let spikes = spikes_every.map(|every| Finding::RegularSpikes { every_ns: every.ns() });
    let tail = match (tail_limit, tail_refused) {
        (Some(TailLimit { times, upper, .. }), _) => Some(Finding::TailLimit { times, upper_ns: whole_ns(upper) }),
        (None, Some(TailRefusal::SeparateMode { above, from, to })) => Some(Finding::OwnPopulation {
            seconds: u64::try_from(above).unwrap_or(u64::MAX),
            from_ns: whole_ns(from),
            to_ns: whole_ns(to),
        }),
        _ => None,
    };
    course.chain(spikes).chain(tail).collect()
}
