//! The gates, one after the other, and a limit where all pass.

use super::*;
use punctual_model::SplitMix64;

/// Maxima of an exponential tail with mean 5, each of 5000 samples.
fn exponential(n: usize, seed: u64) -> Vec<f64> {
    let mut random = SplitMix64::new(seed);
    let mut uniform = || (random.below(1 << 52) as f64 + 0.5) / (1u64 << 52) as f64;
    (0..n).map(|_| -5.0 * (-(uniform().ln() / 5000.0).exp_m1()).ln()).collect()
}

#[test]
fn a_well_behaved_tail_has_a_limit_above_its_true_level() {
    let limit = tail_limit(&exponential(600, 1), 10.0, 0.0).unwrap();
    // Exceeded once in 6000 blocks of 5000 samples.
    let truth = 5.0 * (6000.0f64 * 5000.0).ln();
    assert!(limit.point < limit.upper && truth < limit.upper && limit.upper < 2.0 * truth, "{limit:?} {truth}");
    assert_eq!((limit.block, limit.excesses), (1, 60));
    let nearer = tail_limit(&exponential(600, 1), 1.0, 0.0).unwrap();
    assert!(nearer.upper < limit.upper);
}

#[test]
fn the_horizon_is_ten_times_the_measured_time() {
    for times in [10.1, 0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(tail_limit(&exponential(600, 1), times, 0.0), Err(TailRefusal::TooFar), "{times}");
    }
}

#[test]
fn a_run_of_different_parts_or_too_short_a_run_is_refused() {
    let short = exponential(149, 1);
    assert_eq!(tail_limit(&short, 10.0, 0.0), Err(TailRefusal::FewBlocks { blocks: 149 }));
    let mut step = exponential(600, 1);
    step.iter_mut().skip(420).for_each(|x| *x *= 1.2);
    let refused = tail_limit(&step, 10.0, 0.0);
    assert!(matches!(refused, Err(TailRefusal::NotStationary(Gate::Changed { .. }))), "{refused:?}");
    let refused = tail_limit(&exponential(20, 1), 10.0, 0.0);
    assert_eq!(refused, Err(TailRefusal::NotStationary(Gate::TooShort { seconds: 20 })));
}

#[test]
fn spikes_at_regular_distances_are_refused() {
    let mut spikes = exponential(600, 1);
    spikes.iter_mut().skip(7).step_by(60).for_each(|x| *x += 100.0);
    let refused = tail_limit(&spikes, 10.0, 0.0);
    assert!(matches!(refused, Err(TailRefusal::Periodic(Periodicity { lag: 60, .. }))), "{refused:?}");
}

#[test]
fn a_rare_mode_is_named_by_its_gap() {
    let mut modes = exponential(600, 2);
    for at in [31, 90, 222, 317, 318, 452, 500, 533] {
        modes[at] = 500.0 + f64::from(u32::try_from(at).unwrap() % 7);
    }
    let refused = tail_limit(&modes, 10.0, 0.0);
    let Err(TailRefusal::SeparateMode { above, from, to }) = refused else { panic!("{refused:?}") };
    assert!(above == 8 && from < 150.0 && to >= 500.0, "{refused:?}");
}

#[test]
fn maxima_that_are_too_coarse_or_do_not_vary_are_refused() {
    assert_eq!(tail_limit(&exponential(600, 1), 10.0, 5.0), Err(TailRefusal::Coarse));
    assert_eq!(tail_limit(&[3.0; 600], 10.0, 0.0), Err(TailRefusal::NoExcesses));
}
