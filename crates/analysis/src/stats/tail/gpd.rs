//! The generalized Pareto distribution of excesses over a high threshold (Pickands 1975).

use super::search::maximum;
use std::ops::RangeInclusive;

/// Shapes that are fitted. Below -0.5 the likelihood has no proper maximum (Smith 1985); from 1 on the mean of the
/// excesses is infinite.
pub const SHAPES: RangeInclusive<f64> = -0.5..=1.5;

/// Shapes nearer to 0 than this are treated as the exponential distribution.
const EXPONENTIAL: f64 = 1e-8;

/// The distribution of an excess `y > 0`: it is larger than `y` with the chance `(1 + shape y / scale)^(-1 / shape)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gpd {
    /// The shape, often written xi: 0 is the exponential distribution; positive is a heavier tail, negative one with an
    /// end.
    pub shape: f64,
    /// The scale, often written sigma; above 0, in the unit of the excesses.
    pub scale: f64,
}

impl Gpd {
    /// The chance of an excess above `y`; 0 beyond the end of the distribution.
    pub fn above(&self, y: f64) -> f64 {
        (-self.standard(y)).exp()
    }

    /// The excess transformed to the standard exponential distribution: `ln(1 + shape y / scale) / shape`, infinite
    /// beyond the end.
    pub fn standard(&self, y: f64) -> f64 {
        if self.shape.abs() < EXPONENTIAL {
            return y / self.scale;
        }
        let inner = self.shape * y / self.scale;
        if inner <= -1.0 { f64::INFINITY } else { inner.ln_1p() / self.shape }
    }

    /// The excess that one in `m` exceeds: `scale / shape (m^shape - 1)`.
    pub fn one_in(&self, m: f64) -> f64 {
        self.scale * growth(self.shape, m)
    }

    /// Log-likelihood of these excesses; minus infinity when one is impossible.
    pub fn log_likelihood(&self, excesses: &[f64]) -> f64 {
        let standard: f64 = excesses.iter().map(|y| self.standard(*y)).sum();
        -(excesses.len() as f64) * self.scale.ln() - (1.0 + self.shape) * standard
    }

    /// Maximum-likelihood fit with a shape in [`SHAPES`], and its log-likelihood. `None` without excesses above 0.
    pub fn fit(excesses: &[f64]) -> Option<(Gpd, f64)> {
        let mean = excesses.iter().sum::<f64>() / excesses.len() as f64;
        let largest = excesses.iter().copied().fold(0.0, f64::max);
        if !mean.is_finite() || largest <= 0.0 {
            return None;
        }
        // The best scale for each shape, from the smallest that allows the largest excess.
        let scale = |shape: f64| {
            let least = (0.02 * mean).max(-shape * largest * (1.0 + 1e-9));
            let likelihood = |scale: f64| Gpd { shape, scale: scale.exp() }.log_likelihood(excesses);
            maximum(least.ln(), (20.0 * mean).max(2.0 * least).ln(), 8, 32, likelihood)
        };
        let (shape, _) = maximum(*SHAPES.start(), *SHAPES.end(), 40, 24, |shape| scale(shape).1);
        let (log_scale, log_likelihood) = scale(shape);
        Some((Gpd { shape, scale: log_scale.exp() }, log_likelihood))
    }
}

/// The excess that one in `m` exceeds, in units of the scale.
pub(super) fn growth(shape: f64, m: f64) -> f64 {
    let log = m.ln();
    if shape.abs() < EXPONENTIAL { log } else { (shape * log).exp_m1() / shape }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Ideal excesses of a distribution with scale 10: its quantiles at `(i - 0.5) / n`.
    pub(in crate::stats::tail) fn ideal(shape: f64, n: u32) -> Vec<f64> {
        let gpd = Gpd { shape, scale: 10.0 };
        (1..=n).map(|i| gpd.one_in(1.0 / (1.0 - (f64::from(i) - 0.5) / f64::from(n)))).collect()
    }

    #[test]
    fn chances_have_their_known_values() {
        for (shape, above) in [(0.2, 0.095_367_431_6), (0.0, 0.049_787_068_4), (-0.2, 0.010_24)] {
            let got = Gpd { shape, scale: 10.0 }.above(30.0);
            assert!((got - above).abs() < 1e-9, "{shape}: {got}");
        }
        assert_eq!(Gpd { shape: -0.2, scale: 10.0 }.above(50.0), 0.0, "the distribution ends there");
    }

    #[test]
    fn levels_have_their_known_values() {
        for (shape, level) in [(0.2, 162.267_11), (0.0, 108.861_04), (-0.2, 84.593_30)] {
            let got = 50.0 + Gpd { shape, scale: 10.0 }.one_in(3600.0 * 0.1);
            assert!((got - level).abs() < 1e-5, "{shape}: {got}");
        }
    }

    #[test]
    fn fits_have_their_known_values() {
        for (shape, fitted, scale, log_likelihood) in [
            (-0.2, -0.205_99, 10.0542, -1_551.001_78),
            (0.0, -0.004_67, 10.0397, -1_650.940_72),
            (0.3, 0.296_57, 10.0253, -1_800.840_38),
        ] {
            let (gpd, got) = Gpd::fit(&ideal(shape, 500)).unwrap();
            assert!((gpd.shape - fitted).abs() < 1e-3 && (gpd.scale - scale).abs() < 1e-3, "{shape}: {gpd:?}");
            assert!((got - log_likelihood).abs() < 1e-3, "{shape}: {got}");
        }
    }

    #[test]
    fn nothing_to_fit_is_refused() {
        assert_eq!(Gpd::fit(&[]), None);
        assert_eq!(Gpd::fit(&[0.0, 0.0]), None);
    }
}
