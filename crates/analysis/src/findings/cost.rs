//! What is to be doubted about the costs of operations.

use super::Finding;
use crate::summary::pool::Pool;
use model::Span;
use std::collections::BTreeMap;

/// A frequency that changes by less than this, percent, is none worth naming: no operation is known that well.
const STEADY: u64 = 5;

/// Operations that were skipped, and a CPU that was not always as fast.
pub(super) fn findings(pool: &Pool<'_>) -> Vec<Finding> {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for cost in pool.entries.iter().filter_map(|entry| entry.record.cost.as_ref()) {
        for skipped in &cost.skipped {
            let names = by_reason.entry(&skipped.reason).or_default();
            if !names.contains(&skipped.name) {
                names.push(skipped.name.clone());
            }
        }
    }
    let skipped = |(reason, operations): (&str, Vec<String>)| Finding::OperationsSkipped {
        operations,
        reason: reason.to_owned(),
    };
    by_reason.into_iter().map(skipped).chain(frequency(pool)).collect()
}

fn frequency(pool: &Pool<'_>) -> Option<Finding> {
    let seconds = || pool.entries.iter().flat_map(|entry| &entry.record.machine).filter(|second| second.at > Span(0));
    let known = || seconds().filter_map(|second| second.frequency_khz);
    let (lowest_khz, highest_khz) = (known().min()?, known().max()?);
    let changed = highest_khz.saturating_mul(100) > lowest_khz.saturating_mul(100 + STEADY);
    changed.then_some(Finding::FrequencyChanged { lowest_khz, highest_khz })
}
