//! The second view of a stall: one latency for each due time, those that nobody could wait for included.

use crate::pool::{Pool, merged};
use crate::summary::Quantiles;
use model::{Cell, Histogram, Period, Record, ThreadRecord};

/// Sub-buckets per octave of the histogram: groups no wider than this share of their value stay within a bucket's
/// resolution.
const STEPS: u64 = 128;

/// Latency by due time: those filled in that were past before the thread could sleep again, see [`by_due_time`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DueTimes {
    /// Due times in this view.
    pub n: u64,
    /// Whether open waits are in it, with the lateness they had: then high quantiles are lower bounds.
    pub at_least: bool,
    /// The distribution.
    pub quantiles: Quantiles,
}

impl DueTimes {
    pub(crate) fn of(pool: &Pool<'_>, histogram: &Histogram, slices: &[Histogram], by_wakeup: Quantiles) -> DueTimes {
        let at_least = pool.threads().any(|(_, thread)| thread.censored.is_some());
        // After a relative wait comes another, as long: a late wake-up misses none.
        let none_missed = pool.cell.method.is_relative() || pool.threads().all(|(_, thread)| thread.missed == 0);
        if !at_least && none_missed {
            return DueTimes { n: histogram.n, at_least, quantiles: by_wakeup };
        }
        let period = pool.cell.period;
        let mut slices: Vec<_> = slices.iter().map(|slice| by_due_time(slice, period)).collect();
        let open = open_waits(pool.threads().map(|(_, thread)| thread), period);
        let mut all = merged(slices.iter());
        all.merge(&open);
        // The open waits are one more slice: they came together at the end.
        slices.push(open);
        DueTimes { n: all.n, at_least, quantiles: Quantiles::of(&all, &slices, pool.confidence) }
    }
}

/// The latencies of one measurement by due time, all its CPUs together, open waits included. Of relative waits there are
/// no missed due times; they are as they are.
pub(crate) fn of_record(record: &Record) -> Histogram {
    let by_wakeup = merged(record.threads.iter().map(|thread| &thread.histogram));
    let Cell { method, period, .. } = &record.cell;
    let mut all = if method.is_relative() { by_wakeup } else { by_due_time(&by_wakeup, *period) };
    all.merge(&open_waits(record.threads.iter(), *period));
    all
}

/// Waits that had not ended, with the lateness they had, and the due times behind them.
fn open_waits<'a>(threads: impl Iterator<Item = &'a ThreadRecord>, period: Period) -> Histogram {
    let mut open = Histogram::default();
    for (wait, due) in threads.filter_map(|thread| Some((thread.censored?, thread.cycles_due))) {
        // The wait may have begun during warm-up; only due times of the measured window count.
        let first = u64::try_from(wait.cycle).unwrap_or(0);
        let before = wait.cycle.min(0).unsigned_abs().saturating_mul(period.ns());
        fill_in(&mut open, wait.at_least_ns.saturating_sub(before), due.saturating_sub(first), 1, period);
    }
    open
}

/// The latencies by due time: a wake-up late by L with period P also stands for the missed due times, which were late
/// by L - P, L - 2P ... above 0.
///
/// It is computed from the buckets' upper edges, so it has their resolution: a value is at most 1.6 % too large, and
/// the number of missed due times may differ from the counted one by as much.
#[must_use]
pub fn by_due_time(by_wakeup: &Histogram, period: Period) -> Histogram {
    let mut all = by_wakeup.clone();
    let max = by_wakeup.max_ns.and_then(|max| u64::try_from(max).ok()).unwrap_or(0);
    for bucket in by_wakeup.buckets().rev().take_while(|bucket| bucket.upper_ns > period.ns()) {
        let late_ns = bucket.upper_ns.min(max);
        fill_in(&mut all, late_ns.saturating_sub(period.ns()), u64::MAX, bucket.count, period);
    }
    all
}

/// Adds `late_ns`, `late_ns - P`, `late_ns - 2P` ... above 0, at most `due_times` of them, each `n` times.
fn fill_in(histogram: &mut Histogram, mut late_ns: u64, mut due_times: u64, n: u64, period: Period) {
    while late_ns > 0 && due_times > 0 {
        // As many due times at once as share a bucket: hours of a short period are a few thousand steps.
        let group = (late_ns / STEPS / period.ns()).clamp(1, due_times);
        histogram.record_n(i64::try_from(late_ns).unwrap_or(i64::MAX), n.saturating_mul(group));
        late_ns = late_ns.saturating_sub(group * period.ns());
        due_times -= group;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Span;

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
