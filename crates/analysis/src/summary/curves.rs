//! Data of a cell's pictures: its distribution by CPU, its quantiles, its maxima over time.

use crate::stats::woodruff::{CONFIDENCE, Quantile, estimate_of};
use crate::summary::pool::Pool;
use crate::summary::threads;
use punctual_model::{Entry, Header, Histogram, Order, Span, ThreadRecord};
use std::collections::BTreeMap;

/// The curves of one cell, over all its blocks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Curves {
    /// All known latencies.
    pub histogram: Histogram,
    /// Samples known only to be later than all of these.
    pub beyond: u64,
    /// Whether an unknown number of late samples is missing, so that no percentile is known.
    pub is_cut: bool,
    /// The latencies of each CPU, by its number; of imported threads without a CPU, by the thread's number.
    pub by_cpu: BTreeMap<u32, Histogram>,
    /// Quantiles, ascending, up to the highest with enough independent samples above it.
    pub rungs: Vec<Rung>,
    /// Each latency that was larger than all before it, in the order of time.
    pub new_maxima: Vec<NewMaximum>,
    /// Time measured; blocks add up. 0 where an imported file does not have it.
    pub measured: Span,
    /// The largest latency of every second.
    pub strip: Strip,
}

/// One quantile on the way up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rung {
    /// The share of samples above it: `1 - p`, below 1 and above 0.
    pub exceedance: f64,
    /// Its value, ns.
    pub value_ns: i64,
    /// Its 95 % interval, ns; `None` when there are too few slices for one.
    pub interval_ns: Option<(i64, i64)>,
}

/// A latency larger than all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewMaximum {
    /// Measured time until it occurred, with the resolution of the record: a second where it has seconds, else a block.
    pub after: Span,
    /// The latency, ns.
    pub latency_ns: i64,
    /// Whether it is an open wait, so that the latency is a lower bound.
    pub at_least: bool,
}

/// The largest latency of every second, with the blocks concatenated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Strip {
    /// One value a second for each CPU, ns; `None` in a second without a wake-up. All have the same length.
    pub by_cpu: BTreeMap<u32, Vec<Option<i64>>>,
    /// Start of each block: its number, and its first second in the strip.
    pub blocks: Vec<(u32, usize)>,
    /// Seconds in the strip.
    pub seconds: usize,
}

/// The curves of the cells whose index is `wanted`; no others are computed.
pub fn curves(header: &Header, entries: &[Entry], wanted: impl Fn(usize) -> bool) -> BTreeMap<usize, Curves> {
    let pools = Pool::of_run(header, entries).into_iter().enumerate();
    pools.filter(|(index, _)| wanted(*index)).map(|(index, pool)| (index, of_cell(&pool))).collect()
}

fn of_cell(pool: &Pool<'_>) -> Curves {
    let by_cpu = by_number(pool.threads().map(|(_, thread)| (thread.cpu, &thread.histogram)));
    let histogram = crate::stats::histogram::merged(by_cpu.values());
    let slices = pool.slices();
    let rungs = rungs(|p| estimate_of(&histogram, &slices, p, CONFIDENCE));
    let (measured, new_maxima) = (pool.measured(), new_maxima(pool));
    Curves { histogram, by_cpu, rungs, new_maxima, measured, strip: strip(pool), ..Curves::default() }
}

/// The quantiles below the first refused one.
pub(crate) fn rungs(quantile: impl Fn(f64) -> Quantile) -> Vec<Rung> {
    let rung = |(exceedance, quantile): (f64, Quantile)| {
        let value_ns = quantile.value_ns()?;
        Some(Rung { exceedance, value_ns, interval_ns: quantile.interval_ns() })
    };
    crate::stats::levels::rungs(quantile).into_iter().filter_map(rung).collect()
}

fn new_maxima(pool: &Pool<'_>) -> Vec<NewMaximum> {
    let mut before = 0;
    rising(pool.entries.iter().flat_map(|entry| {
        let (record, length) = (&entry.record, entry.record.measured.ns());
        let seconds = record.threads.iter().flat_map(|thread| &thread.seconds);
        let ends = |second: u64| (second + 1).saturating_mul(Span::SECOND.ns()).min(length);
        let mut maxima: Vec<_> = seconds
            .filter_map(|second| Some((ends(second.second), second.max_ns?, false)))
            // For records without seconds, the block's maximum.
            .chain(record.threads.iter().flat_map(threads::maxima).map(|(ns, at_least, _)| (length, ns, at_least)))
            .collect();
        maxima.order_by_key(|(at, latency_ns, at_least)| (*at, std::cmp::Reverse(*latency_ns), *at_least));
        let begin = before;
        before += length;
        maxima.into_iter().map(move |(at, latency_ns, at_least)| (Span(begin + at), latency_ns, at_least))
    }))
}

/// Successive new maxima of latencies in the order of time (time, ns, whether it is a lower bound).
pub(crate) fn rising(all: impl Iterator<Item = (Span, i64, bool)>) -> Vec<NewMaximum> {
    let mut seen: Vec<NewMaximum> = Vec::new();
    for (after, latency_ns, at_least) in all {
        if seen.last().is_none_or(|last| latency_ns > last.latency_ns) {
            seen.push(NewMaximum { after, latency_ns, at_least });
        }
    }
    seen
}

