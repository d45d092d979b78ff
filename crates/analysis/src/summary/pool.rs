//! All records of one cell together, the input of its statistics.

use crate::stats::histogram::merged;
use crate::summary::looks;
use model::{Cell, Entry, Header, Histogram, Span, ThreadRecord};
use std::collections::{BTreeMap, HashSet};

/// Smallest distance between two episodes of misses, also on different CPUs: one cause may stop all of them.
const JOIN_NS: u64 = Span::SECOND.0;

/// The records of one cell, by block.
#[derive(Debug)]
pub(crate) struct Pool<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) entries: Vec<&'a Entry>,
    /// Confidence of the intervals of quantiles.
    pub(crate) confidence: f64,
}

impl<'a> Pool<'a> {
    /// The entries of each cell of the run, in the order of the plan.
    pub(crate) fn of_run(header: &'a Header, entries: &'a [Entry]) -> Vec<Pool<'a>> {
        let confidence = looks::confidence(header);
        let mut pools: Vec<_> =
            header.cells.iter().map(|cell| Pool { cell, entries: Vec::new(), confidence }).collect();
        for entry in entries {
            if let Some(pool) = pools.get_mut(entry.planned.cell_index) {
                pool.entries.push(entry);
            }
        }
        for pool in &mut pools {
            pool.entries.sort_by_key(|entry| entry.planned);
        }
        pools
    }

    /// Every measured thread of every block, with the entry it belongs to.
    pub(crate) fn threads(&self) -> impl Iterator<Item = (&'a Entry, &'a ThreadRecord)> + '_ {
        self.entries.iter().flat_map(|entry| entry.record.threads.iter().map(move |thread| (*entry, thread)))
    }

    /// The sum over all threads of all blocks.
    pub(crate) fn sum(&self, of: impl Fn(&ThreadRecord) -> u64) -> u64 {
        self.threads().map(|(_, thread)| of(thread)).fold(0, u64::saturating_add)
    }

    /// Time measured: blocks add up, CPUs do not, because they share it.
    pub(crate) fn measured(&self) -> Span {
        Span(self.entries.iter().map(|entry| entry.record.measured.ns()).fold(0, u64::saturating_add))
    }

    /// All latencies.
    pub(crate) fn histogram(&self) -> Histogram {
        merged(self.threads().map(|(_, thread)| &thread.histogram))
    }

    /// The units of every interval, in the order of time: one stretch of one block, summed over its CPUs. CPUs are no
    /// repetitions of each other: one cause often delays all of them.
    pub(crate) fn slices(&self) -> Vec<Histogram> {
        self.stretches().into_values().collect()
    }

    /// The slices, each with its block and its first cycle.
    pub(crate) fn stretches(&self) -> BTreeMap<(u32, u64), Histogram> {
        let mut slices: BTreeMap<(u32, u64), Histogram> = BTreeMap::new();
        for (entry, thread) in self.threads() {
            for slice in &thread.slices {
                slices.entry((entry.planned.block, slice.first_cycle)).or_default().merge(&slice.histogram);
            }
        }
        slices
    }

    /// Number of slices.
    pub(crate) fn n_slices(&self) -> usize {
        let of_thread = |(entry, thread): (&'a Entry, &'a ThreadRecord)| {
            thread.slices.iter().map(|slice| (entry.planned.block, slice.first_cycle))
        };
        self.threads().flat_map(of_thread).collect::<HashSet<_>>().len()
    }

    /// Start of each episode of misses, ns of measured time with the blocks concatenated.
    ///
    /// Of episodes beyond those that a thread lists only the number is known; they are spread evenly over the rest of
    /// their block.
    pub(crate) fn episode_starts_ns(&self) -> Vec<u64> {
        let period = self.cell.period.ns();
        let mut starts = Vec::new();
        let mut offset = 0;
        for entry in &self.entries {
            let end = entry.record.measured.ns();
            let episodes = || entry.record.threads.iter().map(|thread| &thread.episodes);
            let listed = episodes().flat_map(|episodes| &episodes.first);
            let stretches = listed.map(|e| (e.first_cycle.saturating_mul(period), e.ended_ns)).collect();
            starts.extend(joined(stretches).into_iter().map(|start| offset + start.min(end)));
            let unlisted = episodes().filter_map(|episodes| {
                let more = episodes.count.checked_sub(u64::try_from(episodes.first.len()).ok()?)?;
                Some((more, episodes.first.last().map_or(0, |last| last.ended_ns.min(end))))
            });
            let (more, from) = unlisted.max().unwrap_or_default();
            starts.extend(spread(more, from, end).map(|start| offset + start));
            offset += end;
        }
        starts
    }
}

