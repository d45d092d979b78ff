//! The due-time view of a stall: one latency for each due time, including those that passed during the stall.

use crate::stats::histogram::merged;
use crate::stats::levels::Quantiles;
use crate::stats::quantile::upper_edge;
use crate::summary::pool::{Pool, Stretch, stretch_starts};
use punctual_model::{Cell, Histogram, Period, Record, Slice, ThreadRecord, Worst};
use serde::Serialize;
use std::collections::BTreeMap;

/// Sub-buckets per octave of the histogram: groups no wider than this share of their value stay within a bucket's
/// resolution.
const STEPS: u64 = 128;

/// Distribution of a quantile: by wake-up or by due time; see [`crate::by_due_time`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// Both: equal, because no due time was missed.
    Both,
    /// One latency for each wake-up.
    WakeUps,
    /// One latency for each due time, missed ones included.
    DueTimes,
}

/// Latency by due time: missed due times are filled in, see [`by_due_time`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "DueTimesDocument")]
pub struct DueTimes {
    /// Due times in this view.
    #[serde(rename = "due_times")]
    pub n: u64,
    /// Whether open waits or triggers without an answer are included, with the lateness they had reached: high
    /// quantiles are then lower bounds.
    #[serde(rename = "are_lower_bounds")]
    pub at_least: bool,
    /// Whether no due time was missed, so that this is the distribution by wake-up.
    #[serde(skip)]
    pub(crate) is_by_wakeup: bool,
    /// The distribution.
    #[serde(flatten)]
    pub quantiles: Quantiles,
}

impl DueTimes {
    /// Builds the view from the distribution by wake-up and the result of [`slices`] for the same pool.
    pub(crate) fn of(
        pool: &Pool<'_>,
        by_wakeup: Quantiles,
        by_due_time: Option<&(Histogram, Vec<Histogram>)>,
    ) -> DueTimes {
        let at_least = pool.threads().any(|(_, thread)| is_open(thread));
        let n = by_due_time.map_or_else(|| pool.sum(|thread| thread.recorded), |(all, _)| all.n);
        let of = |(all, slices): &(Histogram, Vec<Histogram>)| Quantiles::of(all, slices, pool.confidence);
        DueTimes { n, at_least, is_by_wakeup: by_due_time.is_none(), quantiles: by_due_time.map_or(by_wakeup, of) }
    }
}

/// Whether a wait was open, or a trigger had no answer.
fn is_open(thread: &ThreadRecord) -> bool {
    thread.censored.is_some() || thread.never_answered() > 0
}

/// Whether late wake-ups of a thread imply missed due times before them. A relative wait is followed by another of the
/// same length, and each trigger has an answer of its own; versions that left out late answers filled in the missed due
/// times.
fn is_filled_in(cell: &Cell, thread: &ThreadRecord) -> bool {
    cell.task.misses_when_late() || thread.unanswered.is_none() && !cell.task.is_relative()
}

/// All latencies by due time, and those of each stretch of time, which add up to them; `None` if equal to those by
/// wake-up.
pub(crate) fn slices(pool: &Pool<'_>) -> Option<(Histogram, Vec<Histogram>)> {
    let fills_in = |thread: &ThreadRecord| thread.missed > 0 && is_filled_in(pool.cell, thread);
    if !pool.threads().any(|(_, thread)| is_open(thread) || fills_in(thread)) {
        return None;
    }
    let mut slices: BTreeMap<Stretch, Histogram> = BTreeMap::new();
    for (entry, thread) in pool.threads() {
        let start = stretch_starts(&entry.record, thread);
        let mut add = |slice: &Slice, histogram: &Histogram| {
            slices.entry((entry.planned.block, start(slice))).or_default().merge(histogram);
        };
        let parts: Vec<Part<'_>> = thread.slices.iter().map(|slice| Part::of_slice(thread, slice)).collect();
        for (slice, missed) in thread.slices.iter().zip(missed(pool.cell, thread, &parts)) {
            add(slice, &slice.histogram);
            add(slice, &missed);
        }
        thread.unanswered.iter().flatten().for_each(|slice| add(slice, &slice.histogram));
    }
    let mut slices: Vec<_> = slices.into_values().collect();
    // The open waits form one more slice: they were all open at the end.
    slices.push(open_waits(pool.threads().map(|(_, thread)| thread), pool.cell));
    Some((merged(slices.iter()), slices))
}

/// The latencies of one measurement by due time, all its CPUs together, including open waits and triggers without an
/// answer. Equal to those by wake-up where no due time was missed.
pub fn of_record(record: &Record) -> Histogram {
    let threads = || record.threads.iter();
    let unanswered = threads().flat_map(|thread| thread.unanswered.iter().flatten());
    let mut all = merged(threads().map(|thread| &thread.histogram).chain(unanswered.map(|slice| &slice.histogram)));
    for thread in threads() {
        let whole = Part { histogram: &thread.histogram, worst: thread.worst.iter().map(|w| w.latency_ns).collect() };
        missed(&record.cell, thread, &[whole]).iter().for_each(|missed| all.merge(missed));
    }
    all.merge(&open_waits(threads(), &record.cell));
    all
}

