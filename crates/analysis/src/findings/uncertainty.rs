//! Findings about refused or uncertain quantiles, and differences between blocks.

use super::{Finding, when};
use crate::stats::histogram::merged;
use crate::stats::quantile::quantile;
use crate::stats::special::whole;
use crate::stats::woodruff::{MIN_EXCEEDANCES, MIN_SLICES, Quantile, Refusal};
use crate::summary::cell::CellSummary;
use crate::summary::pool::Pool;
use crate::wording::{count, duration, things};
use punctual_model::{Entry, Histogram, Level, Task};

finding!(
    /// Differences between the blocks of a cell.
    pub struct ByBlock {
        /// The quantile: p99 if each block has enough wake-ups above it, else p50.
        pub level: Level,
        /// Number of blocks.
        pub blocks: u64,
        /// Its smallest value, ns.
        pub least_ns: i64,
        /// Its largest value, ns.
        pub most_ns: i64,
    },
    importance = 6,
    {
        let (least, most) = (duration(*least_ns as f64), duration(*most_ns as f64));
        format!("variation between blocks: {level} {least} to {most} ({})", things(*blocks, "block"))
    },
    [ByBlock { level: Level::P99, blocks: 12, least_ns: 38_000, most_ns: 71_000 }]
);

finding!(
    /// A quantile that is not shown.
    pub struct FewSamples {
        /// The quantile.
        pub level: Level,
        /// Effective sample size.
        pub n_eff: u64,
        /// Additional measuring time, ns; `None` if nothing was measured.
        pub more_ns: Option<u64>,
    },
    importance = 6,
    {
        let more = more_ns.map(|ns| format!("; measure about {} longer", duration(ns as f64))).unwrap_or_default();
        format!("too few samples for {level}: effective sample size {}{more}", count(*n_eff))
    },
    [FewSamples { level: Level::P999, n_eff: 4_098, more_ns: Some(34_600_000_000) }]
);

finding!(
    /// Quantiles without an interval.
    pub struct FewSlices {
        /// Stretches of time recorded.
        pub slices: u64,
        /// Fewest stretches for an interval.
        pub need: u64,
    },
    importance = 6,
    format!("no confidence intervals: {} of time, {need} needed; measure more blocks", things(*slices, "stretch")),
    [FewSlices { slices: 6, need: 10 }]
);

finding!(
    /// Correlated samples: the effective sample size is far smaller than their number.
    pub struct Dependent {
        /// Wake-ups recorded.
        pub samples: u64,
        /// Effective sample size at p99.
        pub n_eff: u64,
    },
    importance = 9,
    format!("correlated samples: {} wake-ups count like {} independent ones at p99", count(*samples), count(*n_eff)),
    [Dependent { samples: 64_000, n_eff: 4_098 }]
);

/// Smallest ratio of samples to the effective sample size that is reported.
const DEPENDENT: u64 = 10;

/// Differences between blocks, which the interval of one stretch of time does not include.
pub(super) fn by_block(pool: &Pool<'_>) -> Option<Finding> {
    let of_entry = |entry: &&Entry| merged(entry.record.threads.iter().map(|thread| &thread.histogram));
    let blocks: Vec<Histogram> = pool.entries.iter().map(of_entry).filter(|block| block.n > 0).collect();
    let has_enough = |level: &Level| blocks.iter().all(|block| block.n as f64 * (1.0 - level.p()) >= MIN_EXCEEDANCES);
    let level = [Level::P99, Level::P50].into_iter().find(has_enough).filter(|_| blocks.len() > 1)?;
    let values = || blocks.iter().filter_map(|block| quantile(block, level.p()));
    let (least_ns, most_ns) = (values().min()?, values().max()?);
    let blocks = u64::try_from(blocks.len()).unwrap_or(u64::MAX);
    when(least_ns < most_ns, ByBlock { level, blocks, least_ns, most_ns })
}

/// Findings about quantiles that are refused, have no interval, or rest on few independent samples.
pub(super) fn uncertainty(pool: &Pool<'_>, summary: &CellSummary) -> Vec<Finding> {
    // A changed cell is a mixture: its quantiles mean little, and more time does not improve them.
    let is_steady = |level: Level| summary.steadiness.courses.allows_interval(level);
    let few = |level: Level| match summary.quantiles.at(level) {
        Quantile::Refused(Refusal::FewExceedances { .. }) if !is_steady(level) => None,
        Quantile::Refused(Refusal::FewExceedances { n_eff, times_as_long, .. }) => {
            let more = summary.measured.as_secs_f64() * (times_as_long - 1.0) * 1e9;
            let more_ns = (more > 0.0).then(|| whole(more));
            Some(FewSamples { level, n_eff: *n_eff, more_ns })
        }
        _ => None,
    };
    // For sleeps, higher quantiles are not shown.
    let is_shown = |level: &Level| *level != Level::P999 || !matches!(pool.cell.task, Task::Sleep(_));
    // Only the lowest refused level is reported.
    let refused = Level::USUAL.into_iter().filter(is_shown).find_map(few);
    let is_short = pool.n_slices() < MIN_SLICES && summary.samples > 0;
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let slices = when(is_short, FewSlices { slices: count(pool.n_slices()), need: count(MIN_SLICES) });
    let n_eff = summary.n_eff.filter(|_| is_steady(Level::P99));
    let dependent = n_eff.filter(|n_eff| n_eff.saturating_mul(DEPENDENT) < summary.samples);
    let dependent = dependent.map(|n_eff| Dependent { samples: summary.samples, n_eff }.into());
    refused.map(Finding::from).into_iter().chain(slices).chain(dependent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::cell::tests::findings_of;
    use crate::summarise;
    use crate::testing::RunBuilder;
    use punctual_model::Span;

    #[test]
    fn no_advice_to_measure_longer_is_given_where_latency_changed() {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        run.header.cells[0].duration = Span(60_000_000_000);
        run.header.cells[0].period = "10ms".parse().unwrap();
        run.measure(0, 0, |cpu, cycle| {
            let noise = punctual_model::SplitMix64::new(cycle * 2 + u64::from(cpu)).below(1_000);
            5_000 + i64::try_from(noise).unwrap() + if cycle < 3_000 { 0 } else { 9_000 }
        });
        let summary = summarise(&run.header, &run.entries);
        assert_eq!(
            summary.cells[0].quantiles.at(Level::P50).value_ns(),
            None,
            "two states: too few independent samples"
        );
        let said: Vec<_> = summary.cell_findings[0].iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|said| said.starts_with("level shift: p50 at t = ")), "{said:?}");
        assert!(!said.iter().any(|said| said.contains("longer")), "{said:?}");
    }

    #[test]
    fn how_much_blocks_differ_is_said() {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        for block in 0..3 {
            run.measure(block, 0, move |_, _| 5_000 + 1_000 * i64::from(block));
        }
        let by_block = ByBlock { level: punctual_model::Level::P99, blocks: 3, least_ns: 5_000, most_ns: 7_000 }.into();
        assert!(findings_of(&run).contains(&by_block), "{:?}", findings_of(&run));
    }
}