/// Histograms of threads by their CPU, or their number.
pub(crate) fn by_number<'a>(all: impl Iterator<Item = (u32, &'a Histogram)>) -> BTreeMap<u32, Histogram> {
    let mut by_number: BTreeMap<u32, Histogram> = BTreeMap::new();
    all.for_each(|(number, histogram)| by_number.entry(number).or_default().merge(histogram));
    by_number
}

fn strip(pool: &Pool<'_>) -> Strip {
    let mut strip = Strip::default();
    for entry in &pool.entries {
        let from = strip.seconds;
        let in_block = |thread: &ThreadRecord| {
            let last = thread.seconds.last().map(|second| second.second + 1);
            last.and_then(|seconds| usize::try_from(seconds).ok()).unwrap_or(0)
        };
        strip.blocks.push((entry.planned.block, from));
        strip.seconds += entry.record.threads.iter().map(in_block).max().unwrap_or(0);
        for thread in &entry.record.threads {
            let row = strip.by_cpu.entry(thread.cpu).or_default();
            row.resize(strip.seconds, None);
            for second in &thread.seconds {
                let at = usize::try_from(second.second).ok().and_then(|second| row.get_mut(from + second));
                if let Some(max_ns) = at {
                    *max_ns = second.max_ns;
                }
            }
        }
    }
    for row in strip.by_cpu.values_mut() {
        row.resize(strip.seconds, None);
    }
    strip
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RunBuilder;
    use punctual_model::Second;

    /// A cell of two blocks; CPU 1 is later, and latest in the second block.
    fn run() -> RunBuilder {
        let mut run = RunBuilder::new();
        run.header.plan.repetitions = 2;
        run.cell("none", "other").cell("none", "fifo:80");
        for block in 0..2 {
            run.measure(block, 0, move |cpu, cycle| match (block, cpu, cycle) {
                (1, 1, 700) => 900_000,
                _ => 5_000 + i64::from(cpu) * 1_000 + i64::try_from(cycle % 100).unwrap_or(0),
            });
        }
        run
    }

    fn of_first(run: &RunBuilder) -> Curves {
        let mut curves = curves(&run.header, &run.entries, |index| index == 0);
        assert_eq!(curves.len(), 1);
        curves.remove(&0).unwrap()
    }

    #[test]
    fn cpus_add_up_and_rungs_stop_where_samples_are_few() {
        let curves = of_first(&run());
        assert_eq!((curves.histogram.n, curves.by_cpu.len(), curves.by_cpu[&1].max_ns), (8_000, 2, Some(900_000)));
        assert_eq!(curves.measured, Span(4_000_000_000));
        assert!(curves.rungs.is_sorted_by(|a, b| a.exceedance > b.exceedance && a.value_ns <= b.value_ns));
        let last = curves.rungs.last().unwrap();
        // At most 8 000 independent samples: 10 of them above means an exceedance of 1/800 at least.
        assert!(last.exceedance >= 1.0 / 800.0 && last.exceedance < 0.1, "{last:?}");
        assert!(curves.rungs.iter().all(|rung| rung.interval_ns.is_some()), "40 slices give intervals");
    }

    #[test]
    fn new_maxima_come_with_the_time_that_the_record_knows() {
        let mut run = run();
        run.entries.iter_mut().flat_map(|entry| &mut entry.record.threads).for_each(|thread| thread.seconds.clear());
        let found = |run: &RunBuilder| {
            of_first(run).new_maxima.iter().map(|m| (m.after.ns() / 1_000_000, m.latency_ns)).collect::<Vec<_>>()
        };
        assert_eq!(found(&run), [(2_000, 6_099), (4_000, 900_000)], "without seconds, the block");
        let second = |second, max_ns| Second { second, n: 1_000, max_ns, ..Second::default() };
        run.entries[0].record.threads[1].seconds = vec![second(0, Some(6_050)), second(1, Some(6_099))];
        run.entries[1].record.threads[1].seconds = vec![second(0, Some(900_000)), second(1, None)];
        assert_eq!(found(&run), [(1_000, 6_050), (2_000, 6_099), (3_000, 900_000)]);

        let strip = of_first(&run).strip;
        assert_eq!((strip.seconds, &strip.blocks[..]), (4, &[(0, 0), (1, 2)][..]));
        assert_eq!(strip.by_cpu[&1], [Some(6_050), Some(6_099), Some(900_000), None]);
        assert_eq!(strip.by_cpu[&0], [None; 4]);
    }

    #[test]
    fn a_wait_that_never_ended_is_a_maximum() {
        let mut run = RunBuilder::new();
        run.cell("none", "other");
        run.measure(0, 0, |cpu, cycle| if cpu == 1 && cycle > 800 { i64::MAX } else { 5_000 });
        let last = *of_first(&run).new_maxima.last().unwrap();
        assert_eq!((last.latency_ns, last.at_least), (1_199_000_000, true));
    }

    #[test]
    fn nothing_measured_has_no_curves() {
        let mut run = RunBuilder::new();
        run.cell("none", "other");
        assert_eq!(of_first(&run), Curves::default());
    }
}
