//! Limits that a plan cannot show to be kept, known before it is measured.

use super::{Limit, limits};
use crate::stats::rate::zero_events_upper;
use crate::stats::special::whole;
use crate::stats::woodruff::CONFIDENCE;
use crate::wording::number;
use punctual_model::{Cell, Requirement, Span, Task};
use serde::Serialize;
use std::fmt;

/// A limit that a plan cannot show to be kept, whatever it measures. `Display` is one sentence.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CannotPass {
    /// The limit as it is typed, like `p99.9=200us`.
    pub limit: String,
    /// Name of the cell with the least evidence.
    pub cell: String,
    /// The multiple of its measuring time that is needed at least: with that, and nothing later than the limit, it is
    /// kept.
    pub times_as_long: f64,
}

impl CannotPass {
    /// The limits that `blocks` blocks of these cells, each with its name, cannot show to be kept.
    pub fn all<'a>(
        require: &Requirement,
        cells: impl Iterator<Item = (&'a str, &'a Cell)> + Clone,
        blocks: u32,
    ) -> Vec<CannotPass> {
        let times = |limit: Limit, cell: &Cell| match limit {
            // One more wake-up could exceed it, which the verdict says with the rate.
            Limit::Max(_) | Limit::Waiting(_) => None,
            Limit::Quantile(level, _) => {
                let due = cell.cycles_of_all().saturating_mul(u64::from(blocks));
                Some(samples_to_bound(level.p(), CONFIDENCE)? as f64 / due as f64)
            }
            Limit::MissesPerHour(limit) => {
                let measured = Span(cell.duration.ns().saturating_mul(u64::from(blocks)));
                Some(zero_events_upper(measured.as_secs_f64() / 3600.0) / limit)
            }
        };
        let of = |(limit, value): (String, Limit)| {
            let judged = cells.clone().filter(|(_, cell)| has_due_times(&cell.task));
            let needed = judged.filter_map(|(name, cell)| Some((name, times(value, cell)?)));
            let (cell, times_as_long) = needed.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
            (times_as_long > 1.0).then(|| CannotPass { limit, cell: cell.to_owned(), times_as_long })
        };
        limits(require).into_iter().filter_map(of).collect()
    }
}

/// Whether the number of due times is known before they are measured.
fn has_due_times(task: &Task) -> bool {
    task.has_latencies() && !matches!(task, Task::Watch(_) | Task::Program(_))
}

impl fmt::Display for CannotPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CannotPass { limit, cell, times_as_long } = self;
        let times = number((times_as_long * 100.0).ceil() / 100.0);
        write!(f, "{limit} cannot pass: {cell} takes {times} times as long at least (--duration, --repetitions)")
    }
}

/// Number of independent samples whose maximum is an upper bound of the `p` quantile at this confidence:
/// `ln(1 - confidence) / ln p`, rounded up. `None` unless both are between 0 and 1.
fn samples_to_bound(p: f64, confidence: f64) -> Option<u64> {
    let between = |share: f64| 0.0 < share && share < 1.0;
    (between(p) && between(confidence)).then(|| whole(((-confidence).ln_1p() / p.ln()).ceil()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_no_result_can_show_is_known_before() {
        let said = |blocks: u32, require: &str| -> Vec<String> {
            let mut run = crate::testing::RunBuilder::new();
            run.cell("none", "fifo:80").cell("pipe", "fifo:80").require(require);
            // Two CPUs, 1 ms: 2 000 and 4 000 due times a block.
            run.header.cells[0].duration = Span::SECOND;
            let cells = ["short", "long"].into_iter().zip(&run.header.cells);
            CannotPass::all(&run.header.plan.require, cells, blocks).iter().map(ToString::to_string).collect()
        };
        assert_eq!(said(2, "max=1ms,p99=1ms,p999=1ms"), [""; 0]);
        let takes = "p99.99=1ms cannot pass: short takes 7.49 times as long at least (--duration, --repetitions)";
        assert_eq!(said(2, "max=1ms,p9999=1ms"), [takes]);
        assert_eq!(said(15, "p9999=1ms"), [""; 0], "30 000 due times");
        let takes =
            "misses_per_hour=10 cannot pass: short takes 539 times as long at least (--duration, --repetitions)";
        assert_eq!(said(2, "misses_per_hour=10"), [takes]);
    }

    #[test]
    fn the_maximum_of_so_many_samples_bounds_a_quantile() {
        for (p, n) in [(0.99, 299), (0.999, 2_995), (0.9999, 29_956), (0.99999, 299_572), (0.999_999, 2_995_731)] {
            assert_eq!(samples_to_bound(p, 0.95), Some(n), "{p}");
        }
        assert_eq!((samples_to_bound(1.0, 0.95), samples_to_bound(0.5, 0.0)), (None, None));
    }
}
