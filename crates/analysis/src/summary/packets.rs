//! Activations of a thread that packets released, over all blocks of a cell.

use super::spread::Spread;
use crate::stats::histogram::merged;
use punctual_model::{CountedName, Histogram, PacketReleases};
use serde::Serialize;

/// Activations that packets released. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PacketSummary {
    /// Number of them.
    pub n: u64,
    /// Network devices of the packets, most frequent first.
    pub devices: Vec<CountedName>,
    /// What delivered the packets, as text, most frequent first.
    pub carriers: Vec<CountedName>,
    /// Stages, in the order of time.
    pub stages: Vec<PacketStage>,
    /// All stages of each: from the arrival of the packet until the program runs.
    pub arrival_to_running: Spread,
    /// Activations that a softirq released while packets were not traced.
    pub unknown: u64,
}

/// A stage of activations that packets released.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PacketStage {
    /// Its name, like `interrupt to softirq`.
    pub stage: String,
    /// Number of activations of which it is known; each has two or three stages.
    pub n: u64,
    /// Its lengths.
    #[serde(flatten)]
    pub length: Spread,
    /// Its share of the time of all of them; `null` where it is known of none.
    pub share: Option<f64>,
}

/// The summary of several blocks; `None` if no softirq released an activation.
pub(crate) fn of<'a>(all: impl Iterator<Item = &'a PacketReleases>) -> Option<PacketSummary> {
    const MOST: usize = 5;
    let all: Vec<&PacketReleases> = all.collect();
    let first = *all.first()?;
    let whole = merged(all.iter().map(|one| &one.arrival_to_running));
    let counted = |of: fn(&PacketReleases) -> &[CountedName]| {
        let names = all.iter().flat_map(|one| of(one)).map(|one| (one.name.clone(), one.n));
        CountedName::most_frequent(names, MOST)
    };
    let stage = |(index, (stage, _)): (usize, (&'static str, Option<&Histogram>))| {
        let lengths = merged(all.iter().filter_map(|one| one.stages().get(index)?.1));
        let share = (lengths.n > 0 && whole.sum_ns > 0).then(|| lengths.sum_ns as f64 / whole.sum_ns as f64);
        PacketStage { stage: stage.to_owned(), n: lengths.n, length: Spread::of(&lengths), share }
    };
    Some(PacketSummary {
        n: whole.n,
        devices: counted(|one| &one.devices),
        carriers: counted(|one| &one.carriers),
        stages: first.stages().into_iter().enumerate().map(stage).collect(),
        arrival_to_running: Spread::of(&whole),
        unknown: all.iter().map(|one| one.unknown).sum(),
    })
}