/// Latencies by wake-up, and the exactly known ones among the largest.
struct Part<'a> {
    histogram: &'a Histogram,
    worst: Vec<i64>,
}

impl<'a> Part<'a> {
    fn of_slice(thread: &ThreadRecord, slice: &'a Slice) -> Part<'a> {
        let end = slice.first_cycle.saturating_add(slice.cycles);
        let is_in_it = |worst: &&Worst| (slice.first_cycle..end).contains(&worst.cycle);
        Part {
            histogram: &slice.histogram,
            worst: thread.worst.iter().filter(is_in_it).map(|worst| worst.latency_ns).collect(),
        }
    }
}

/// Missed due times of a thread, with their lateness, for each part of its record: in total as many as it counted,
/// except those behind an open wait.
fn missed(cell: &Cell, thread: &ThreadRecord, parts: &[Part<'_>]) -> Vec<Histogram> {
    if !is_filled_in(cell, thread) {
        return vec![Histogram::default(); parts.len()];
    }
    let mut missed: Vec<_> = parts.iter().map(|part| filled_in(part, thread.period_in(cell))).collect();
    let counted = thread.missed.saturating_sub(thread.behind_open());
    // Where the edge of a bucket stands for a latency, its last due time may be one too many; due times after the end
    // of the cell do not count. Both are the least late.
    let mut excess = missed.iter().map(|part| part.n).sum::<u64>().saturating_sub(counted);
    for part in missed.iter_mut().rev() {
        let out = excess.min(part.n);
        *part = without_lowest(part, out);
        excess -= out;
    }
    missed
}

/// The histogram without its `n` smallest values.
fn without_lowest(histogram: &Histogram, mut n: u64) -> Histogram {
    if n == 0 {
        return histogram.clone();
    }
    let mut left = Histogram::default();
    for bucket in histogram.buckets() {
        let out = n.min(bucket.count);
        n -= out;
        left.record_n(upper_edge(histogram, bucket), bucket.count - out);
    }
    left
}

/// Open waits with the lateness they had reached, and the due times behind them.
fn open_waits<'a>(threads: impl Iterator<Item = &'a ThreadRecord>, cell: &Cell) -> Histogram {
    let mut open = Histogram::default();
    for (wait, thread) in threads.filter_map(|thread| Some((thread.censored?, thread))) {
        let (due, period) = (thread.cycles_due, thread.period_in(cell));
        // The wait may have begun during warm-up; only due times of the measured window count.
        let first = u64::try_from(wait.cycle).unwrap_or(0);
        let before = wait.cycle.min(0).unsigned_abs().saturating_mul(period.ns());
        fill_in(&mut open, wait.at_least_ns.saturating_sub(before), due.saturating_sub(first), 1, period);
    }
    open
}

/// Latency by due time: a wake-up late by L with period P also stands for the missed due times, which were late by L -
/// P, L - 2P ... above 0.
///
/// Computed from the buckets' upper edges, so the number of missed due times may differ from the counted one by 0.78 %.
/// For a record the numbers are equal, because it has more detail.
pub fn by_due_time(by_wakeup: &Histogram, period: Period) -> Histogram {
    let mut all = by_wakeup.clone();
    all.merge(&filled_in(&Part { histogram: by_wakeup, worst: Vec::new() }, period));
    all
}

/// Due times missed by the wake-ups of a part.
fn filled_in(part: &Part<'_>, period: Period) -> Histogram {
    let mut missed = Histogram::default();
    let mut fill =
        |late_ns: u64, n: u64| fill_in(&mut missed, late_ns.saturating_sub(period.ns()), u64::MAX, n, period);
    let exact: Vec<u64> = part.worst.iter().filter_map(|ns| u64::try_from(*ns).ok()).collect();
    for bucket in part.histogram.buckets().rev().take_while(|bucket| bucket.upper_ns > period.ns()) {
        let mut left = bucket.count;
        for late_ns in exact.iter().filter(|ns| (bucket.lower_ns..=bucket.upper_ns).contains(ns)) {
            fill(*late_ns, u64::from(left > 0));
            left = left.saturating_sub(1);
        }
        fill(u64::try_from(upper_edge(part.histogram, bucket)).unwrap_or(0), left);
    }
    missed
}

/// Adds `late_ns`, `late_ns - P`, `late_ns - 2P` ... above 0, at most `due_times` of them, each `n` times.
fn fill_in(histogram: &mut Histogram, mut late_ns: u64, mut due_times: u64, n: u64, period: Period) {
    while late_ns > 0 && due_times > 0 {
        // As many due times at once as share a bucket: an hour-long stall with a short period takes a few thousand
        // steps.
        let group = (late_ns / STEPS / period.ns()).clamp(1, due_times);
        histogram.record_n(i64::try_from(late_ns).unwrap_or(i64::MAX), n.saturating_mul(group));
        late_ns = late_ns.saturating_sub(group * period.ns());
        due_times -= group;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RunBuilder;
    use punctual_model::Span;

    fn period(ns: u64) -> Period {
        Period::try_from(Span(ns)).unwrap()
    }

    #[test]
    fn missed_due_times_are_filled_in_above_zero() {
        let period = period(1_000_000);
        for (late, all) in [
            (0, vec![0]),
            (999_999, vec![999_999]),
            (1_000_000, vec![1_000_000]),
            (1_000_001, vec![1_000_001, 1]),
            (3_500_000, vec![3_500_000, 2_500_000, 1_500_000, 500_000]),
        ] {
            assert_eq!(by_due_time(&Histogram::of(&[late]), period), Histogram::of(&all), "{late}");
        }
        assert_eq!(by_due_time(&Histogram::of(&[-5, 7]), period), Histogram::of(&[-5, 7]));
    }

    /// Stalls of 2.3 to 3.7 ms and one of `longest_ns` at 1 ms, some of them beyond the 1 000 that are known exactly.
    fn stalls(every: u64, longest_ns: i64) -> RunBuilder {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        run.header.cells[0].duration = Span(20_000_000_000);
        run.measure(0, 0, |cpu, cycle| match cycle % every {
            7 => 2_300_000 + i64::try_from(cycle * 7_919 % 1_400_000).unwrap() + i64::from(cpu),
            _ if cycle == 11_003 => longest_ns,
            _ => 5_000,
        });
        run
    }

    #[test]
    fn there_are_as_many_due_times_as_there_were() {
        for (every, longest_ns) in [(500, 5_000), (40, 5_000), (8, 61_000_000), (8, 30_000_000_000), (500, i64::MAX)] {
            let run = stalls(every, longest_ns);
            let pool = &Pool::of_run(&run.header, &run.entries)[0];
            let due: u64 = pool.sum(|thread| thread.cycles_due);
            let (all, slices) = slices(pool).unwrap();
            assert_eq!((all.n, merged(slices.iter()).n), (due, due), "{every} {longest_ns}");
            assert_eq!(of_record(&run.entries[0].record).n, due, "{every} {longest_ns}");
        }
    }

    #[test]
    fn missed_due_times_are_a_period_of_their_thread_apart() {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        run.header.cells[0].conditions.period_step = Some(Span(500_000));
        run.header.cells[0].duration = Span(3_000_000_000);
        // 3.2 ms late on both: due times of 1 ms are missed by 2.2, 1.2 and 0.2 ms; those of 1.5 ms by 1.7 and 0.2 ms.
        run.measure(0, 0, |cpu, cycle| match (cpu, cycle) {
            (_, 100) => 3_200_000,
            (1, 1_999) => i64::MAX,
            _ => 5_000,
        });
        let pool = &Pool::of_run(&run.header, &run.entries)[0];
        let (all, slices) = slices(pool).unwrap();
        let due: u64 = pool.sum(|thread| thread.cycles_due);
        assert_eq!(
            (due, all.n, merged(slices.iter()).n, of_record(&run.entries[0].record).n),
            (5_000, 5_000, 5_000, 5_000)
        );
        let late = [3_200_000, 3_200_000, 2_200_000, 1_700_000, 1_500_000, 1_200_000, 200_000, 200_000];
        let mut want = Histogram::of(&late);
        want.record_n(5_000, 5_000 - 8);
        assert_eq!(all, want);
    }

    #[test]
    fn missed_due_times_have_their_own_lateness() {
        let run = stalls(500, 61_000_000);
        let pool = &Pool::of_run(&run.header, &run.entries)[0];
        let mut latencies: Vec<i64> = Vec::new();
        for thread in &run.entries[0].record.threads {
            let on_time =
                thread.recorded - u64::try_from(thread.worst.iter().filter(|w| w.latency_ns > 5_000).count()).unwrap();
            latencies.extend((0..on_time).map(|_| 5_000));
            for worst in thread.worst.iter().filter(|worst| worst.latency_ns > 5_000) {
                latencies.extend((0..).map(|i| worst.latency_ns - i * 1_000_000).take_while(|late| *late > 0));
            }
        }
        assert_eq!(slices(pool).unwrap().0, Histogram::of(&latencies));
    }

    #[test]
    fn long_stalls_of_short_periods_count_every_due_time() {
        let hour = 3_600_000_000_000;
        let all = by_due_time(&Histogram::of(&[hour]), period(10_000));
        assert_eq!(all.n, 360_000_000, "one wake-up and 359 999 999 missed due times");
        assert_eq!(all.max_ns, Some(hour));
        let half = all.count_above(1_800_000_000_000) as f64 / all.n as f64;
        assert!((half - 0.5).abs() < 0.01, "{half}");
    }
}
