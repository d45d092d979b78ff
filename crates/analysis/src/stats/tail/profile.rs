//! Profile-likelihood intervals of a level of the tail.

use super::gpd::{Gpd, growth};
use super::search::{border, maximum};
use std::ops::RangeInclusive;

/// Drop of the log-likelihood from its maximum to the ends of a two-sided 95 % interval: half of the 95 % point of
/// chi-squared with 1 degree of freedom.
pub const TWO_SIDED_95: f64 = 1.920_729;

/// Drop to a one-sided 95 % limit: half of the 90 % point.
pub const ONE_SIDED_95: f64 = 1.352_772;

/// A level of the tail, as an excess over the threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Most likely value.
    pub point: f64,
    /// The lower end.
    pub lower: f64,
    /// The upper end; `None` if it is unbounded (100 000 times the mean excess).
    pub upper: Option<f64>,
}

/// The excess that one in `m` exceeds, with its interval: all levels for which some shape of `shapes` has a
/// log-likelihood at most `drop` below the maximum (Coles 2001, 2.6.6 and 4.3.3).
///
/// `None` without excesses above 0.
pub fn level(excesses: &[f64], m: f64, shapes: RangeInclusive<f64>, drop: f64) -> Option<Level> {
    let mean = excesses.iter().sum::<f64>() / excesses.len() as f64;
    if !mean.is_finite() || mean <= 0.0 {
        return None;
    }
    let best_shape = |log_level: f64| {
        let likelihood = |shape: f64| {
            let scale = log_level.exp() / growth(shape, m);
            let likelihood = Gpd { shape, scale }.log_likelihood(excesses);
            if likelihood.is_nan() { f64::NEG_INFINITY } else { likelihood }
        };
        maximum(*shapes.start(), *shapes.end(), 12, 18, likelihood).1
    };
    let (least, most) = ((0.05 * mean).ln(), (1e5 * mean).ln());
    let (point, top) = maximum(least, most, 40, 20, best_shape);
    let is_likely = |log_level: f64| best_shape(log_level) > top - drop;
    let lower = if is_likely(least) { least } else { border(point, least, is_likely) };
    let upper = (!is_likely(most)).then(|| border(point, most, is_likely));
    Some(Level { point: point.exp(), lower: lower.exp(), upper: upper.map(f64::exp) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::tail::gpd::SHAPES;
    use crate::stats::tail::gpd::tests::ideal;

    #[test]
    fn intervals_have_their_known_values() {
        for (shape, point, lower, upper) in
            [(-0.2, 37.05, 33.62, 43.57), (0.0, 68.24, 56.35, 90.72), (0.3, 228.4, 155.5, 383.1)]
        {
            let got = level(&ideal(shape, 500), 1000.0, SHAPES, TWO_SIDED_95).unwrap();
            let near = |got: f64, want: f64| (got / want - 1.0).abs() < 0.01;
            assert!(near(got.point, point) && near(got.lower, lower), "{shape}: {got:?}");
            assert!(near(got.upper.unwrap(), upper), "{shape}: {got:?}");
        }
    }

    #[test]
    fn limits_are_ordered_and_widen_with_confidence() {
        let excesses = ideal(0.1, 60);
        let narrow = level(&excesses, 600.0, 0.0..=1.5, ONE_SIDED_95).unwrap();
        let wide = level(&excesses, 600.0, 0.0..=1.5, TWO_SIDED_95).unwrap();
        assert!(wide.lower < narrow.lower && narrow.lower < narrow.point);
        assert!(narrow.point < narrow.upper.unwrap() && narrow.upper < wide.upper);
        assert_eq!(level(&[], 10.0, SHAPES, TWO_SIDED_95), None);
    }
}
