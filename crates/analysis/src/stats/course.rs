//! Change over the time of a measurement, for each number: p50, p99, p99.9 and the maxima.

use crate::stats::histogram::merged;
use crate::stats::quantile::quantile;
use crate::stats::stationarity::{Gate, MIN_STRETCHES, STRETCHES, Shares, best_split, normal_scores, shares};
use crate::stats::woodruff::{Count, exceedances};
use punctual_model::{Histogram, Level, Order};
use serde::Serialize;
use std::fmt;

/// Samples above the quantile, and at or below it, that a stretch must have on average.
const MIN_IN_A_STRETCH: u64 = 5;

/// Smallest relative change that is reported: buckets are up to 0.78 % wide, and no interval is much narrower.
const RELEVANT: f64 = 0.02;

/// A number that is tested for change over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The median.
    P50,
    /// 99 %.
    P99,
    /// 99.9 %.
    P999,
    /// The largest latency of each second.
    Maxima,
}

impl Measure {
    /// Whether no interval of a quantile is valid for a run in which this number changed: of itself and each higher
    /// one, whose tests rest on fewer samples and find fewer of the same bursts and waves; where maxima changed, of p99
    /// and higher ones.
    pub(crate) fn spoils(self, level: Level) -> bool {
        match self {
            Measure::P50 => true,
            Measure::P99 | Measure::Maxima => level >= Level::P99,
            Measure::P999 => level >= Level::P999,
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Measure::P50 => "p50",
            Measure::P99 => "p99",
            Measure::P999 => "p99.9",
            Measure::Maxima => "the maxima of seconds",
        })
    }
}

/// Behavior of a number from beginning to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Course<At = Change> {
    /// Not tested: too short a time, or too few samples above it.
    Untested,
    /// No test rejects that it stayed the same.
    Same,
    /// It changed once.
    Changed {
        /// Moment of the change.
        at: At,
        /// Before, ns; for maxima the median.
        before_ns: i64,
        /// After, ns.
        after_ns: i64,
    },
    /// It rises or falls.
    Drifts {
        /// In the first quarter, ns; for maxima the median.
        before_ns: i64,
        /// In the last quarter, ns.
        after_ns: i64,
    },
    /// Calm and rough stretches follow each other.
    Waves,
}

/// Moment at which a number changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Change {
    /// Block, from 0.
    pub block: u32,
    /// Seconds of that block before the change.
    pub second: u64,
}

impl<At: Copy> Course<At> {
    /// Whether it was tested and did not stay the same.
    pub fn is_unsteady(&self) -> bool {
        !matches!(self, Course::Untested | Course::Same)
    }

    /// The same course with the moment converted by `of`.
    pub(crate) fn at<To>(self, of: impl Fn(At) -> To) -> Course<To> {
        match self {
            Course::Untested => Course::Untested,
            Course::Same => Course::Same,
            Course::Changed { at, before_ns, after_ns } => Course::Changed { at: of(at), before_ns, after_ns },
            Course::Drifts { before_ns, after_ns } => Course::Drifts { before_ns, after_ns },
            Course::Waves => Course::Waves,
        }
    }
}

/// The courses of all numbers of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Courses<At = Change> {
    /// Maxima of seconds, before and after.
    pub(crate) maxima: Course<At>,
    /// Median.
    pub(crate) p50: Course<At>,
    /// p99.
    pub(crate) p99: Course<At>,
    /// p99.9.
    pub(crate) p999: Course<At>,
}

impl<At: Copy> Courses<At> {
    /// The courses from those of p50, p99 and p99.9 ([`of_levels`]), and that of the maxima ([`of_maxima`]).
    pub fn new([p50, p99, p999]: [Course<At>; 3], maxima: Course<At>) -> Courses<At> {
        Courses { maxima, p50, p99, p999 }
    }

    /// Course of one number.
    pub fn of(&self, measure: Measure) -> Course<At> {
        match measure {
            Measure::P50 => self.p50,
            Measure::P99 => self.p99,
            Measure::P999 => self.p999,
            Measure::Maxima => self.maxima,
        }
    }

