//! Histories of nightly runs: false alarms without a change, and how soon steps and drifts are found.

use super::noise::Noise;
use super::{Expected, ResultRow, Scale, counted};
use punctual_analysis::history::{Budget, Change, Charts, Expectation, Point, Response, changes, threshold};

/// Runs of a year.
const YEAR: usize = 365;

/// Years of each row.
const YEARS: u32 = 4_000;

/// Distribution of the logarithm of a response from run to run, with standard deviation 1.
#[derive(Debug, Clone, Copy)]
enum Runs {
    Normal,
    /// Student's t with 2.5 degrees of freedom: a run of fifty is an outlier.
    Heavy,
    /// Neighboring runs are correlated.
    Correlated(f64),
    /// States that last about so many runs, such as boots, one standard deviation apart.
    Regimes(f64),
    /// A slow wave over the year with this amplitude, such as of the temperature.
    Season(f64),
}

impl Runs {
    fn year(self, noise: &mut Noise) -> Vec<f64> {
        match self {
            Runs::Normal => (0..YEAR).map(|_| noise.normal()).collect(),
            Runs::Heavy => (0..YEAR).map(|_| noise.heavy()).collect(),
            Runs::Correlated(correlation) => noise.autoregression(correlation, YEAR),
            Runs::Regimes(length) => {
                let mut level = 0.0;
                let mut next = || {
                    if noise.chance(1.0 / length) {
                        level = noise.normal();
                    }
                    level + noise.normal()
                };
                (0..YEAR).map(|_| next()).collect()
            }
            Runs::Season(amplitude) => {
                let wave = |day: usize| amplitude * (std::f64::consts::TAU * day as f64 / YEAR as f64).sin();
                (0..YEAR).map(|day| wave(day) + noise.normal()).collect()
            }
        }
    }
}

/// Charts of one series, and of all series of fifty machines with 26 cells.
const ONE: Charts = Charts(2);
const MANY: Charts = Charts(2_600);

pub(super) fn run(scale: Scale) -> Vec<ResultRow> {
    let mut rows = false_alarms(scale);
    rows.extend(found(scale));
    rows.extend(single(scale));
    rows
}

fn false_alarms(scale: Scale) -> Vec<ResultRow> {
    let years = scale.of(YEARS);
    let budget = |alarms: f64| Expected::AtMost(alarms / 2.0);
    let mut rows = Vec::new();
    for (runs, name, expected) in [
        (Runs::Normal, "normal", budget(Budget::NIGHTLY.0)),
        (Runs::Heavy, "heavy tails", budget(Budget::NIGHTLY.0)),
        (Runs::Correlated(0.3), "correlation 0.3", budget(Budget::NIGHTLY.0)),
        (Runs::Correlated(0.6), "correlation 0.6", budget(Budget::NIGHTLY.0)),
        // Levels that change: each is a change, if a short one.
        (Runs::Regimes(5.0), "states of 5 nights", Expected::Unknown),
        (Runs::Regimes(30.0), "states of 30 nights", Expected::Unknown),
        (Runs::Season(0.5), "a season of half a deviation", Expected::Unknown),
    ] {
        let mut noise = Noise::new(9_001);
        let alarms = (0..years).map(|_| changes(&runs.year(&mut noise), threshold(Budget::NIGHTLY, ONE)).len());
        let alarms: Vec<usize> = alarms.collect();
        let total = u32::try_from(alarms.iter().sum::<usize>()).unwrap_or(u32::MAX);
        rows.push(ResultRow::share(format!("alarms a year of a sequence: {name}"), total, years, expected));
        if matches!(expected, Expected::AtMost(_)) {
            let several = u32::try_from(alarms.iter().filter(|n| **n > 1).count()).unwrap_or(u32::MAX);
            let what = format!("years with two alarms or more: {name}");
            rows.push(ResultRow::share(what, several, years, Expected::AtMost(0.005)));
        }
    }
    let mut noise = Noise::new(9_002);
    let alarms =
        (0..years * 5).map(|_| changes(&Runs::Normal.year(&mut noise), threshold(Budget(0.01), Charts(1))).len());
    let alarms = u32::try_from(alarms.sum::<usize>()).unwrap_or(u32::MAX);
    rows.push(ResultRow::share("alarms a year with a budget of 0.01", alarms, years * 5, Expected::AtMost(0.01)));
    rows
}

/// A change: what is added to run `n` after it.
type Shape = fn(f64) -> f64;

