//! S1: coverage of the interval of a quantile, 100 000 samples, nominal 95 %.

use super::noise::Noise;
use super::{Expected, ResultRow, Scale, merged};
use punctual_analysis::stationarity::Gate;
use punctual_analysis::{Level, estimate, order_ranks};
use punctual_model::Histogram;

/// Samples of a run.
const SAMPLES: usize = 100_000;

/// Number of runs of each number, here and in the specification.
const RUNS: u32 = 400;

/// The logarithm of a latency of 0: 50 us.
const UNIT_NS: f64 = 50_000.0;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Independent,
    Autoregression(f64),
    /// Storms of 300 samples on average.
    Bursts,
    /// Two states that differ by 30 % and last for this number of samples on average. A slice has 1 000 samples.
    Regimes(f64),
}

/// Specified coverage: of the interval for independent samples, and of 20 slices, for p99 and p99.9.
struct Specified {
    kind: Kind,
    name: &'static str,
    binomial: [f64; 2],
    slices: [f64; 2],
    /// Width relative to that for independent samples; `NAN` where it was not counted, or would be that of the few
    /// narrow intervals that are printed.
    widths: [f64; 2],
}

const NONE: [f64; 2] = [f64::NAN; 2];

const fn row(kind: Kind, name: &'static str, [binomial, slices, widths]: [[f64; 2]; 3]) -> Specified {
    Specified { kind, name, binomial, slices, widths }
}

const KINDS: [Specified; 7] = [
    row(Kind::Independent, "independent", [[0.963, 0.932], [0.965, 0.940], [1.0, 1.0]]),
    row(Kind::Autoregression(0.9), "AR 0.9", [[0.610, 0.715], [0.958, 0.932], [2.4, 1.9]]),
    row(Kind::Autoregression(0.99), "AR 0.99", [[0.195, 0.263], [0.938, 0.860], [7.4, f64::NAN]]),
    row(Kind::Bursts, "storms", [[0.160, 0.420], [0.922, 0.940], [9.0, 3.0]]),
    // The reason that a run rejected by the gate has no interval: without the gate a quarter of the intervals would be
    // wrong where states last for 10 slices.
    row(Kind::Regimes(300.0), "regimes of 300", [NONE; 3]),
    row(Kind::Regimes(3e3), "regimes of 3 000", [NONE; 3]),
    row(Kind::Regimes(1e4), "regimes of 10 000", [NONE; 3]),
];

pub(super) fn run(scale: Scale) -> Vec<ResultRow> {
    KINDS.iter().flat_map(|specified| of_kind(specified, scale)).collect()
}

fn of_kind(specified: &Specified, scale: Scale) -> Vec<ResultRow> {
    let runs = scale.of(RUNS);
    let mut noise = Noise::new(2_202);
    let levels = [Level::P99, Level::P999];
    let truths = truths(specified.kind, scale.of(100), &mut noise, levels);
    // Coverage counts: for independent samples, of 100 slices joined when alike, of 20 slices.
    let mut held = [[0u32; 3]; 2];
    let mut shown = [[0u32; 3]; 2];
    let mut widths = [[0.0f64; 2]; 2];
    for _ in 0..runs {
        let latencies = latencies(specified.kind, &mut noise);
        let slices = |n: usize| -> Vec<Histogram> { latencies.chunks(SAMPLES / n).map(Histogram::of).collect() };
        let (hundred, twenty) = (slices(100), slices(20));
        let pooled = merged(&twenty);
        let mut sorted = latencies;
        sorted.sort_unstable();
        let passed = !matches!(specified.kind, Kind::Regimes(_)) || passes_gate(&hundred);
        for (i, level) in levels.into_iter().enumerate() {
            let binomial = order_ranks(SAMPLES as u64, level.p(), 0.95).and_then(|(low, high)| {
                let at = |rank: u64| sorted.get(usize::try_from(rank).ok()? - 1).copied();
                Some((at(low)?, at(high)?))
            });
            let by = |slices: &[Histogram]| estimate(&pooled, slices, level);
            let estimates = [by(&hundred), by(&twenty)];
            let intervals = [binomial, estimates[0].interval_ns(), estimates[1].interval_ns()];
            for (j, interval) in intervals.into_iter().enumerate() {
                let Some((low, high)) = interval.filter(|_| passed || j == 0) else { continue };
                shown[i][j] += 1;
                held[i][j] += u32::from(low as f64 <= truths[i] && truths[i] <= high as f64);
            }
            if let (Some(binomial), Some(ours)) = (binomial, estimates[1].interval_ns()) {
                let width = |(low, high): (i64, i64)| (high as f64 / low as f64).ln();
                widths[i][0] += width(binomial);
                widths[i][1] += width(ours);
            }
        }
    }
    let name = specified.name;
    let mut rows = Vec::new();
    for (i, level) in levels.into_iter().enumerate() {
        let row = |j: usize, what: &str, expected| {
            ResultRow::share(format!("{name} {level}: {what}"), held[i][j], shown[i][j].max(1), expected)
        };
        let binomial = specified.binomial[i];
        let expected = if binomial.is_nan() { Expected::Unknown } else { Expected::Share(binomial, RUNS) };
        rows.push(row(0, "for independent samples", expected));
        if specified.slices[i].is_nan() {
            let wrong = shown[i][1] - held[i][1];
            let what = format!("{name} {level}: an interval is shown and wrong");
            rows.push(ResultRow::share(what, wrong, runs, Expected::AtMost(0.07)));
        } else {
            let expected = Expected::AtLeast(specified.slices[i] - 0.01);
            rows.push(row(1, "100 slices, joined when alike, where shown", expected));
            rows.push(row(2, "20 slices, where shown", Expected::AtLeast(specified.slices[i])));
        }
        let of_runs = |count| ResultRow::share(format!("{name} {level}: shown"), count, runs, Expected::Unknown);
        rows.push(of_runs(shown[i][2]));
        let ratio = widths[i][1] / widths[i][0];
        let what = format!("{name} {level}: width over that for independent samples");
        rows.push(ResultRow {
            what,
            got: ratio,
            runs: shown[i][2],
            expected: width_expected(specified.widths[i], runs),
        });
    }
    rows
}

