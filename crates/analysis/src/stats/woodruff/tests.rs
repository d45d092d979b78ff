//! Known answers, refusals, and the coverage of the interval in simulation.

use super::*;
use crate::stats::quantile::quantile;
use proptest::prelude::*;
use punctual_model::SplitMix64;

fn histogram(latencies: impl IntoIterator<Item = i64>) -> Histogram {
    let mut histogram = Histogram::default();
    latencies.into_iter().for_each(|ns| histogram.record(ns));
    histogram
}

fn pooled(slices: &[Histogram]) -> Histogram {
    slices.iter().fold(Histogram::default(), |mut all, slice| {
        all.merge(slice);
        all
    })
}

/// `m` slices with the latencies 1 to `n` us each.
fn even(m: usize, n: i64) -> Vec<Histogram> {
    (0..m).map(|_| histogram((1..=n).map(|us| us * 1000))).collect()
}

#[test]
fn the_spread_has_its_known_value() {
    let counts: Vec<_> = [3, 1, 0, 12, 2, 4, 1, 0, 2, 5].into_iter().map(|above| Count { n: 1000, above }).collect();
    let spread = Spread::of(&counts, CONFIDENCE).unwrap();
    // 30^2 exceedances over a sum of squares of 204: 4.41 slices in effect, and 2.975 818 is the 97.5 % point of
    // Student's t for 3.41 degrees of freedom (scipy 1.16).
    let standard_error = spread.relative * 0.003 / 2.975_818;
    assert!((standard_error - 0.001_125_46).abs() < 1e-7, "{standard_error}");
    // The reference divides by the mean, which is the binomial variance but for the factor 1 - p.
    assert!((spread.design_effect * 0.997 - 4.2222).abs() < 1e-4, "{}", spread.design_effect);
    let limits = (0.003 * (-spread.relative).exp(), 0.003 * spread.relative.exp());
    assert!((limits.0 - 0.000_982).abs() < 1e-6 && (limits.1 - 0.009_161).abs() < 1e-6, "{limits:?}");
}

#[test]
fn slices_of_unequal_length_count_by_their_length() {
    let equal: Vec<_> = (0..12).map(|i| Count { n: 1000, above: 10 + i % 2 }).collect();
    let mut unequal = equal.clone();
    unequal.push(Count { n: 10, above: 0 });
    let (a, b) = (Spread::of(&equal, CONFIDENCE).unwrap(), Spread::of(&unequal, CONFIDENCE).unwrap());
    assert!(
        (a.relative / b.relative - 1.0).abs() < 0.05,
        "a short slice without exceedances changes little: {a:?} {b:?}"
    );
}

#[test]
fn too_few_samples_are_refused_with_numbers() {
    assert_eq!(estimate(&Histogram::default(), &[], Level::P50), Quantile::Refused(Refusal::NoSamples));
    let slices = even(20, 499);
    let Quantile::Refused(Refusal::FewExceedances { n_eff, exceedances, times_as_long, .. }) =
        estimate(&pooled(&slices), &slices, Level::P999)
    else {
        panic!("9980 samples have 9.98 above p99.9")
    };
    assert_eq!(n_eff, 9980);
    assert!((exceedances - 9.98).abs() < 1e-9 && (times_as_long - 10.0 / 9.98).abs() < 1e-9);
    let slices = even(20, 500);
    assert!(estimate(&pooled(&slices), &slices, Level::P999).value_ns().is_some(), "10 are enough");
}

#[test]
fn one_bad_slice_makes_samples_worth_less() {
    let mut slices = even(19, 1000);
    slices.push(histogram((1..=1000).map(|us| us * 10_000)));
    let all = pooled(&slices);
    let Quantile::Refused(Refusal::FewExceedances { n_eff, .. }) = estimate(&all, &slices, Level::P99) else {
        panic!("all exceedances come from one slice")
    };
    assert!(n_eff < 200, "{n_eff} of {}", all.n);
}

