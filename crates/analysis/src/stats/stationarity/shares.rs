//! Test that the same share of samples exceeds an overall quantile in each stretch of time, which maxima cannot show.
//!
//! There are 10 to 20 long stretches, so that correlation over less than a twentieth of the time causes no false alarm.
//! Where correlation lasts as long as 20 stretches, no interval is right.

use super::{best_split, ljung_box, normal_scores, without_line, without_mean};

/// Most stretches that are compared: the fewest slices that the interval of a quantile rests on.
pub const STRETCHES: usize = 20;

/// Fewest stretches that are tested.
pub const MIN_STRETCHES: usize = 10;

/// Critical values for 10, 11 ... 20 values in a random order.
///
/// The first is exceeded in one of 200 orders: the largest difference between the values before and after any place, of
/// their normal scores, in standard deviations. The others in one of 400: the statistic of Ljung and Box with a lag for
/// every four values, of their normal scores, and of whether they are above the median, which finds two alternating
/// states. Counted in 1 000 000 orders each; `cargo xtask simulate shares` counts again. A statistic that no order
/// reaches is infinite.
const CRITICAL: [(f64, f64, f64); STRETCHES - MIN_STRETCHES + 1] = [
    (2.607, 11.80, f64::INFINITY),
    (2.720, 11.81, 16.94),
    (2.817, 15.91, 16.04),
    (2.840, 15.84, 19.49),
    (2.873, 15.81, 19.34),
    (2.944, 15.90, 19.64),
    (3.009, 18.98, 24.73),
    (3.034, 19.04, 23.65),
    (3.080, 18.93, 23.32),
    (3.111, 18.79, 22.70),
    (3.134, 22.34, 28.02),
];

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
    /// Neighboring stretches are correlated, or alternate, and neither one change nor a drift explains it.
    Waves,
}

/// Tests the shares of 10 to 20 consecutive stretches of about equal length; `None` for any other number. The rate of
/// false alarms is 1 %.
#[must_use]
pub fn shares(shares: &[f64]) -> Option<Shares> {
    let (most_difference, most_of_scores, most_of_signs) = *CRITICAL.get(shares.len().checked_sub(MIN_STRETCHES)?)?;
    // With ties the scores are not centered.
    let scores = without_mean(&normal_scores(shares));
    let likeness = |values: &[f64], most: f64| ljung_box(values, values.len() / 4).is_some_and(|q| q > most);
    // Residuals of ties are rounding errors, equal for all of them.
    let rounded = |score: &f64| if score.abs() < 1e-9 { 0.0 } else { *score };
    let sign = |score: &f64| if *score == 0.0 { 0.0 } else { score.signum() };
    let resemble = |scores: &[f64]| {
        let scores: Vec<f64> = scores.iter().map(rounded).collect();
        likeness(&scores, most_of_scores) || likeness(&scores.iter().map(sign).collect::<Vec<_>>(), most_of_signs)
    };
    let Some(difference) = largest_difference(&scores) else { return Some(Shares::Same) };
    if difference <= most_difference {
        return Some(if resemble(&scores) { Shares::Waves } else { Shares::Same });
    }
    let at = best_split(&scores);
    let (before, after) = scores.split_at(at);
    let step: Vec<f64> = [before, after].into_iter().flat_map(without_mean).collect();
    let line = without_line(&scores);
    let squares = |left: &[f64]| left.iter().map(|x| x * x).sum::<f64>();
    let is_step = squares(&step) <= squares(&line);
    if resemble(if is_step { &step } else { &line }) {
        return Some(Shares::Waves);
    }
    let half = scores.len() / 2;
    let sum = |part: &[f64]| part.iter().sum::<f64>();
    let rises = sum(&scores[half..]) > sum(&scores[..half]);
    Some(if is_step { Shares::Changed { at } } else { Shares::Drifts { rises } })
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

#[cfg(test)]
mod tests {
    use super::*;
    use model::SplitMix64;

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
