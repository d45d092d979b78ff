//! Waits that are open at the end of a block: they count with what they had reached.

use punctual_model::{Ended, Record, ThreadRecord};
use serde::Serialize;

/// Waits still open at the end of their block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Open {
    /// Number of them.
    pub waits: u64,
    /// Lateness that the longest had reached, ns.
    pub at_least_ns: u64,
    /// Sum of what all had reached, ns.
    pub total_ns: u64,
}

impl Open {
    /// Those of these threads; `None` if all have ended.
    pub(crate) fn of<'a>(threads: impl Iterator<Item = &'a ThreadRecord>) -> Option<Open> {
        let ages = threads.filter_map(|thread| thread.censored).map(|open| open.at_least_ns);
        let add = |sum: Open, one: Open| Open {
            waits: sum.waits + one.waits,
            at_least_ns: sum.at_least_ns.max(one.at_least_ns),
            total_ns: sum.total_ns.saturating_add(one.total_ns),
        };
        ages.map(|ns| Open { waits: 1, at_least_ns: ns, total_ns: ns }).reduce(add)
    }

    /// The mean of these waits and of `samples` that ended after `sum_ns` in all, ns: a lower bound.
    pub(crate) fn mean_with(self, sum_ns: f64, samples: u64) -> f64 {
        (sum_ns + self.total_ns as f64) / (samples + self.waits) as f64
    }

    /// The mean of `samples` waits that ended, ns, with those that are `open`, and whether it is a lower bound.
    pub(crate) fn mean(open: Option<Open>, mean_ns: Option<f64>, samples: u64) -> Option<(f64, bool)> {
        let Some(open) = open else { return mean_ns.map(|mean_ns| (mean_ns, false)) };
        Some((open.mean_with(mean_ns.unwrap_or(0.0) * samples as f64, samples), true))
    }
}

/// What a record lacks, so that wake-ups may have been later than those that it has; `None` if it is whole.
pub fn lacks(record: &Record) -> Option<&'static str> {
    let not_seen = |thread: &ThreadRecord| thread.lost > 0 || thread.ledger(&record.cell.task).not_seen() > 0;
    match () {
        () if record.ended != Ended::Completed => Some("a measurement did not run to its end"),
        () if record.threads.iter().any(not_seen) => Some("wake-ups were lost or not seen"),
        () if record.loads.iter().any(|load| load.failure.is_some()) => Some("a load failed"),
        () => None,
    }
}