#[test]
fn few_slices_give_a_value_without_an_interval() {
    let slices = even(MIN_SLICES - 1, 1000);
    let quantile = estimate(&pooled(&slices), &slices, Level::P99);
    assert!(matches!(quantile, Quantile::Known { interval_ns: None, n_eff: None, .. }), "{quantile:?}");
    let slices = even(MIN_SLICES, 1000);
    assert!(estimate(&pooled(&slices), &slices, Level::P99).interval_ns().is_some());
}

#[test]
fn samples_that_do_not_vary_have_an_interval_of_one_bucket() {
    let slices = vec![histogram(std::iter::repeat_n(50_000, 1000)); 20];
    for level in Level::USUAL {
        let quantile = estimate(&pooled(&slices), &slices, level);
        assert_eq!(
            quantile,
            Quantile::Known { value_ns: 50_000, interval_ns: Some((50_000, 50_000)), n_eff: Some(20_000) }
        );
    }
}

/// Uniform and normal numbers for simulations, the latter by Box & Muller's transform.
struct Noise(SplitMix64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        (self.0.next_bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Coverage of the interval of p99 and of the one for independent samples: `(slices, independent)`.
fn coverage(correlation: f64) -> (f64, f64) {
    const RUNS: u32 = 200;
    let truth = (50_000.0 * (0.5f64 * 2.326_347_874).exp()).round();
    let mut noise = Noise(SplitMix64::new(20_261_120));
    let mut held = (0, 0);
    for _ in 0..RUNS {
        let mut z = noise.normal();
        let mut latency = || {
            z = correlation * z + (1.0 - correlation * correlation).sqrt() * noise.normal();
            i64::try_from(whole(50_000.0 * (0.5 * z).exp())).unwrap()
        };
        let slices: Vec<_> = (0..100).map(|_| histogram((0..200).map(|_| latency()))).collect();
        let all = pooled(&slices);
        let holds = |(lower, upper): (i64, i64)| u32::from(lower as f64 <= truth && truth <= upper as f64);
        held.0 += estimate(&all, &slices, Level::P99).interval_ns().map_or(0, holds);
        held.1 += interval(&all, Level::P99.p(), 0.0, CONFIDENCE).map_or(0, holds);
        assert!(quantile(&all, 0.99).is_some());
    }
    (f64::from(held.0) / f64::from(RUNS), f64::from(held.1) / f64::from(RUNS))
}

#[test]
fn the_interval_holds_as_often_as_it_says() {
    let (slices, independent) = coverage(0.0);
    assert!(slices > 0.91 && independent > 0.91, "independent samples: {slices} {independent}");
    let (slices, independent) = coverage(0.9);
    assert!(slices > 0.90 && independent < 0.80, "correlated samples: {slices} {independent}");
}

proptest! {
    #[test]
    fn limits_are_ordered_and_quantiles_rise(
        slices in prop::collection::vec(prop::collection::vec(0i64..1_000_000, 1..80), 0..40),
    ) {
        let slices: Vec<_> = slices.into_iter().map(histogram).collect();
        let all = pooled(&slices);
        let estimates = Level::ALL.map(|level| (level, estimate(&all, &slices, level)));
        let mut below = 0;
        for (level, estimate) in estimates {
            let enough = all.n as f64 * (1.0 - level.p()) >= MIN_EXCEEDANCES - 1e-6;
            prop_assert!(enough || estimate.value_ns().is_none(), "{level} of {} samples", all.n);
            let Some(value) = estimate.value_ns() else { continue };
            prop_assert!(value >= below, "{level}");
            below = value;
            let Some((lower, upper)) = estimate.interval_ns() else { continue };
            prop_assert!(lower <= value && value <= upper, "{level}: {lower} {value} {upper}");
            let wider = estimate_at(&all, &slices, level, 0.99).interval_ns();
            prop_assert!(wider.is_none_or(|(low, high)| low <= lower && high >= upper), "{level}");
        }
    }
}
