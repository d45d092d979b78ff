//! Test that the same share of samples exceeds an overall quantile in each stretch of time, which maxima cannot show.
//!
//! There are 10 to 20 long stretches, so that correlation over less than a twentieth of the time causes no false alarm.
//! Where correlation lasts as long as 20 stretches, no interval is right.

use super::{best_split, normal_scores, without_line, without_mean};
use std::f64::consts::TAU;

/// Most stretches that are compared: the fewest slices that the interval of a quantile rests on.
pub const STRETCHES: usize = 20;

/// Fewest stretches that are tested.
pub const MIN_STRETCHES: usize = 10;

/// Critical values for 10, 11 ... 20 values in a random order.
///
/// The first is exceeded in one of 200 orders: the largest difference between the values before and after any place, of
/// their normal scores, in standard deviations. The others in one of 400: the share of their variance that one wave
/// explains ([`largest_wave`]), of their normal scores, and of whether they are above the median, which finds two
/// alternating states. Counted in 1 000 000 orders each; `cargo xtask simulate shares` counts again.
const CRITICAL: [(f64, f64, f64); STRETCHES - MIN_STRETCHES + 1] = [
    (2.607, 0.9021, 1.0),
    (2.720, 0.8727, 0.9268),
    (2.817, 0.8480, 1.0),
    (2.840, 0.8218, 0.9334),
    (2.873, 0.7975, 0.8693),
    (2.944, 0.7717, 0.8706),
    (3.009, 0.7498, 0.8520),
    (3.034, 0.7257, 0.8477),
    (3.080, 0.7067, 0.8189),
    (3.111, 0.6858, 0.8000),
    (3.134, 0.6667, 0.7828),
];

/// Cycles of the longest wave that is tried, and the step to the next ones, in all stretches together.
const CYCLES: (f64, f64) = (1.0, 0.25);

/// Result of the test for consecutive stretches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shares {
    /// Nothing contradicts one share for all.
    Same,
    /// The stretches before and after a place differ; each part is stationary.
    Changed {
        /// Stretches before it.
        at: usize,
    },
    /// They rise or fall.
    Drifts {
        /// Whether they rise.
        rises: bool,
    },
    /// They rise and fall, or alternate, and neither one change nor a drift explains as much of it.
    Waves,
}

/// Tests the shares of 10 to 20 consecutive stretches of about equal length; `None` for any other number. The rate of
/// false alarms is 1 %.
pub fn shares(shares: &[f64]) -> Option<Shares> {
    let (most_difference, most_of_scores, most_of_signs) = *CRITICAL.get(shares.len().checked_sub(MIN_STRETCHES)?)?;
    // With ties the scores are not centered, and those in the middle are rounding errors.
    let rounded = |score: f64| if score.abs() < 1e-9 { 0.0 } else { score };
    let scores: Vec<f64> = without_mean(&normal_scores(shares)).into_iter().map(rounded).collect();
    let Some(difference) = largest_difference(&scores) else { return Some(Shares::Same) };
    let wave = largest_wave(&scores);
    if difference <= most_difference {
        let sign = |score: &f64| if *score == 0.0 { 0.0 } else { score.signum() };
        let of_signs = largest_wave(&scores.iter().map(sign).collect::<Vec<_>>());
        return Some(if wave > most_of_scores || of_signs > most_of_signs { Shares::Waves } else { Shares::Same });
    }
    let at = best_split(&scores);
    let (before, after) = scores.split_at(at);
    let step: Vec<f64> = [before, after].into_iter().flat_map(without_mean).collect();
    let squares = |left: &[f64]| left.iter().map(|x| x * x).sum::<f64>();
    let explained = |left: &[f64]| 1.0 - squares(left) / squares(&scores);
    let (step, line) = (explained(&step), explained(&without_line(&scores)));
    if wave > step.max(line) {
        return Some(Shares::Waves);
    }
    let half = scores.len() / 2;
    let sum = |part: &[f64]| part.iter().sum::<f64>();
    let rises = sum(&scores[half..]) > sum(&scores[..half]);
    Some(if step >= line { Shares::Changed { at } } else { Shares::Drifts { rises } })
}

/// The largest difference between the sums before and after any place with at least two values on either side, in
/// standard deviations of the difference under randomness there. `None` when nothing varies.
fn largest_difference(scores: &[f64]) -> Option<f64> {
    let n = scores.len() as f64;
    let deviation = (scores.iter().map(|score| score * score).sum::<f64>() / n).sqrt();
    let mut sum = 0.0;
    let differences = (1..scores.len() - 1).zip(scores).map(|(before, score)| {
        sum += score;
        let k = before as f64;
        let is_inside = before >= 2;
        if is_inside { f64::abs(sum) / deviation / (k * (n - k) / n).sqrt() } else { 0.0 }
    });
    (deviation > 0.0).then(|| differences.fold(0.0, f64::max))
}

