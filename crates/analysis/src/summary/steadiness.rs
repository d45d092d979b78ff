//! Stationarity of a cell from beginning to end, and the extrapolation of its tail.

use crate::stats::course::{Change, Course, Courses, of_levels, of_maxima};
use crate::stats::special::whole;
use crate::stats::stationarity::{Gate, MIN_SECONDS, Periodicity, joined, periodicity};
use crate::stats::tail::{MOST_TIMES, TailLimit, TailRefusal, tail_limit};
use crate::summary::pool::{Pool, Stretch};
use punctual_model::{Histogram, Span};
use serde::Serialize;
use std::collections::BTreeMap;

/// Results of the tests over time of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "SteadinessDocument")]
pub struct Steadiness {
    /// Stationarity of the maxima of its seconds.
    pub gate: Gate,
    /// Courses of p50, p99, p99.9 and the maxima.
    #[serde(flatten)]
    pub courses: Courses,
    /// Period of the largest latencies, in measured time; `None` if they are not periodic.
    #[serde(rename = "spikes_every_ns")]
    #[schemars(with = "Option<u64>")]
    pub spikes_every: Option<Span>,
    /// The level, ns, that is exceeded once in ten times the measured time; `None` when it is refused.
    pub tail_limit: Option<TailLimit>,
    /// Reason why that level is refused.
    pub tail_refused: Option<TailRefusal>,
}

impl Steadiness {
    /// Tests the largest latency of any CPU in each second, and the slices (`stretches`, which add up to `pooled`).
    /// CPUs are not repetitions of each other: one cause often delays all of them.
    pub(crate) fn of(pool: &Pool<'_>, pooled: &Histogram, stretches: &[(Stretch, Histogram)]) -> Steadiness {
        let seconds = seconds(pool);
        let maxima: Vec<f64> = seconds.iter().map(|(_, max_ns)| *max_ns as f64).collect();
        let gate = Gate::of(&maxima);
        // With a period longer than a second there is one row for each period: the shortest, where threads differ.
        let distance_ns = pool.cell.period.ns().max(Span::SECOND.ns());
        let block = if let Gate::Passed { block, .. } = gate { block } else { 1 };
        let spikes_every = periodicity(&joined(&maxima, block)).map(|Periodicity { lag, .. }| {
            let blocks = u64::try_from(lag * block).unwrap_or(u64::MAX);
            Span(blocks.saturating_mul(distance_ns))
        });
        let maxima_course = of_maxima(gate, &maxima).at(|at| {
            let (block, second) = seconds.get(at).map_or((0, 0), |(at, _)| *at);
            Change { block, second }
        });
        let tail = tail_limit(&maxima, MOST_TIMES, 0.0);
        let courses = Courses::new(levels(pool, pooled, stretches), maxima_course);
        Steadiness { gate, courses, spikes_every, tail_limit: tail.ok(), tail_refused: tail.err() }
    }
}

/// The courses of the quantiles; untested below half a minute.
fn levels(pool: &Pool<'_>, pooled: &Histogram, stretches: &[(Stretch, Histogram)]) -> [Course; 3] {
    if pool.measured() < Span(MIN_SECONDS as u64 * Span::SECOND.ns()) {
        return [Course::Untested; 3];
    }
    let slices: Vec<Histogram> = stretches.iter().map(|(_, slice)| slice.clone()).collect();
    let blocks: Vec<u32> = stretches.iter().map(|((block, _), _)| *block).collect();
    let when = |at: usize| {
        let ((block, start_ns), _) = stretches.get(at)?;
        Some(Change { block: *block, second: start_ns / Span::SECOND.ns() })
    };
    of_levels(pooled, &slices, &blocks).map(|course| course.at(|at| when(at).unwrap_or(Change { block: 0, second: 0 })))
}

/// The largest latency, ns, by block and second; incomplete seconds are left out. Blocks shorter than a second are
/// joined until they reach one.
fn seconds(pool: &Pool<'_>) -> Vec<((u32, u64), i64)> {
    let mut seconds: BTreeMap<(u32, u64), i64> = BTreeMap::new();
    let mut short: Option<(u32, Span)> = None;
    for entry in &pool.entries {
        let (measured, block) = (entry.record.measured, entry.planned.block);
        let rows = || entry.record.threads.iter().flat_map(|thread| &thread.seconds);
        let whole_seconds = measured.ns() / Span::SECOND.ns();
        if whole_seconds == 0 {
            let (first, time) = short.get_or_insert((block, Span(0)));
            *time = Span(time.ns() + measured.ns());
            let max = seconds.entry((*first, 0)).or_insert(i64::MIN);
            *max = rows().filter_map(|row| row.max_ns).fold(*max, i64::max);
            short = short.filter(|(_, time)| *time < Span::SECOND);
        }
        for row in rows().filter(|row| row.second < whole_seconds) {
            let max = seconds.entry((block, row.second)).or_insert(i64::MIN);
            *max = (*max).max(row.max_ns.unwrap_or(i64::MIN));
        }
    }
    // The remainder of joined short blocks is less than a second.
    if let Some((block, _)) = short {
        seconds.remove(&(block, 0));
    }
    seconds.into_iter().filter(|(_, max_ns)| *max_ns > i64::MIN).collect()
}