/// `n` instants at equal distances after `from` and before `end`.
fn spread(n: u64, from: u64, end: u64) -> impl Iterator<Item = u64> {
    let step = end.saturating_sub(from) as f64 / (n as f64 + 1.0);
    (1..=n).map(move |i| from + crate::stats::special::whole(step * i as f64))
}

/// All latencies of each cell, in the order of the plan.
#[must_use]
pub fn histograms(header: &Header, entries: &[Entry]) -> Vec<Histogram> {
    Pool::of_run(header, entries).iter().map(Pool::histogram).collect()
}

/// Starts of the stretches, once those that overlap or are closer than a second are merged.
fn joined(mut stretches: Vec<(u64, u64)>) -> Vec<u64> {
    stretches.sort_unstable();
    let mut starts = Vec::new();
    let mut reached: Option<u64> = None;
    for (first, ended) in stretches {
        if reached.is_none_or(|reached| first >= reached.saturating_add(JOIN_NS)) {
            starts.push(first);
        }
        reached = reached.max(Some(ended));
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RunBuilder;

    const SECOND: u64 = Span::SECOND.0;

    /// The episodes of one block of 10 s in which CPU 0 is late from its start and CPU 1 at the given cycle of 1 ms.
    fn starts(late_ns: i64, on_cpu_1: u64) -> Vec<u64> {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        run.header.cells[0].duration = Span(10 * SECOND);
        run.measure(0, 0, |cpu, cycle| match (cpu, cycle) {
            (0, 0) => late_ns,
            (1, cycle) if cycle == on_cpu_1 => 3_000_000,
            _ => 5_000,
        });
        assert!(run.entries[0].record.threads.iter().all(ThreadRecord::is_consistent));
        Pool::of_run(&run.header, &run.entries)[0].episode_starts_ns()
    }

    #[test]
    fn a_stall_lasts_until_its_wake_up_came() {
        let five_s = 5_000_000_000;
        for (late_ns, on_cpu_1, expected) in [
            (five_s, 3_000, vec![0]),
            (five_s, 5_999, vec![0]),
            (five_s, 6_000, vec![0, 6 * SECOND]),
            (2_000_000, 3_000, vec![0, 3 * SECOND]),
            (i64::MAX, 9_999, vec![0]),
        ] {
            assert_eq!(starts(late_ns, on_cpu_1), expected, "{late_ns} {on_cpu_1}");
        }
    }

    #[test]
    fn unlisted_episodes_are_spread_over_the_rest() {
        assert_eq!(spread(0, 5, 9).count(), 0);
        assert_eq!(spread(3, 2 * SECOND, 6 * SECOND).collect::<Vec<_>>(), [3 * SECOND, 4 * SECOND, 5 * SECOND]);
        assert_eq!(spread(2, 9, 9).collect::<Vec<_>>(), [9, 9]);

        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        for block in 0..2 {
            run.measure(block, 0, |_, cycle| if cycle == 0 { 2_000_000 } else { 5_000 });
        }
        for thread in run.entries.iter_mut().flat_map(|entry| &mut entry.record.threads) {
            thread.episodes.count += u64::from(thread.cpu);
        }
        // A block is 2 s; its listed episode ended after 2 ms, and the unlisted one of CPU 1 is half way from there to
        // the end.
        let half = 1_001_000_000;
        let starts = Pool::of_run(&run.header, &run.entries)[0].episode_starts_ns();
        assert_eq!(starts, [0, half, 2 * SECOND, 2 * SECOND + half]);
    }

    #[test]
    fn stretches_closer_than_a_second_are_one() {
        assert!(joined(vec![]).is_empty());
        assert_eq!(joined(vec![(5, 9), (0, 2)]), [0]);
        assert_eq!(joined(vec![(0, 10), (JOIN_NS + 9, JOIN_NS + 9)]), [0]);
        assert_eq!(joined(vec![(0, 10), (JOIN_NS + 10, JOIN_NS + 10)]), [0, JOIN_NS + 10]);
        assert_eq!(joined(vec![(0, 3 * JOIN_NS), (1, 2), (3 * JOIN_NS, 3 * JOIN_NS)]), [0], "one within another");
    }
}
