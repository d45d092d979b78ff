//! S5: p50, p99 and p99.9 over the intervals of a cell: false alarms, and power against changes.

use super::noise::Noise;
use super::{Expected, ResultRow, Scale, counted, merged};
use punctual_analysis::stationarity::{Gate, MIN_STRETCHES, STRETCHES, Shares, shares};
use punctual_analysis::{Course, Courses, Level, courses, estimate, of_maxima};
use punctual_model::Histogram;

/// Number of permutations of the intervals.
const ORDERS: u32 = 40_000;

/// Number of cells of each kind.
const RUNS: u32 = 400;

/// Samples of a cell: three minutes at 1 ms.
const SAMPLES: usize = 180_000;

/// Samples of a second.
const SECOND: usize = 1_000;

/// Slices of a cell.
const SLICES: usize = 64;

/// Dependence between the samples of a cell, or a change in it. Times are shares of the cell.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Independent,
    Autoregression(f64),
    /// Storms of 300 samples on average, 18 in a course.
    Bursts,
    /// Two states that differ by 30 % and last for this number of samples on average.
    Regimes(f64),
    /// From the middle on, the median is larger by this factor; values above p90 are unchanged.
    Median(f64),
    /// From the middle on p99 is 180 us instead of 48 us.
    Tail,
    /// The same in every other part of the cell, of so many.
    Alternates(f64),
    /// All latencies rise by this share.
    Drift(f64),
    /// All latencies are larger by this share from the middle on.
    Step(f64),
    /// One sixtieth of the cell is late.
    Burst,
    /// A second of storm at random, on average in 30 s.
    Storms,
    /// The level wanders: deviations of 15 %, correlated over this number of samples.
    Wanders(f64),
}

/// False alarms: permutations of the intervals, and cells without a change.
pub(super) fn alarms(scale: Scale) -> Vec<ResultRow> {
    let orders = scale.of(ORDERS);
    let mut rows = Vec::new();
    for n in MIN_STRETCHES..=STRETCHES {
        let alarm = [("an alarm", Expected::AtMost(0.01))];
        rows.extend(counted(&format!("{n} independent stretches: "), orders, 5_150, alarm, |noise| {
            let values: Vec<f64> = (0..n).map(|_| noise.uniform()).collect();
            [shares(&values) != Some(Shares::Same)]
        }));
    }
    let kinds = [
        (Kind::Independent, "independent", Expected::AtMost(0.03)),
        (Kind::Autoregression(0.9), "AR 0.9", Expected::AtMost(0.03)),
        (Kind::Autoregression(0.99), "AR 0.99", Expected::AtMost(0.03)),
        (Kind::Bursts, "bursts", Expected::AtMost(0.03)),
        (Kind::Regimes(300.0), "two states of 300 samples", Expected::AtMost(0.03)),
        // An interval has 4 500 samples: intervals differ by their state, and confidence intervals from 20 of them
        // would be too narrow.
        (Kind::Regimes(4_500.0), "two states of 4 500 samples", Expected::Unknown),
    ];
    let runs = scale.of(RUNS);
    for (kind, name, expected) in kinds {
        let alarm = [("p50, p99 or p99.9 is said to change", expected)];
        let is_unsteady = |noise: &mut Noise| [course(kind, noise).iter().any(Course::is_unsteady)];
        rows.extend(counted(&format!("{name}: "), runs, 5_151, alarm, is_unsteady));
    }
    rows
}

/// Power.
pub(super) fn found(scale: Scale) -> Vec<ResultRow> {
    let runs = scale.of(RUNS);
    let kinds = [
        (Kind::Median(2.8), "median 22 to 62 us, same maxima", [Expected::AtLeast(0.99), Expected::Unknown]),
        (Kind::Tail, "p99 48 to 180 us", [Expected::AtMost(0.02), Expected::AtLeast(0.99)]),
        (Kind::Alternates(9.0), "p99 alternates in ninths", [Expected::AtMost(0.02), Expected::AtLeast(0.95)]),
        (Kind::Alternates(6.0), "p99 alternates in sixths", [Expected::AtMost(0.02), Expected::AtLeast(0.95)]),
        (Kind::Alternates(4.0), "p99 alternates in quarters", [Expected::AtMost(0.02), Expected::AtLeast(0.95)]),
        (Kind::Drift(0.1), "drift of 10 %", [Expected::AtLeast(0.99), Expected::AtLeast(0.9)]),
        (Kind::Step(0.05), "step of 5 %", [Expected::AtLeast(0.99), Expected::AtLeast(0.9)]),
        (Kind::Step(0.01), "step of 1 %", [Expected::AtMost(0.2), Expected::Unknown]),
        (Kind::Burst, "burst of a sixtieth of the time", [Expected::AtMost(0.05), Expected::Unknown]),
    ];
    let mut rows = Vec::new();
    for (kind, name, [p50, p99]) in kinds {
        let levels = [("p50 is said to change", p50), ("p99 is said to change", p99)];
        rows.extend(counted(&format!("{name}: "), runs, 5_152, levels, |noise| {
            let [p50, p99, _] = course(kind, noise);
            [p50.is_unsteady(), p99.is_unsteady()]
        }));
    }
    rows
}

