//! What the course of a cell says: changes, waves, spikes at regular distances.

use super::Finding;
use crate::stationarity::Gate;
use crate::steadiness::{Steadiness, whole_ns};
use crate::summary::CellSummary;
use crate::tail::{TailLimit, TailRefusal};

pub(super) fn findings(summary: &CellSummary) -> Vec<Finding> {
    let Steadiness { gate, change, spikes_every, tail } = summary.steadiness;
    let of_several = summary.blocks > 1;
    let course = match gate {
        Gate::Changed { .. } => change.map(|change| Finding::LatencyChanged {
            block: of_several.then_some(change.block),
            second: change.second,
            p99_ns: change.p99_ns,
        }),
        Gate::Drifts { rises } => Some(Finding::LatencyDrifts { rises }),
        // Spikes at regular distances are why seconds resemble others, and say more.
        Gate::Dependent if spikes_every.is_none() => Some(Finding::LatencyInWaves),
        _ => None,
    };
    let spikes = spikes_every.map(|every| Finding::RegularSpikes { every_ns: every.ns() });
    let tail = match tail {
        Ok(TailLimit { times, upper, .. }) => Some(Finding::TailLimit { times, upper_ns: whole_ns(upper) }),
        Err(TailRefusal::SeparateMode { above, from, to }) => Some(Finding::OwnPopulation {
            seconds: u64::try_from(above).unwrap_or(u64::MAX),
            from_ns: whole_ns(from),
            to_ns: whole_ns(to),
        }),
        Err(_) => None,
    };
    course.into_iter().chain(spikes).chain(tail).collect()
}