    /// Course of the quantile `level`. Levels above p99.9 are `Untested`: they have too few samples.
    fn of_level(&self, level: Level) -> Course<At> {
        let found = Level::USUAL.into_iter().zip([self.p50, self.p99, self.p999]).find(|(other, _)| *other == level);
        found.map_or(Course::Untested, |(_, course)| course)
    }

    /// All four numbers with their courses.
    pub(crate) fn all(&self) -> [(Measure, Course<At>); 4] {
        let all = [Measure::P50, Measure::P99, Measure::P999, Measure::Maxima];
        all.map(|measure| (measure, self.of(measure)))
    }

    /// Whether an interval of this quantile is valid for the whole run: nothing that [spoils](Measure::spoils) it
    /// changed. What is not tested is as valid as the maxima.
    pub fn allows_interval(&self, level: Level) -> bool {
        let is_untested = matches!(self.of_level(level), Course::Untested);
        let spoils = |measure: Measure| measure.spoils(level) || measure == Measure::Maxima && is_untested;
        !self.all().iter().any(|(measure, course)| course.is_unsteady() && spoils(*measure))
    }

    /// Whether anything could be tested.
    pub fn is_tested(&self) -> bool {
        self.all().iter().any(|(_, course)| !matches!(course, Course::Untested))
    }

    /// Whether nothing that could be tested changed.
    pub fn stayed_the_same(&self) -> bool {
        self.is_tested() && !self.all().iter().any(|(_, course)| course.is_unsteady())
    }
}

/// The courses of p50, p99 and p99.9; a change is the number of the slice after it.
///
/// `slices` are in the order of time, `blocks` has the block of each, and `pooled` is their sum.
pub fn of_levels(pooled: &Histogram, slices: &[Histogram], blocks: &[u32]) -> [Course<usize>; 3] {
    Level::USUAL.map(|level| of_level(pooled, slices, blocks, level))
}

/// Result of the gate for the maxima, with their medians before and after; a change is the number of the second after
/// it.
pub fn of_maxima(gate: Gate, maxima: &[f64]) -> Course<usize> {
    let parts = |before: &[f64], after: &[f64]| Some((median(before)?, median(after)?));
    let quarter = maxima.len() / 4;
    match gate {
        Gate::Passed { .. } => Course::Same,
        Gate::TooShort { .. } => Course::Untested,
        Gate::Dependent => Course::Waves,
        Gate::Changed { at } => {
            let (before, after) = maxima.split_at(at);
            let changed = |(before_ns, after_ns)| Course::Changed { at, before_ns, after_ns };
            // Equal medians of both parts mean that something other than the level changed.
            parts(before, after).filter(|(before, after)| is_relevant(*before, *after)).map_or(Course::Waves, changed)
        }
        Gate::Drifts { .. } => {
            let ends = parts(&maxima[..quarter], &maxima[maxima.len() - quarter..]);
            ends.map_or(Course::Waves, |(before_ns, after_ns)| Course::Drifts { before_ns, after_ns })
        }
    }
}

fn median(values: &[f64]) -> Option<i64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, reason = "latencies, whole numbers of ns")]
    let ns = *values.get(values.len() / 2)? as i64;
    Some(ns)
}