/// A latency of the tail as a whole number of nanoseconds.
pub(crate) fn whole_ns(ns: f64) -> u64 {
    whole(ns.round())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::course::Measure;
    use crate::testing::RunBuilder;
    use punctual_model::Level;

    /// One block of so many seconds at 10 ms.
    fn of(seconds: u64, latency_ns: impl Fn(u32, u64) -> i64) -> Steadiness {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        run.header.cells[0].duration = Span(seconds * Span::SECOND.ns());
        run.header.cells[0].period = "10ms".parse().unwrap();
        run.measure(0, 0, latency_ns);
        of_run(&run)
    }

    fn of_run(run: &RunBuilder) -> Steadiness {
        let pool = &Pool::of_run(&run.header, &run.entries)[0];
        Steadiness::of(pool, &pool.histogram(), &pool.stretches().into_iter().collect::<Vec<_>>())
    }

    /// Without any structure, 5 to 6 us.
    fn noise(cpu: u32, cycle: u64) -> i64 {
        let mut random = punctual_model::SplitMix64::new(cycle * 2 + u64::from(cpu));
        5_000 + i64::try_from(random.below(1_000_000)).unwrap() / 1_000
    }

    #[test]
    fn short_cells_are_not_tested() {
        let found = of(20, noise);
        assert_eq!((found.gate, found.spikes_every), (Gate::TooShort { seconds: 20 }, None));
        assert!(
            found.courses.all().iter().all(|(_, course)| *course == Course::Untested) && !found.courses.is_tested()
        );
        assert!(Level::ALL.into_iter().all(|level| found.courses.allows_interval(level)));
    }

    #[test]
    fn a_change_is_found_with_what_was_before_and_after() {
        let found = of(60, |cpu, cycle| noise(cpu, cycle) + if cycle >= 3_700 { 5_000 } else { 0 });
        for (measure, course) in found.courses.all().into_iter().filter(|(measure, _)| *measure != Measure::P999) {
            let Course::Changed { at: Change { block: 0, second }, before_ns, after_ns } = course else {
                panic!("{measure}: {course:?}")
            };
            assert!(second.abs_diff(37) <= 3 && before_ns < 6_100 && after_ns > 9_900, "{measure}: {course:?}");
        }
        assert!(!Level::ALL.into_iter().any(|level| found.courses.allows_interval(level)));
    }

    #[test]
    fn what_did_not_change_keeps_its_interval() {
        // Only the largest latency of each second changes.
        let late = |cycle: u64| if cycle % 100 == 7 { 3_000 } else { 0 };
        let of_maxima =
            of(60, |cpu, cycle| noise(cpu, cycle) + if cycle >= 3_000 { 2 * late(cycle) } else { late(cycle) });
        assert!(
            of_maxima.courses.maxima.is_unsteady() && of_maxima.courses.allows_interval(Level::P50),
            "{of_maxima:?}"
        );
        // The median triples without any effect on the maxima, which come from a separate rare event.
        let of_median = of(60, |cpu, cycle| {
            let rare = cycle % 100 == 7;
            let calm = noise(cpu, cycle) * if cycle >= 3_000 { 3 } else { 1 };
            if rare { 100_000 + noise(cpu, cycle) } else { calm }
        });
        assert!(matches!(of_median.gate, Gate::Passed { .. }), "{of_median:?}");
        assert!(matches!(of_median.courses.of(Measure::P50), Course::Changed { .. }), "{of_median:?}");
        assert!(!of_median.courses.allows_interval(Level::P50) && !of_median.courses.stayed_the_same());
    }

    #[test]
    fn blocks_shorter_than_a_second_are_put_together() {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        run.header.cells[0].duration = Span(500_000_000);
        (run.header.plan.repetitions, run.header.cells[0].period) = (161, "10ms".parse().unwrap());
        for block in 0..161 {
            run.measure(block, 0, |cpu, cycle| noise(cpu, u64::from(block) * 1_000 + cycle));
        }
        let found = of_run(&run);
        assert_eq!(found.gate, Gate::Passed { block: 1, blocks: 80 }, "80 s, and half a second that is none");
        assert!(found.courses.stayed_the_same(), "{found:?}");
    }

    #[test]
    fn spikes_are_found_by_their_distance() {
        let found = of(600, |cpu, cycle| noise(cpu, cycle) + if cycle % 6_000 == 123 { 90_000 } else { 0 });
        assert_eq!(found.spikes_every, Some(Span(60 * Span::SECOND.ns())));
        assert!(matches!(found.tail_refused, Some(TailRefusal::Periodic(_))), "{found:?}");
    }

    #[test]
    fn a_quiet_cell_is_steady() {
        let found = of(40, |_, _| 5_000);
        assert_eq!((found.gate, found.spikes_every), (Gate::Passed { block: 1, blocks: 40 }, None));
        assert!(found.courses.stayed_the_same(), "{found:?}");
    }
}