/// Coverage of the interval of p99, where one is shown, of the p99 of a long time.
pub(super) fn held(scale: Scale) -> Vec<ResultRow> {
    let runs = scale.of(RUNS);
    let mut rows = Vec::new();
    for (kind, name, expected) in [
        (Kind::Independent, "independent", Expected::AtLeast(0.9)),
        (Kind::Storms, "1 s of storm in 30 s, at random", Expected::AtLeast(0.9)),
        // The few of 180 s without a sign of it are a state of their own.
        (Kind::Wanders(30_000.0), "wandering over 30 s", Expected::Unknown),
        (Kind::Wanders(100_000.0), "wandering over 100 s", Expected::Unknown),
    ] {
        let mut noise = Noise::new(5_153);
        let long = (0..scale.of(RUNS)).fold(Histogram::default(), |mut all, _| {
            all.merge(&Histogram::of(&latencies(kind, &mut noise)));
            all
        });
        let truth = punctual_analysis::quantile(&long, Level::P99.p()).unwrap_or(0);
        let (mut shown, mut held) = (0, 0);
        for _ in 0..runs {
            let latencies = latencies(kind, &mut noise);
            let (pooled, slices) = slices(&latencies);
            let maxima = latencies.chunks(SECOND).map(|second| second.iter().copied().max().unwrap_or(0) as f64);
            let maxima: Vec<f64> = maxima.collect();
            let of_levels = courses(&pooled, &slices, &vec![0; slices.len()]);
            let courses = Courses::new(of_levels, of_maxima(Gate::of(&maxima), &maxima));
            let interval = estimate(&pooled, &slices, Level::P99).interval_ns();
            if let Some((low, high)) = interval.filter(|_| courses.allows_interval(Level::P99)) {
                shown += 1;
                held += u32::from((low..=high).contains(&truth));
            }
        }
        let wrong = shown - held;
        rows.push(ResultRow::share(format!("{name}: p99 has an interval"), shown, runs, Expected::Unknown));
        rows.push(ResultRow::share(format!("{name}: it holds"), held, shown.max(1), expected));
        rows.push(ResultRow::share(format!("{name}: one is shown and wrong"), wrong, runs, Expected::AtMost(0.07)));
    }
    rows
}

fn course(kind: Kind, noise: &mut Noise) -> [Course<usize>; 3] {
    let (pooled, slices) = slices(&latencies(kind, noise));
    courses(&pooled, &slices, &vec![0; slices.len()])
}

/// All latencies of a cell, and its slices.
fn slices(latencies: &[i64]) -> (Histogram, Vec<Histogram>) {
    let slices: Vec<Histogram> = latencies.chunks(SAMPLES.div_ceil(SLICES)).map(Histogram::of).collect();
    (merged(&slices), slices)
}

/// Latencies, ns: 20 us and an exponential tail, p50 24 us and p99 48 us.
fn latencies(kind: Kind, noise: &mut Noise) -> Vec<i64> {
    let chances: Vec<f64> = match kind {
        Kind::Autoregression(correlation) => {
            noise.autoregression(correlation, SAMPLES).into_iter().map(above).collect()
        }
        _ => (0..SAMPLES).map(|_| noise.uniform()).collect(),
    };
    let (mut left, mut is_high, mut level) = (0u32, noise.chance(0.5), noise.normal());
    let mut late = |(i, chance): (usize, f64)| {
        let at = i as f64 / SAMPLES as f64;
        let calm = 20_000.0 - 6_000.0 * chance.ln();
        match kind {
            Kind::Independent | Kind::Autoregression(_) => calm,
            Kind::Bursts => {
                if noise.chance(1.0 / 5_000.0) {
                    left = left.max(noise.geometric(1.0 / 300.0));
                }
                let storm = if left > 0 { noise.exponential(30_000.0) } else { 0.0 };
                left = left.saturating_sub(1);
                calm + storm
            }
            Kind::Regimes(length) => {
                is_high ^= noise.chance(1.0 / length);
                calm * if is_high { 1.3 } else { 1.0 }
            }
            Kind::Median(times) => match chance {
                ..0.1 => 500_000.0 + calm,
                _ => calm * if at < 0.5 { 1.0 } else { times },
            },
            Kind::Tail => {
                if chance < 0.02 && at >= 0.5 {
                    180_000.0
                } else {
                    calm
                }
            }
            Kind::Alternates(parts) => {
                let is_rough = chance < 0.02 && (at * parts).floor() % 2.0 > 0.5;
                if is_rough { 180_000.0 } else { calm }
            }
            Kind::Drift(share) => calm * (1.0 + share * at),
            Kind::Step(share) => calm * if at < 0.5 { 1.0 } else { 1.0 + share },
            Kind::Storms => {
                if noise.chance(1.0 / 30_000.0) {
                    left = 1_000;
                }
                let storm = if left > 0 { noise.exponential(100_000.0) } else { 0.0 };
                left = left.saturating_sub(1);
                calm + storm
            }
            Kind::Wanders(samples) => {
                let kept = f64::exp(-1.0 / samples);
                level = kept * level + (1.0 - kept * kept).sqrt() * noise.normal();
                calm * f64::exp(0.15 * level)
            }
            Kind::Burst => calm + if (0.5..0.5 + 1.0 / 60.0).contains(&at) { 200_000.0 } else { 0.0 },
        }
    };
    chances.into_iter().enumerate().map(|chance| whole(late(chance))).collect()
}

/// Probability that a normal variable exceeds `z`.
fn above(z: f64) -> f64 {
    let beyond = 0.5 * punctual_analysis::normal_beyond(z);
    (if z > 0.0 { beyond } else { 1.0 - beyond }).max(1e-12)
}

#[expect(clippy::cast_possible_truncation, reason = "some milliseconds")]
fn whole(ns: f64) -> i64 {
    ns.round() as i64
}
