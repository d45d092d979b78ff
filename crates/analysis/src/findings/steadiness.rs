//! Findings about a cell over time: changes, waves, periodic spikes.

use super::{Finding, when};
use crate::stats::course::{Course, Measure};
use crate::stats::tail::{self, TailRefusal};
use crate::summary::cell::CellSummary;
use crate::summary::steadiness::{Steadiness, whole_ns};
use crate::wording::{count, duration, number, things};
use punctual_model::Level;
use serde::Serialize;

finding!(
    /// Numbers changed once during the cell: none of their intervals is valid for all of it.
    pub struct LatencyChanged {
        /// The numbers, and the moments.
        pub changes: Vec<Changed>,
    },
    importance = 3,
    {
        let each = changes.iter().map(|Changed { what, block, second, before_ns, after_ns }| {
            let second = count(*second);
            let when = match block {
                Some(block) => format!("in block {}, {second} s into it", block + 1),
                None => format!("at t = {second} s"),
            };
            let (before, after) = (duration(*before_ns as f64), duration(*after_ns as f64));
            format!("{what} {when} ({before} before, {after} after)")
        });
        let none = no_interval(changes.iter().map(|changed| changed.what));
        format!("level shift: {}; {none}find its cause", each.collect::<Vec<_>>().join(", "))
    },
    [
        LatencyChanged { changes: vec![changed(Measure::P99, None, 37)] },
        LatencyChanged { changes: vec![changed(Measure::P50, Some(2), 7), changed(Measure::P99, Some(2), 7)] },
        LatencyChanged { changes: vec![changed(Measure::Maxima, None, 37)] }
    ]
);

finding!(
    /// Numbers rise or fall during the cell.
    pub struct LatencyDrifts {
        /// The numbers.
        pub drifts: Vec<Drifted>,
    },
    importance = 3,
    {
        let each = drifts.iter().map(|Drifted { what, before_ns, after_ns }| {
            let verb = if *what == Measure::Maxima { ["fall", "rise"] } else { ["falls", "rises"] };
            let verb = verb[usize::from(after_ns >= before_ns)];
            let (before, after) = (duration(*before_ns as f64), duration(*after_ns as f64));
            format!("{what} {verb} ({before} in the first quarter, {after} in the last)")
        });
        let none = no_interval(drifts.iter().map(|drifted| drifted.what));
        format!("drift: {}; {none}use a longer --warm-up", each.collect::<Vec<_>>().join(", "))
    },
    [LatencyDrifts { drifts: vec![Drifted { what: Measure::P99, before_ns: 48_000, after_ns: 77_000 }] }]
);

finding!(
    /// Calm and rough stretches follow each other.
    pub struct LatencyInWaves {
        /// The numbers.
        pub what: Vec<Measure>,
    },
    importance = 3,
    {
        let (names, none) = (listed(what), no_interval(what.iter().copied()));
        format!("not stationary: low and high stretches of {names}; {none}measure longer, in more blocks")
    },
    [LatencyInWaves { what: vec![Measure::P99, Measure::Maxima] }]
);

finding!(
    /// The largest latencies are periodic.
    pub struct RegularSpikes {
        /// The period, ns of measured time.
        pub every_ns: u64,
    },
    importance = 3,
    format!("periodic spikes: every {}; look for a timer or a job with that period", duration(*every_ns as f64)),
    [RegularSpikes { every_ns: 60_000_000_000 }]
);

finding!(
    /// Bimodal tail: the largest latencies form a population of their own, an event with a rate.
    pub struct OwnPopulation {
        /// Blocks of time (seconds, or a few of them) with such a latency.
        pub seconds: u64,
        /// The largest of the other maxima, ns.
        pub from_ns: u64,
        /// The smallest of these maxima, ns.
        pub to_ns: u64,
    },
    importance = 3,
    {
        let (late, from, to) = (things(*seconds, "wake-up"), duration(*from_ns as f64), duration(*to_ns as f64));
        format!(
            "bimodal tail: {late} from {to} up, none between {from} and {to}; report this population as a rate, do not \
             extrapolate"
        )
    },
    [OwnPopulation { seconds: 36, from_ns: 38_000, to_ns: 150_000 }]
);

finding!(
    /// Upper limit of the latency in a longer time, if the same causes act.
    pub struct TailLimit {
        /// The longer time, as a multiple of the measured one.
        pub times: f64,
        /// Upper 95 % limit of the level exceeded once in that time, ns.
        pub upper_ns: u64,
    },
    importance = 6,
    {
        let (times, upper) = (number(*times), duration(*upper_ns as f64));
        format!(
            "tail estimate: the level exceeded once in {times} times this time is at most {upper} (95 %), if no other \
             cause acts"
        )
    },
    [TailLimit { times: 10.0, upper_ns: 96_000 }]
);

/// A number that changed once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Changed {
    /// The number.
    pub what: Measure,
    /// Its block, from 0; `None` when there is only one.
    pub block: Option<u32>,
    /// Seconds of the block before the change.
    pub second: u64,
    /// Value before, ns; for maxima the median.
    pub before_ns: i64,
    /// Value after, ns.
    pub after_ns: i64,
}

#[cfg(test)]
fn changed(what: Measure, block: Option<u32>, second: u64) -> Changed {
    Changed { what, block, second, before_ns: 12_000, after_ns: 18_000 }
}

/// A number that rose or fell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Drifted {
    /// The number.
    pub what: Measure,
    /// Value in the first quarter, ns; for maxima the median.
    pub before_ns: i64,
    /// Value in the last quarter, ns.
    pub after_ns: i64,
}

/// Note that quantiles have no interval where these numbers changed, like `p99 and p99.9 have no interval; `.
fn no_interval(changed: impl Iterator<Item = Measure>) -> String {
    let changed: Vec<_> = changed.collect();
    let levels = Level::USUAL.into_iter().filter(|level| changed.iter().any(|what| what.spoils(*level)));
    let levels: Vec<_> = levels.collect();
    let have = if levels.len() == 1 { "has" } else { "have" };
    format!("{} {have} no interval; ", listed(&levels))
}

/// `p50, p99 and the maxima of seconds`.
fn listed(of: &[impl ToString]) -> String {
    let names: Vec<_> = of.iter().map(ToString::to_string).collect();
    match names.split_last() {
        Some((last, first @ [_, ..])) => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
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
            // Periodic spikes are the cause of correlated seconds, and more specific.
            Course::Waves if what == Measure::Maxima && spikes_every.is_some() => {}
            Course::Waves => waves.push(what),
        }
    }
    let course = [
        when(!changes.is_empty(), LatencyChanged { changes }),
        when(!drifts.is_empty(), LatencyDrifts { drifts }),
        when(!waves.is_empty(), LatencyInWaves { what: waves }),
    ];
    let course = course.into_iter().flatten();
    let spikes = spikes_every.map(|every| RegularSpikes { every_ns: every.ns() }.into());
    let tail = match (tail_limit, tail_refused) {
        (Some(tail::TailLimit { times, upper, .. }), _) => Some(TailLimit { times, upper_ns: whole_ns(upper) }.into()),
        (None, Some(TailRefusal::SeparateMode { above, from, to })) => {
            let seconds = u64::try_from(above).unwrap_or(u64::MAX);
            Some(OwnPopulation { seconds, from_ns: whole_ns(from), to_ns: whole_ns(to) }.into())
        }
        _ => None,
    };
    course.chain(spikes).chain(tail).collect()
}
