//! Figures of each measured thread of a cell: CPUs may differ, and threads may have different periods.

use crate::stats::histogram::{merged, standard_deviation};
use crate::summary::open::Open;
use crate::summary::pool::Pool;
use punctual_model::{Period, SwitchReason, ThreadRecord};
use serde::Serialize;
use std::collections::BTreeMap;

/// The thread of one CPU, over all blocks.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ThreadSummary {
    /// Its CPU.
    pub cpu: u32,
    /// Its period, ns.
    #[serde(rename = "period_ns")]
    pub period: Period,
    /// Figures of all blocks together.
    #[serde(flatten)]
    pub all: ThreadFigures,
    /// Figures of each block, in their order.
    pub blocks: Vec<ThreadBlock>,
}

/// The thread of one CPU, in one block.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ThreadBlock {
    /// Number of the block, from 0.
    pub block: u32,
    /// Figures of the block.
    #[serde(flatten)]
    pub figures: ThreadFigures,
}

/// Moments and extremes of the latencies of a thread, by wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ThreadFiguresDocument")]
pub struct ThreadFigures {
    /// Wake-ups recorded.
    pub samples: u64,
    /// Missed due times, and triggers without an answer.
    pub missed: u64,
    /// Smallest latency, ns; `null` without samples.
    pub min_ns: Option<i64>,
    /// Mean latency, ns; `null` without samples.
    pub mean_ns: Option<f64>,
    /// Waits that are open at the end.
    #[serde(skip)]
    pub(crate) open: Option<Open>,
    /// Standard deviation of the latency, ns; `null` below 2 samples.
    pub stddev_ns: Option<f64>,
    /// Largest latency, ns; `null` without samples and open waits.
    pub max_ns: Option<i64>,
    /// Whether that is a wait still open at the end, or a trigger without an answer: a lower bound.
    pub max_is_lower_bound: bool,
}

impl ThreadFigures {
    /// Mean latency, ns, and whether it is a lower bound: waits that are open count with what they had reached.
    pub fn mean(&self) -> Option<(f64, bool)> {
        Open::mean(self.open, self.mean_ns, self.samples)
    }
}

/// The threads of a cell, by CPU; none where something else measures, or where several may have one CPU.
pub(crate) fn of(pool: &Pool<'_>) -> Vec<ThreadSummary> {
    if pool.cell.task.is_reported() || pool.cell.task.watch().is_some() {
        return Vec::new();
    }
    let mut by_cpu: BTreeMap<u32, Vec<(u32, &ThreadRecord)>> = BTreeMap::new();
    for (entry, thread) in pool.threads() {
        by_cpu.entry(thread.cpu).or_default().push((entry.planned.block, thread));
    }
    let summary = |(cpu, records): (u32, Vec<(u32, &ThreadRecord)>)| ThreadSummary {
        cpu,
        period: records.first().map_or(pool.cell.period, |(_, thread)| thread.period_in(pool.cell)),
        all: figures(&records.iter().map(|(_, thread)| *thread).collect::<Vec<_>>()),
        blocks: records
            .iter()
            .map(|(block, thread)| ThreadBlock { block: *block, figures: figures(&[*thread]) })
            .collect(),
    };
    by_cpu.into_iter().map(summary).collect()
}

/// Whether the threads have one period, so that those of a cell are one population.
pub(crate) fn have_one_period(threads: &[ThreadSummary]) -> bool {
    threads.windows(2).all(|pair| pair[0].period == pair[1].period)
}

fn figures(records: &[&ThreadRecord]) -> ThreadFigures {
    let histogram = merged(records.iter().map(|thread| &thread.histogram));
    let maxima = || records.iter().flat_map(|thread| maxima(thread));
    let sum = |of: fn(&ThreadRecord) -> u64| records.iter().map(|thread| of(thread)).fold(0, u64::saturating_add);
    ThreadFigures {
        samples: sum(|thread| thread.recorded),
        missed: sum(|thread| thread.missed.saturating_add(thread.never_answered())),
        min_ns: histogram.min_ns,
        mean_ns: (histogram.n > 0).then(|| histogram.sum_ns as f64 / histogram.n as f64),
        open: Open::of(records.iter().copied()),
        stddev_ns: standard_deviation(&histogram),
        max_ns: maxima().map(|(ns, ..)| ns).max(),
        // What is open or never came may be later than all that ended.
        max_is_lower_bound: maxima().any(|(_, is_bound, _)| is_bound),
    }
}