fn of_level(pooled: &Histogram, slices: &[Histogram], blocks: &[u32], level: Level) -> Course<usize> {
    let Some(counts) = exceedances(pooled, slices, level.p()) else { return Course::Untested };
    let Some(groups) = groups(&counts, blocks) else { return Course::Untested };
    let stretches = groups.last().map_or(0, |last| last + 1);
    let mut sums = vec![Count::default(); stretches];
    for (count, group) in counts.iter().zip(&groups) {
        sums[*group].n += count.n;
        sums[*group].above += count.above;
    }
    let share = |count: &Count| count.above as f64 / count.n.max(1) as f64;
    let of_slices = |from: usize, to: usize| {
        let part = slices.iter().take(to).skip(from);
        quantile(&merged(part), level.p())
    };
    let first_of = |group: usize| groups.iter().position(|g| *g == group).unwrap_or(slices.len());
    let found = match shares(&sums.iter().map(share).collect::<Vec<_>>()) {
        None => return Course::Untested,
        Some(Shares::Same) => return Course::Same,
        Some(Shares::Changed { .. }) => {
            // Located among all slices, which are finer than stretches.
            let at = best_split(&normal_scores(&counts.iter().map(share).collect::<Vec<_>>()));
            let parts = of_slices(0, at).zip(of_slices(at, slices.len()));
            parts.map(|(before_ns, after_ns)| Course::Changed { at, before_ns, after_ns })
        }
        Some(Shares::Drifts { .. }) => {
            let quarter = stretches / 4;
            let ends = of_slices(0, first_of(quarter)).zip(of_slices(first_of(stretches - quarter), slices.len()));
            ends.map(|(before_ns, after_ns)| Course::Drifts { before_ns, after_ns })
        }
        Some(Shares::Waves) => {
            // The quarters of the stretches with the fewest and with the most exceedances.
            let mut order: Vec<usize> = (0..stretches).collect();
            order.order_by(|a, b| share(&sums[*a]).total_cmp(&share(&sums[*b])));
            let of = |some: &[usize]| {
                let part = slices.iter().zip(&groups).filter(|(_, group)| some.contains(group));
                quantile(&merged(part.map(|(slice, _)| slice)), level.p())
            };
            let quarter = stretches / 4;
            let ends = of(&order[..quarter]).zip(of(&order[stretches - quarter..]));
            return if ends.is_none_or(|(calm, rough)| is_relevant(calm, rough)) {
                Course::Waves
            } else {
                Course::Same
            };
        }
    };
    match found {
        Some(Course::Changed { before_ns, after_ns, .. } | Course::Drifts { before_ns, after_ns })
            if !is_relevant(before_ns, after_ns) =>
        {
            Course::Same
        }
        found => found.unwrap_or(Course::Waves),
    }
}

/// Whether two values differ by more than the share [`RELEVANT`].
fn is_relevant(before_ns: i64, after_ns: i64) -> bool {
    let (before, after) = (before_ns as f64, after_ns as f64);
    (after - before).abs() > RELEVANT * before.abs().max(after.abs())
}