/// The largest share of the variance of equidistant values that one sine wave explains, of any phase and from one cycle
/// in all values up to half a cycle a value: the least-squares periodogram (Lomb 1976). 0 when nothing varies.
fn largest_wave(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let values = without_mean(values);
    let total: f64 = values.iter().map(|value| value * value).sum();
    if total <= 0.0 {
        return 0.0;
    }
    let (first, step) = CYCLES;
    let cycles = (0..).map(|i| first + step * f64::from(i)).take_while(|cycles| *cycles < n / 2.0);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let explained = cycles.map(|cycles| {
        let of = |wave: fn(f64) -> f64| {
            without_mean(&(0..values.len()).map(|i| wave(TAU * cycles * i as f64 / n)).collect::<Vec<_>>())
        };
        let (cosine, sine) = (of(f64::cos), of(f64::sin));
        let (cc, ss, cs) = (dot(&cosine, &cosine), dot(&sine, &sine), dot(&cosine, &sine));
        let (a, b) = (dot(&values, &cosine), dot(&values, &sine));
        (a * a * ss - 2.0 * a * b * cs + b * b * cc) / (cc * ss - cs * cs) / total
    });
    explained.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::SplitMix64;

    fn noise(n: usize, seed: u64) -> Vec<f64> {
        let mut random = SplitMix64::new(seed);
        (0..n).map(|_| random.below(1 << 30) as f64).collect()
    }

    #[test]
    fn ten_to_twenty_stretches_are_tested() {
        assert_eq!((shares(&noise(9, 1)), shares(&noise(21, 1)), shares(&[])), (None, None, None));
        for n in MIN_STRETCHES..=STRETCHES {
            assert_eq!(shares(&noise(n, 1)), Some(Shares::Same), "{n}");
            assert_eq!(shares(&vec![3.0; n]), Some(Shares::Same), "{n}: nothing varies");
        }
    }

    #[test]
    fn the_largest_difference_has_its_known_value() {
        // 1 1 -1 -1: half the sum of squares is explained twice over: 2 / sqrt(2 * 2 / 4).
        assert!((largest_difference(&[1.0, 1.0, -1.0, -1.0]).unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(largest_difference(&[0.0; 5]), None);
    }

    #[test]
    fn a_wave_explains_all_of_itself_whatever_its_phase_and_half_of_two() {
        let wave = |cycles: f64, phase: f64| move |i: usize| (TAU * cycles * i as f64 / 20.0 + phase).sin();
        let of = |value: &dyn Fn(usize) -> f64| largest_wave(&(0..20).map(value).collect::<Vec<_>>());
        for (cycles, phase) in [(1.0, 0.3), (3.25, 2.0), (9.75, 1.0)] {
            assert!((of(&wave(cycles, phase)) - 1.0).abs() < 1e-9, "{cycles} {phase}");
        }
        let (slow, fast) = (wave(2.0, 0.1), wave(5.0, 0.7));
        assert!(
            (0.5..0.55).contains(&of(&|i| slow(i) + fast(i))),
            "one between two of these cycles explains a bit more"
        );
        assert!(largest_wave(&[3.0; 20]) < 1e-9);
    }

    #[test]
    fn two_states_that_alternate_are_found_from_every_stretch_to_once_in_all_of_them() {
        for length in [1.25, 2.0, 10.0 / 3.0, 4.5, 10.0] {
            let found = |phase: u32| {
                let is_rough = |at: f64| ((at + f64::from(phase) / 20.0 * length) / length).floor() % 2.0;
                // The share of a stretch in the rough state, and noise of a fifth.
                let state =
                    |i: u32| (0..20).map(|part| is_rough(f64::from(i) + f64::from(part) / 20.0) / 20.0).sum::<f64>();
                let values = noise(20, phase.into()).into_iter().zip(0..);
                let values: Vec<f64> = values.map(|(v, i)| v / f64::from(1 << 30) / 5.0 + state(i)).collect();
                shares(&values) != Some(Shares::Same)
            };
            let found = (0..40).filter(|phase| found(*phase)).count();
            assert!(found >= 38, "{length}: {found} of 40");
        }
    }

    #[test]
    fn a_step_a_drift_and_waves_are_told_apart() {
        let with = |add: &dyn Fn(f64) -> f64| {
            let values = noise(20, 3).into_iter().zip(0..).map(|(v, i)| v / f64::from(1 << 30) + add(f64::from(i)));
            shares(&values.collect::<Vec<_>>()).unwrap()
        };
        assert_eq!(with(&|i| if i < 12.0 { 0.0 } else { 2.0 }), Shares::Changed { at: 12 });
        assert_eq!(with(&|i| -i / 4.0), Shares::Drifts { rises: false });
        assert_eq!(with(&|i| i / 4.0), Shares::Drifts { rises: true });
        assert_eq!(with(&|i| if (i / 2.0).floor() % 2.0 == 0.0 { 0.0 } else { 3.0 }), Shares::Waves);
    }

    #[test]
    fn many_equal_values_make_no_change_of_one_that_differs() {
        let with = |at: &[usize]| {
            let value = |i: usize| if at.contains(&i) { 5.0 + i as f64 } else { 0.0 };
            shares(&(0..20).map(value).collect::<Vec<_>>())
        };
        assert!((0..20).all(|at| with(&[at]) == Some(Shares::Same)));
        assert_eq!(with(&[18, 19]), Some(Shares::Changed { at: 18 }), "by chance in one of a hundred orders");
        assert_eq!(with(&[3, 4]), Some(Shares::Same));
    }

    #[test]
    fn one_in_a_hundred_orders_is_an_alarm() {
        for n in [12, 16, 20] {
            let alarms = (0..4_000).filter(|seed| shares(&noise(n, *seed)) != Some(Shares::Same)).count();
            assert!((10..=75).contains(&alarms), "{n}: {alarms} of 4000");
        }
    }
}