/// The largest latencies of what has ended, of what is open and of what never came, ns, each with whether it is a lower
/// bound, and with its cycle if that is known.
pub(crate) fn maxima(thread: &ThreadRecord) -> impl Iterator<Item = (i64, bool, Option<i64>)> {
    let cycle = thread.worst.first().and_then(|worst| i64::try_from(worst.cycle).ok());
    let ended = thread.histogram.max_ns.map(|ns| (ns, false, cycle));
    let reached = |at_least_ns| i64::try_from(at_least_ns).unwrap_or(i64::MAX);
    let open = thread.censored.map(|open| (reached(open.at_least_ns), true, Some(open.cycle)));
    let never = thread.unanswered.iter().flatten().filter_map(|slice| slice.histogram.max_ns).max();
    [ended, open, never.map(|ns| (ns, true, None))].into_iter().flatten()
}

/// What is known of the threads of a cell that Cobalt schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CobaltThreads {
    /// Switches to secondary mode during the cycles, as far as counted.
    pub(crate) mode_switches: u64,
    /// Why the first of them happened; `None` if Cobalt did not say.
    pub(crate) reason: Option<SwitchReason>,
    /// Number of threads whose switches are unknown, because they did not end.
    pub(crate) unknown: u64,
    /// Largest gravity for threads of programs, ns; `None` if a block does not know its own.
    pub(crate) gravity_ns: Option<i64>,
}

/// Sums over all blocks; `None` for other threads.
pub(super) fn of_cobalt(pool: &Pool<'_>) -> Option<CobaltThreads> {
    pool.cell.task.is_of_cobalt().then(|| CobaltThreads {
        mode_switches: pool.sum(|thread| thread.cobalt.map_or(0, |cobalt| cobalt.mode_switches)),
        reason: pool.threads().find_map(|(_, thread)| thread.cobalt?.reason),
        unknown: pool.sum(|thread| u64::from(thread.cobalt.is_none())),
        gravity_ns: gravity_ns(pool),
    })
}

/// Gravity for threads of programs while the cell was measured.
fn gravity_ns(pool: &Pool<'_>) -> Option<i64> {
    let of_block = |entry: &&punctual_model::Entry| entry.record.host_before.cokernel.as_ref()?.gravity()?.user_ns;
    let all: Option<Vec<i64>> = pool.entries.iter().map(of_block).collect();
    all?.into_iter().max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarise;
    use crate::testing::RunBuilder;
    use punctual_model::Span;

    /// Two blocks of 3 s with threads of 1 ms and 1.5 ms.
    fn run(latency_ns: impl Fn(u32, u32, u64) -> i64) -> Vec<ThreadSummary> {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        run.header.cells[0].conditions.period_step = Some(Span(500_000));
        run.header.cells[0].duration = Span(3_000_000_000);
        for block in 0..2 {
            run.measure(block, 0, |cpu, cycle| latency_ns(block, cpu, cycle));
        }
        assert!(run.entries.iter().flat_map(|entry| &entry.record.threads).all(ThreadRecord::is_consistent));
        summarise(&run.header, &run.entries).cells.remove(0).by_thread
    }

    #[test]
    fn each_thread_has_its_period_and_its_figures_in_all_blocks_and_in_each() {
        let threads = run(|block, cpu, cycle| match (block, cpu, cycle) {
            // 3.2 ms late: 2 due times of 1.5 ms are missed, of 1 ms it would be 3.
            (1, 1, 100) => 3_200_000,
            (_, cpu, _) => 5_000 + i64::from(cpu) * 1_000 + i64::from(block),
        });
        let of = |thread: &ThreadSummary| (thread.cpu, thread.period.ns(), thread.all.samples, thread.all.missed);
        assert_eq!(threads.iter().map(of).collect::<Vec<_>>(), [(0, 1_000_000, 6000, 0), (1, 1_500_000, 3998, 2)]);
        let [first, second] = &threads[..] else { panic!("two threads") };
        assert_eq!((first.all.min_ns, first.all.max_ns, first.all.mean_ns), (Some(5_000), Some(5_001), Some(5_000.5)));
        let block = |block: &ThreadBlock| (block.block, block.figures.samples, block.figures.missed);
        assert_eq!(second.blocks.iter().map(block).collect::<Vec<_>>(), [(0, 2000, 0), (1, 1998, 2)]);
        assert_eq!((second.all.max_ns, second.blocks[0].figures.max_ns), (Some(3_200_000), Some(6_000)));
        assert_eq!(second.blocks[0].figures.stddev_ns, Some(0.0));
        assert!(!have_one_period(&threads) && have_one_period(&threads[..1]) && have_one_period(&[]));
    }

    #[test]
    fn an_open_wait_is_a_lower_bound_of_its_thread_only() {
        let threads = run(|block, cpu, cycle| if (block, cpu, cycle) == (0, 1, 1_999) { i64::MAX } else { 5_000 });
        let of = |thread: &ThreadSummary| (thread.all.max_ns, thread.all.max_is_lower_bound);
        assert_eq!(threads.iter().map(of).collect::<Vec<_>>(), [(Some(5_000), false), (Some(1_500_000), true)]);
        assert_eq!(threads[1].blocks[1].figures.max_ns, Some(5_000));
    }
}