fn found(scale: Scale) -> Vec<ResultRow> {
    let n = scale.of(1_000);
    let mut rows = Vec::new();
    let shapes: [(&str, Shape, Charts, usize, Expected); 12] = [
        ("step of 1 deviation, one series", |_| 1.0, ONE, 40, Expected::AtLeast(0.85)),
        ("step of 2 deviations, one series", |_| 2.0, ONE, 12, Expected::AtLeast(0.9)),
        ("step of 3 deviations, one series", |_| 3.0, ONE, 7, Expected::AtLeast(0.9)),
        ("step of 10 deviations, one series", |_| 10.0, ONE, 6, Expected::AtLeast(0.9)),
        ("step of 1 deviation, 1300 series", |_| 1.0, MANY, 90, Expected::AtLeast(0.8)),
        ("step of 2 deviations, 1300 series", |_| 2.0, MANY, 22, Expected::AtLeast(0.9)),
        ("step of 3 deviations, 1300 series", |_| 3.0, MANY, 14, Expected::AtLeast(0.9)),
        ("step of 10 deviations, 1300 series", |_| 10.0, MANY, 14, Expected::AtLeast(0.9)),
        ("drift of 1 deviation in 30 runs, one series", |n| n / 30.0, ONE, 50, Expected::AtLeast(0.9)),
        ("drift of 1 deviation in 100 runs, one series", |n| n / 100.0, ONE, 115, Expected::AtLeast(0.9)),
        ("drift of 1 deviation in 30 runs, 1300 series", |n| n / 30.0, MANY, 65, Expected::AtLeast(0.9)),
        ("drift of 1 deviation in 100 runs, 1300 series", |n| n / 100.0, MANY, 150, Expected::AtLeast(0.9)),
    ];
    for (name, shape, charts, within, expected) in shapes {
        let (delays, holds) = delays(shape, charts, n);
        let at_most = u32::try_from(delays.iter().filter(|delay| **delay <= within).count()).unwrap_or(u32::MAX);
        rows.push(ResultRow::share(format!("{name}: found within {within} runs"), at_most, n, expected));
        let median = delays.get(delays.len() / 2).map_or(f64::NAN, |delay| *delay as f64);
        let row = ResultRow { what: format!("{name}: median runs"), got: median, runs: n, expected: Expected::Unknown };
        rows.push(row);
        if name.starts_with("step") {
            let expected = Expected::AtLeast(0.95);
            let found = u32::try_from(delays.len()).unwrap_or(u32::MAX).max(1);
            rows.push(ResultRow::share(format!("{name}: its range holds the step"), holds, found, expected));
        }
    }
    rows
}

/// Runs until a change after 100 runs is found, sorted, and how often its range holds it. A change that is not found
/// within 200 runs has no delay; nor has one after a false alarm.
fn delays(shape: Shape, charts: Charts, n: u32) -> (Vec<usize>, u32) {
    const BEFORE: usize = 100;
    const AFTER: usize = 200;
    let mut noise = Noise::new(9_003);
    let (mut delays, mut holds) = (Vec::new(), 0);
    for _ in 0..n {
        let shift = |index: usize| if index < BEFORE { 0.0 } else { shape((index - BEFORE + 1) as f64) };
        let logs: Vec<f64> = (0..BEFORE + AFTER).map(|index| noise.normal() + shift(index)).collect();
        let found = changes(&logs, threshold(Budget::NIGHTLY, charts));
        let Some(Change { found, range, .. }) = found.iter().find(|change| change.found >= BEFORE) else { continue };
        delays.push(found - BEFORE + 1);
        holds += u32::from(range.0 <= BEFORE && BEFORE <= range.1);
    }
    delays.sort_unstable();
    (delays, holds)
}

/// One run against 30 earlier ones, with a standard deviation of 10 % between runs.
fn single(scale: Scale) -> Vec<ResultRow> {
    let n = scale.of(YEARS);
    let mut rows = Vec::new();
    for (runs, name) in [(Runs::Normal, "normal"), (Runs::Heavy, "heavy tails")] {
        for (times, what, expected) in [
            (1.0, "is said to be later", Expected::AtMost(0.05)),
            (1.5, "1.5 times later is found", Expected::AtLeast(if matches!(runs, Runs::Normal) { 0.95 } else { 0.5 })),
        ] {
            let once = |noise: &mut Noise| [is_later(&runs.year(noise), times)];
            rows.extend(counted(&format!("one run against 30, {name}: "), n, 9_004, [(what, expected)], once));
        }
    }
    rows
}

/// Whether the 31st run, as many times later, is said to be later than the 30 before.
fn is_later(noise: &[f64], times: f64) -> bool {
    let points: Vec<Point> = noise.iter().take(30).map(|z| point(10_000.0 * (0.1 * z).exp())).collect();
    let next = noise.get(30).map_or(f64::NAN, |z| 10_000.0 * times * (0.1 * z).exp());
    Expectation::of(&points, Response::P99).is_some_and(|expected| expected.p_later(next) < 0.05)
}

fn point(ns: f64) -> Point {
    Point {
        run: 0,
        cell_index: 0,
        started_unix_ms: 0,
        kernel_release: None,
        facts: std::sync::Arc::default(),
        p99_ns: None,
        p99_interval_ns: None,
        max_ns: None,
        max_at_least: false,
        typical_p99_ns: Some(ns),
        typical_max_ns: None,
        samples: 0,
    }
}