/// Widths exceed the specified ones by up to a half where intervals are narrow: their ends are those of buckets, 0.78 %
/// apart.
fn width_expected(specified: f64, runs: u32) -> Expected {
    if specified.is_nan() { Expected::Unknown } else { Expected::Value(specified, 0.48 + 1.0 / f64::from(runs).sqrt()) }
}

/// Whether the gate accepts a run with these slices, each taken for a second.
fn passes_gate(slices: &[Histogram]) -> bool {
    let maxima: Vec<f64> = slices.iter().filter_map(|slice| slice.max_ns).map(|max_ns| max_ns as f64).collect();
    matches!(Gate::of(&maxima), Gate::Passed { .. })
}

/// The true quantiles, ns; counted in `runs` runs where there is no formula.
fn truths(kind: Kind, runs: u32, noise: &mut Noise, levels: [Level; 2]) -> [f64; 2] {
    match kind {
        Kind::Independent | Kind::Autoregression(_) => {
            levels.map(|level| UNIT_NS * (0.3 * punctual_analysis::normal_quantile(level.p())).exp())
        }
        Kind::Bursts | Kind::Regimes(_) => {
            let mut all: Vec<i64> = (0..runs).flat_map(|_| latencies(kind, noise)).collect();
            all.sort_unstable();
            let at = |level: Level| {
                let above = (all.len() as f64 * (1.0 - level.p())).round();
                all.iter().rev().zip(0u32..).find(|(_, i)| f64::from(*i) >= above).map_or(0.0, |(ns, _)| *ns as f64)
            };
            levels.map(at)
        }
    }
}

/// The latencies of one run, ns.
fn latencies(kind: Kind, noise: &mut Noise) -> Vec<i64> {
    let logarithms: Vec<f64> = match kind {
        Kind::Independent => (0..SAMPLES).map(|_| 0.3 * noise.normal()).collect(),
        Kind::Autoregression(correlation) => {
            noise.autoregression(correlation, SAMPLES).into_iter().map(|z| 0.3 * z).collect()
        }
        Kind::Bursts => {
            let mut left = 0u32;
            let sample = |_| {
                if noise.chance(1.0 / 5_000.0) {
                    left = left.max(noise.geometric(1.0 / 300.0));
                }
                let storm = if left > 0 { noise.exponential(0.7) } else { 0.0 };
                left = left.saturating_sub(1);
                0.3 * noise.normal() + storm
            };
            (0..SAMPLES).map(sample).collect()
        }
        Kind::Regimes(length) => {
            let mut is_high = noise.chance(0.5);
            let sample = |_| {
                is_high ^= noise.chance(1.0 / length);
                0.3 * noise.normal() + if is_high { 0.26 } else { 0.0 }
            };
            (0..SAMPLES).map(sample).collect()
        }
    };
    logarithms.into_iter().map(ns).collect()
}

fn ns(logarithm: f64) -> i64 {
    let ns = (UNIT_NS * logarithm.exp()).round().min(1e15);
    #[expect(clippy::cast_possible_truncation, reason = "a whole number below 10^15")]
    let ns = ns as i64;
    ns
}
