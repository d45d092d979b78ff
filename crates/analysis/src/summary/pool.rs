//! All records of one cell together, the input of its statistics.

use crate::stats::histogram::merged;
use crate::summary::looks;
use punctual_model::{Cell, Entry, Episode, Header, Histogram, Ledger, Order, Record, Slice, Span, ThreadRecord};
use std::collections::{BTreeMap, HashSet};

/// Smallest distance between two episodes of misses, also on different CPUs: one cause may stop all of them.
const JOIN_NS: u64 = Span::SECOND.0;

/// A stretch of time: its block, and its start, ns after the first measured due time of the block.
pub(crate) type Stretch = (u32, u64);

/// The slices of a thread, each with its stretch.
pub(crate) fn slices_of<'a>(
    entry: &'a Entry,
    thread: &'a ThreadRecord,
) -> impl Iterator<Item = (Stretch, &'a Slice)> + use<'a> {
    let start = stretch_starts(&entry.record, thread);
    thread.slices.iter().map(move |slice| ((entry.planned.block, start(slice)), slice))
}

/// The start of the stretch that a slice of a thread belongs to, ns.
///
/// CPUs share what delays them, so slices of all threads that cover the same time are one unit of the intervals. With
/// equal periods those have the same first cycle. With different periods either the record has the length of its
/// stretches, and a slice begins in its own; or, where each thread has cut its slices by itself, stretches are as long
/// as the longest slice, and a slice belongs to the one that contains its middle.
pub(crate) fn stretch_starts<'a>(record: &'a Record, thread: &'a ThreadRecord) -> impl Fn(&Slice) -> u64 + use<'a> {
    let has_several = record.threads.iter().any(|thread| thread.period.is_some());
    let of_slice =
        |thread: &ThreadRecord, slice: &Slice| slice.cycles.saturating_mul(thread.period_in(&record.cell).ns());
    let longest =
        record.threads.iter().flat_map(|thread| thread.slices.iter().map(move |slice| of_slice(thread, slice)));
    let length = if has_several { longest.max().unwrap_or(0).max(1) } else { 1 };
    move |slice| match thread.stretch {
        _ if !has_several => thread.due_ns(slice.first_cycle, &record.cell),
        Some(Span(length)) => floor(thread.due_ns(slice.first_cycle, &record.cell), length),
        None => {
            let middle = slice.cycles.saturating_mul(thread.period_in(&record.cell).ns()) / 2;
            floor(thread.due_ns(slice.first_cycle, &record.cell).saturating_add(middle), length)
        }
    }
}

/// The largest multiple of `length` that is not above `at`.
fn floor(at: u64, length: u64) -> u64 {
    at - at.checked_rem(length).unwrap_or(0)
}

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
            pool.entries.order_by_key(|entry| entry.planned);
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

    /// The account of the due times of all threads of all blocks; empty where an outside program measures.
    pub(crate) fn ledger(&self) -> Ledger {
        let task = &self.cell.task;
        self.threads().filter(|_| !task.is_reported()).map(|(_, thread)| thread.ledger(task)).sum()
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

    /// The slices, each with its block and the start of its stretch, ns after the first measured due time.
    pub(crate) fn stretches(&self) -> BTreeMap<Stretch, Histogram> {
        let mut slices: BTreeMap<Stretch, Histogram> = BTreeMap::new();
        for (at, slice) in self.threads().flat_map(|(entry, thread)| slices_of(entry, thread)) {
            slices.entry(at).or_default().merge(&slice.histogram);
        }
        slices
    }

    /// Number of slices.
    pub(crate) fn n_slices(&self) -> usize {
        let all = self.threads().flat_map(|(entry, thread)| slices_of(entry, thread));
        all.map(|(at, _)| at).collect::<HashSet<_>>().len()
    }

    /// Start of each episode of misses, ns of measured time with the blocks concatenated.
    ///
    /// Of episodes beyond those that a thread lists only the number is known; they are spread evenly over the rest of
    /// their block.
    pub(crate) fn episode_starts_ns(&self) -> Vec<u64> {
        let mut starts = Vec::new();
        let mut offset = 0;
        for entry in &self.entries {
            let end = entry.record.measured.ns();
            let episodes = || entry.record.threads.iter().map(|thread| &thread.episodes);
            let of_thread = |thread: &'a ThreadRecord| {
                let began = |e: &Episode| thread.due_ns(e.first_cycle, self.cell);
                thread.episodes.first.iter().map(move |e| (began(e), e.ended_ns.saturating_add(thread.lead().ns())))
            };
            let stretches = entry.record.threads.iter().flat_map(of_thread).collect();
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

    /// One block of 3 s on CPUs 0 (1 ms) and 1 (1.5 ms).
    fn two_periods(latency_ns: impl Fn(u32, u64) -> i64) -> RunBuilder {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        run.header.cells[0].conditions.period_step = Some(Span(500_000));
        run.header.cells[0].duration = Span(3 * SECOND);
        run.measure(0, 0, latency_ns);
        run
    }

    #[test]
    fn slices_of_different_periods_are_pooled_by_time() {
        // The first 300 ms are late on both CPUs: 300 cycles, and 200.
        let late = |cpu: u32, cycle: u64| if cycle * (1_000 + 500 * u64::from(cpu)) < 300_000 { 9_000 } else { 5_000 };
        let mut run = two_periods(late);
        let counts = |run: &RunBuilder| -> Vec<(u64, u64, u64)> {
            let pool = &Pool::of_run(&run.header, &run.entries)[0];
            let all = pool.stretches();
            assert_eq!((all.len(), all.values().map(|slice| slice.n).sum::<u64>()), (pool.n_slices(), 5_000));
            all.into_iter().map(|((_, start), slice)| (start, slice.n, slice.count_above(6_000))).collect()
        };
        // 20 slices of 150 and of 100 cycles, cut by each thread: 150 ms each.
        let want: Vec<_> = (0..20).map(|i| (i * 150_000_000, 250, if i < 2 { 250 } else { 0 })).collect();
        assert_eq!(counts(&run), want);
        // Of another length in the second thread: 17 cycles, 25.5 ms. A slice belongs where its middle lies.
        let thread = &mut run.entries[0].record.threads[1];
        let all: Vec<_> = (0..2_000).map(|cycle| late(1, cycle)).collect();
        let slice = |(i, part): (usize, &[i64])| Slice {
            first_cycle: i as u64 * 17,
            cycles: part.len() as u64,
            histogram: Histogram::of(part),
        };
        thread.slices = all.chunks(17).enumerate().map(slice).collect();
        let found = counts(&run);
        assert_eq!(found.len(), 20, "no more units than of the longest slices");
        assert!(found.iter().all(|(_, n, _)| n.abs_diff(250) <= 17), "{found:?}");
        assert!(found[3..].iter().all(|(.., late)| *late == 0), "{found:?}");
        // With stretches in the record, a slice belongs to the one that it begins in.
        run.entries[0].record.threads.iter_mut().for_each(|thread| thread.stretch = Some(Span(1_500_000_000)));
        let found = counts(&run);
        assert_eq!(found.iter().map(|(start, ..)| *start).collect::<Vec<_>>(), [0, 1_500_000_000]);
    }

    #[test]
    fn an_interval_of_two_periods_is_no_narrower_than_that_of_its_thread() {
        // Both threads are late at the same times, so that the second adds no evidence.
        let phase = |cpu: u32, cycle: u64| cycle * (1_000 + 500 * u64::from(cpu)) / 150_000 % 3;
        let run = two_periods(|cpu, cycle| 5_000 + i64::try_from(phase(cpu, cycle) * 1_000 + cycle % 90).unwrap());
        let both = crate::summarise(&run.header, &run.entries)
            .cells
            .remove(0)
            .quantiles
            .at(punctual_model::Level::P50)
            .interval_ns()
            .unwrap();
        let mut alone = run;
        alone.entries[0].record.threads.truncate(1);
        let first = crate::summarise(&alone.header, &alone.entries)
            .cells
            .remove(0)
            .quantiles
            .at(punctual_model::Level::P50)
            .interval_ns()
            .unwrap();
        assert!(both.1 - both.0 >= (first.1 - first.0) * 95 / 100, "{both:?} {first:?}");
    }

    #[test]
    fn episodes_of_a_thread_follow_its_period() {
        // CPU 1 is late at its cycle 1500, 2.25 s after the start; CPU 0 at 0.75 s: with its period they would be one.
        let run = two_periods(
            |cpu, cycle| if (cpu, cycle) == (1, 1_500) || (cpu, cycle) == (0, 750) { 4_000_000 } else { 5_000 },
        );
        let starts = Pool::of_run(&run.header, &run.entries)[0].episode_starts_ns();
        assert_eq!(starts, [750_000_000, 2_250_000_000]);
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
