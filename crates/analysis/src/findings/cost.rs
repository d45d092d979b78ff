//! Findings about the costs of operations.

use super::{Finding, when};
use crate::summary::cell::CellSummary;
use crate::summary::pool::Pool;
use crate::wording::number;
use punctual_model::{SkippedOperation, Span};
use std::collections::BTreeMap;

finding!(
    /// Operations of the cost suite that were not measured.
    pub struct OperationsSkipped {
        /// Their names.
        pub operations: Vec<String>,
        /// The reason.
        pub reason: String,
    },
    importance = 1,
    format!("skipped operations: {} ({reason})", operations.join(", ")),
    [OperationsSkipped { operations: vec!["ipc/mq".into()], reason: "mq_open: Function not implemented".into() }]
);

finding!(
    /// The frequency of the measured CPU changed: costs are of a mixture.
    pub struct FrequencyChanged {
        /// Lowest frequency seen, kHz.
        pub lowest_khz: u64,
        /// Highest frequency seen, kHz.
        pub highest_khz: u64,
    },
    importance = 1,
    {
        let [lowest, highest] = [*lowest_khz, *highest_khz].map(|khz| number(khz as f64 / 1e3));
        format!(
            "CPU frequency changed ({lowest} to {highest} MHz): a cost in ns is a mixture; use --prepare \
             governor=performance"
        )
    },
    [FrequencyChanged { lowest_khz: 1_200_000, highest_khz: 3_400_000 }]
);

/// Relative change of the frequency below which there is no finding, percent: no operation is known that precisely.
const STEADY: u64 = 5;

/// Skipped operations, and a change of the CPU frequency.
pub(super) fn findings(pool: &Pool<'_>) -> Vec<Finding> {
    let costs = pool.entries.iter().filter_map(|entry| entry.record.cost.as_ref());
    skipped(costs.flat_map(|cost| &cost.skipped)).into_iter().chain(frequency(pool)).collect()
}

/// Operations of the load that were skipped in every block.
pub(super) fn of_load(summary: &CellSummary) -> Vec<Finding> {
    skipped(summary.load_cost.iter().flat_map(|cost| &cost.skipped))
}

fn skipped<'a>(operations: impl Iterator<Item = &'a SkippedOperation>) -> Vec<Finding> {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for skipped in operations {
        let names = by_reason.entry(&skipped.reason).or_default();
        if !names.contains(&skipped.name) {
            names.push(skipped.name.clone());
        }
    }
    let skipped = |(reason, operations): (&str, _)| OperationsSkipped { operations, reason: reason.to_owned() }.into();
    by_reason.into_iter().map(skipped).collect()
}

fn frequency(pool: &Pool<'_>) -> Option<Finding> {
    let seconds = || pool.entries.iter().flat_map(|entry| &entry.record.machine).filter(|second| second.at > Span(0));
    let known = || seconds().filter_map(|second| second.frequency_khz);
    let (lowest_khz, highest_khz) = (known().min()?, known().max()?);
    let changed = highest_khz.saturating_mul(100) > lowest_khz.saturating_mul(100 + STEADY);
    when(changed, FrequencyChanged { lowest_khz, highest_khz })
}
