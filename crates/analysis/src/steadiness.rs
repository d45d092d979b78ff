//! Whether a cell was the same machine from its beginning to its end, and how far ahead its tail can be carried.

use crate::pool::{Pool, merged};
use crate::quantile::{Level, quantile};
use crate::special::whole;
use crate::stationarity::{Gate, Periodicity, joined, periodicity};
use crate::tail::{MOST_TIMES, TailLimit, TailRefusal, tail_limit};
use crate::woodruff::MIN_EXCEEDANCES;
use model::{Histogram, Span};
use serde::Serialize;
use std::collections::BTreeMap;

/// What the maxima of the seconds of a cell say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steadiness {
    /// Whether it was one of a kind.
    pub gate: Gate,
    /// When it changed; `None` unless the gate says that it did.
    pub change: Option<Change>,
    /// The distance of spikes that come at regular ones, in measured time; `None` when they do not.
    pub spikes_every: Option<Span>,
    /// The level, ns, that is exceeded once in ten times the measured time, or why none is told.
    pub tail: Result<TailLimit, TailRefusal>,
}

/// When latency changed, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Change {
    /// In which block, from 0.
    pub block: u32,
    /// How many seconds of it were before the change.
    pub second: u64,
    /// p99 before and after, ns; `None` where too few samples tell.
    pub p99_ns: Option<(i64, i64)>,
}

impl Steadiness {
    /// From the largest latency of any CPU in each whole second of each block. CPUs are not repetitions of each other:
    /// what holds one up often holds up all.
    pub(crate) fn of(pool: &Pool<'_>) -> Steadiness {
        let seconds = seconds(pool);
        let maxima: Vec<f64> = seconds.values().map(|max_ns| *max_ns as f64).collect();
        let gate = Gate::of(&maxima);
        let moment = if let Gate::Changed { at } = gate { seconds.keys().nth(at) } else { None };
        // With a longer period than a second there is one row for each period.
        let distance_ns = pool.cell.period.ns().max(Span::SECOND.ns());
        let block = if let Gate::Passed { block, .. } = gate { block } else { 1 };
        let spikes_every = periodicity(&joined(&maxima, block)).map(|Periodicity { lag, .. }| {
            let blocks = u64::try_from(lag * block).unwrap_or(u64::MAX);
            Span(blocks.saturating_mul(distance_ns))
        });
        Steadiness {
            gate,
            change: moment.map(|moment| change(pool, *moment)),
            spikes_every,
            tail: tail_limit(&maxima, MOST_TIMES, 0.0),
        }
    }

    /// Whether an interval for the whole run can be believed: it is not when the gate found parts, or waves.
    #[must_use]
    pub fn allows_intervals(&self) -> bool {
        matches!(self.gate, Gate::Passed { .. } | Gate::TooShort { .. })
    }
}

/// The largest latency, ns, by block and second; seconds that were not measured to their end are left out.
fn seconds(pool: &Pool<'_>) -> BTreeMap<(u32, u64), i64> {
    let mut seconds = BTreeMap::new();
    for (entry, thread) in pool.threads() {
        let whole_seconds = entry.record.measured.ns() / Span::SECOND.ns();
        for row in thread.seconds.iter().filter(|row| row.second < whole_seconds) {
            let max = seconds.entry((entry.planned.block, row.second)).or_insert(i64::MIN);
            *max = (*max).max(row.max_ns.unwrap_or(i64::MIN));
        }
    }
    seconds.retain(|_, max_ns| *max_ns > i64::MIN);
    seconds
}

/// What changed at this block and second, from the slices on either side; one that holds the change is left out.
fn change(pool: &Pool<'_>, (block, second): (u32, u64)) -> Change {
    let at = (block, second.saturating_mul(Span::SECOND.ns()));
    let slices = || {
        pool.threads().flat_map(|(entry, thread)| {
            let time = |cycle: u64| (entry.planned.block, cycle.saturating_mul(pool.cell.period.ns()));
            thread
                .slices
                .iter()
                .map(move |slice| (time(slice.first_cycle), time(slice.first_cycle + slice.cycles), &slice.histogram))
        })
    };
    let p99 = |part: Histogram| {
        let is_known = part.n as f64 * (1.0 - Level::P99.p()) >= MIN_EXCEEDANCES;
        quantile(&part, Level::P99.p()).filter(|_| is_known)
    };
    let before = slices().filter(|(_, end, _)| *end <= at).map(|(.., histogram)| histogram);
    let after = slices().filter(|(start, ..)| *start >= at).map(|(.., histogram)| histogram);
    Change { block, second, p99_ns: p99(merged(before)).zip(p99(merged(after))) }
}

/// A latency of the tail as a whole number of nanoseconds.
pub(crate) fn whole_ns(ns: f64) -> u64 {
    whole(ns.round())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RunBuilder;

    /// One block of so many seconds at 10 ms.
    fn of(seconds: u64, latency_ns: impl Fn(u32, u64) -> i64) -> Steadiness {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        run.header.cells[0].duration = Span(seconds * Span::SECOND.ns());
        run.header.cells[0].period = "10ms".parse().unwrap();
        run.measure(0, 0, latency_ns);
        Steadiness::of(&Pool::of_run(&run.header, &run.entries)[0])
    }

    /// Without any structure, 5 to 6 us.
    fn noise(cpu: u32, cycle: u64) -> i64 {
        let mut random = model::SplitMix64::new(cycle * 2 + u64::from(cpu));
        5_000 + i64::try_from(random.below(1_000_000)).unwrap() / 1_000
    }

    #[test]
    fn short_cells_are_not_tested() {
        let found = of(20, noise);
        assert_eq!((found.gate, found.change, found.spikes_every), (Gate::TooShort { seconds: 20 }, None, None));
        assert!(found.allows_intervals());
    }

    #[test]
    fn a_change_is_found_with_what_was_before_and_after() {
        let found = of(60, |cpu, cycle| noise(cpu, cycle) + if cycle >= 3_700 { 5_000 } else { 0 });
        let Some(Change { block: 0, second, p99_ns: Some((before, after)) }) = found.change else {
            panic!("{found:?}")
        };
        assert!(second.abs_diff(37) <= 1 && before < 6_100 && after > 10_800, "{found:?}");
        assert!(!found.allows_intervals());
    }

    #[test]
    fn spikes_are_found_by_their_distance() {
        let found = of(600, |cpu, cycle| noise(cpu, cycle) + if cycle % 6_000 == 123 { 90_000 } else { 0 });
        assert_eq!(found.spikes_every, Some(Span(60 * Span::SECOND.ns())));
        assert!(matches!(found.tail, Err(TailRefusal::Periodic(_))), "{found:?}");
    }

    #[test]
    fn a_quiet_cell_is_steady() {
        let found = of(40, |_, _| 5_000);
        assert_eq!((found.gate, found.spikes_every), (Gate::Passed { block: 1, blocks: 40 }, None));
    }
}