/// Stretch of each slice, from 0. Where there are enough blocks, a stretch consists of whole blocks: blocks differ, and
/// a block split over two stretches would correlate them. `None` with too few samples.
fn groups(counts: &[Count], blocks: &[u32]) -> Option<Vec<usize>> {
    let mut numbers: Vec<usize> = Vec::with_capacity(blocks.len());
    for (i, block) in blocks.iter().enumerate() {
        let last = numbers.last().copied();
        let is_new = i > 0 && blocks.get(i - 1) != Some(block);
        numbers.push(last.unwrap_or(0) + usize::from(is_new));
    }
    let of_blocks = numbers.last().map_or(0, |last| last + 1);
    let (above, all) = counts.iter().fold((0, 0), |(above, all), count| (above + count.above, all + count.n));
    let telling = usize::try_from(above.min(all - above) / MIN_IN_A_STRETCH).unwrap_or(usize::MAX);
    let (units, of): (usize, Vec<usize>) =
        if of_blocks >= MIN_STRETCHES { (of_blocks, numbers) } else { (counts.len(), (0..counts.len()).collect()) };
    // All samples are above the lower edge: nothing varies, and the number of exceedances is no constraint.
    let stretches = units.min(STRETCHES).min(if above == all { STRETCHES } else { telling });
    (stretches >= MIN_STRETCHES).then(|| of.into_iter().map(|unit| unit * stretches / units).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::SplitMix64;

    /// 64 slices of 1 000 samples: `latency(slice, sample, u)` with `u` even between 0 and 1.
    fn of(latency: impl Fn(usize, u64, f64) -> f64) -> [Course<usize>; 3] {
        in_blocks(|_| 0, latency)
    }

    fn in_blocks(block: impl Fn(usize) -> u32, latency: impl Fn(usize, u64, f64) -> f64) -> [Course<usize>; 3] {
        let mut random = SplitMix64::new(11);
        let slice = |slice: usize| {
            let mut sample = |i: u64| {
                let u = random.below(1 << 30) as f64 / f64::from(1 << 30);
                #[expect(clippy::cast_possible_truncation, reason = "some microseconds")]
                let ns = latency(slice, i, u) as i64;
                ns
            };
            Histogram::of(&(0..1_000).map(&mut sample).collect::<Vec<_>>())
        };
        let slices: Vec<Histogram> = (0..64).map(slice).collect();
        let blocks: Vec<u32> = (0..64).map(block).collect();
        of_levels(&merged(slices.iter()), &slices, &blocks)
    }

    /// An exponential tail above 20 us, p50 about 24 us and p99 about 43 us.
    fn late(u: f64) -> f64 {
        20_000.0 - 5_000.0 * (1.0 - u).ln()
    }

    #[test]
    fn a_steady_course_is_the_same() {
        assert_eq!(of(|_, _, u| late(u)), [Course::Same; 3]);
        assert_eq!(of(|_, _, _| 5_000.0), [Course::Same; 3], "nothing varies");
        assert_eq!(of_levels(&Histogram::default(), &[], &[]), [Course::Untested; 3]);
    }

    #[test]
    fn what_changed_is_told_apart_from_what_did_not() {
        // The median is three times as large from slice 40 on; what is above p90 stays where it is.
        let median =
            of(|slice, _, u| if u > 0.9 { 900_000.0 + late(u) } else { late(u) * if slice < 40 { 1.0 } else { 3.0 } });
        let [Course::Changed { at, before_ns, after_ns }, p99, _] = median else { panic!("{median:?}") };
        assert!((38..=42).contains(&at) && after_ns > 2 * before_ns, "{median:?}");
        assert_eq!(p99, Course::Same, "{median:?}");
        // p99 is four times as large, and the median is not.
        let tail = of(|slice, _, u| if u > 0.98 && slice >= 40 { 180_000.0 } else { late(u) });
        let [Course::Same, Course::Changed { at, before_ns, after_ns }, _] = tail else { panic!("{tail:?}") };
        assert!((38..=42).contains(&at) && before_ns < 50_000 && after_ns > 170_000, "{tail:?}");
    }

    #[test]
    fn drifts_and_waves_are_found() {
        let drift = of(|slice, _, u| late(u) * (1.0 + 0.1 * slice as f64 / 64.0));
        assert!(matches!(drift[0], Course::Drifts { before_ns, after_ns } if after_ns > before_ns), "{drift:?}");
        let waves = of(|slice, _, u| if u > 0.98 && slice / 7 % 2 == 1 { 180_000.0 } else { late(u) });
        assert_eq!(waves[1], Course::Waves, "{waves:?}");
    }

    #[test]
    fn a_change_that_does_not_matter_is_none() {
        let step = |by: f64| of(move |slice, _, u| late(u) * if slice < 32 { 1.0 } else { by });
        assert_eq!(step(1.01)[0], Course::Same, "1 %");
        assert!(matches!(step(1.05)[0], Course::Changed { .. }), "5 %: {:?}", step(1.05));
    }

    #[test]
    fn blocks_that_differ_are_no_waves() {
        // 16 blocks, each at a level of its own.
        let level = |slice: usize| 1.0 + 0.1 * ((slice / 4 * 7 % 16) as f64 / 16.0);
        let by_block = in_blocks(|slice| u32::try_from(slice / 4).unwrap(), move |slice, _, u| late(u) * level(slice));
        assert_eq!(by_block[0], Course::Same, "{by_block:?}");
    }

    #[test]
    fn few_samples_are_not_tested() {
        // 40 above p99 of 4 000 samples: fewer than five in each of ten stretches.
        let slices: Vec<Histogram> =
            (0..20).map(|i| Histogram::of(&(i * 200..(i + 1) * 200).collect::<Vec<i64>>())).collect();
        let found = of_levels(&merged(slices.iter()), &slices, &[0; 20]);
        assert_eq!(found[1..], [Course::Untested; 2]);
        assert!(found[0].is_unsteady(), "{found:?}");
    }
}
