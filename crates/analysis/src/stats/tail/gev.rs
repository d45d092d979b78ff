//! The generalized extreme value distribution of block maxima, a cross-check of the tail.

/// The distribution of the maximum of a long block: at most `x` with the chance
/// `exp(-(1 + shape (x - location) / scale)^(-1 / shape))`. Shape 0 is Gumbel's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gev {
    /// The location, often written mu.
    pub location: f64,
    /// The scale, often written sigma; above 0.
    pub scale: f64,
    /// The shape, often written xi; scipy's `c` is its negative.
    pub shape: f64,
}

impl Gev {
    /// The chance that a maximum is at most `x`.
    pub fn at_most(&self, x: f64) -> f64 {
        self.reduced(x).map_or_else(|| if self.shape < 0.0 { 1.0 } else { 0.0 }, |t| (-(-t).exp()).exp())
    }

    /// The level that a maximum exceeds once in `blocks`, which is above 1 (return level; Coles 2001, 3.4).
    pub fn once_in(&self, blocks: f64) -> f64 {
        let t = -(-(-1.0 / blocks).ln_1p()).ln();
        let distance = if self.shape.abs() < 1e-9 { t } else { (self.shape * t).exp_m1() / self.shape };
        self.location + self.scale * distance
    }

    /// Log-likelihood of these maxima; minus infinity when one is impossible.
    pub fn log_likelihood(&self, maxima: &[f64]) -> f64 {
        let of = |x: &f64| {
            let t = self.reduced(*x).filter(|_| self.scale > 0.0);
            t.map_or(f64::NEG_INFINITY, |t| -self.scale.ln() - (1.0 + self.shape) * t - (-t).exp())
        };
        maxima.iter().map(of).sum()
    }

    /// `x` as a maximum of the standard Gumbel distribution: `ln(1 + shape z) / shape`. `None` beyond the end.
    fn reduced(&self, x: f64) -> Option<f64> {
        let z = (x - self.location) / self.scale;
        if self.shape.abs() < 1e-9 {
            return Some(z);
        }
        let inner = self.shape * z;
        (inner > -1.0).then(|| inner.ln_1p() / self.shape)
    }

    /// Maximum-likelihood fit to these maxima, with its log-likelihood; `gumbel` fixes the shape at 0. `None` below 3
    /// maxima, or when they are all equal.
    pub fn fit(maxima: &[f64], gumbel: bool) -> Option<(Gev, f64)> {
        let n = maxima.len() as f64;
        let mean = maxima.iter().sum::<f64>() / n;
        let spread = (maxima.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
        if maxima.len() < 3 || spread <= 0.0 {
            return None;
        }
        let gev = |[location, log_scale, shape]: [f64; 3]| Gev {
            location: mean + spread * location,
            scale: spread * log_scale.exp(),
            shape: if gumbel { 0.0 } else { shape },
        };
        let best = climb([-0.45, -0.25, 0.05], |at| gev(at).log_likelihood(maxima));
        Some((gev(best), gev(best).log_likelihood(maxima)))
    }
}

/// Maximum of `f` near `start`: the simplex of Nelder and Mead (1965) with their coefficients.
fn climb(start: [f64; 3], f: impl Fn([f64; 3]) -> f64) -> [f64; 3] {
    let along = |from: [f64; 3], to: [f64; 3], share: f64| -> [f64; 3] {
        std::array::from_fn(|i| from[i] + share * (to[i] - from[i]))
    };
    let corner = |i: usize| {
        let mut corner = start;
        if let Some(value) = i.checked_sub(1).and_then(|i| corner.get_mut(i)) {
            *value += 0.2;
        }
        (f(corner), corner)
    };
    let mut simplex: [_; 4] = std::array::from_fn(corner);
    for _ in 0..2000 {
        simplex.sort_by(|a, b| b.0.total_cmp(&a.0));
        let [best, second, third, worst] = simplex;
        if best.0 - worst.0 < 1e-12 {
            break;
        }
        let center: [f64; 3] = std::array::from_fn(|i| (best.1[i] + second.1[i] + third.1[i]) / 3.0);
        let at = |share: f64| {
            let point = along(center, worst.1, share);
            (f(point), point)
        };
        let reflected = at(-1.0);
        simplex[3] = if reflected.0 > best.0 {
            let expanded = at(-2.0);
            if expanded.0 > reflected.0 { expanded } else { reflected }
        } else if reflected.0 > third.0 {
            reflected
        } else {
            let contracted = at(0.5);
            if contracted.0 > worst.0 {
                contracted
            } else {
                let shrunk = |(_, corner): (f64, [f64; 3])| along(best.1, corner, 0.5);
                simplex = simplex.map(|corner| (f(shrunk(corner)), shrunk(corner)));
                continue;
            }
        };
    }
    simplex[0].1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Annual maximum sea levels at Port Pirie, m, 1923 to 1987 (Coles 2001, table 1.1).
    const PORT_PIRIE: [f64; 65] = [
        4.03, 3.83, 3.65, 3.88, 4.01, 4.08, 4.18, 3.80, 4.36, 3.96, 3.98, 4.69, 3.85, 3.96, 3.85, 3.93, 3.75, 3.63,
        3.57, 4.25, 3.97, 4.05, 4.24, 4.22, 3.73, 4.37, 4.06, 3.71, 3.96, 4.06, 4.55, 3.79, 3.89, 4.11, 3.85, 3.86,
        3.86, 4.21, 4.01, 4.11, 4.24, 3.96, 4.21, 3.74, 3.85, 3.88, 3.66, 4.11, 3.71, 4.18, 3.90, 3.78, 3.91, 3.72,
        4.00, 3.66, 3.62, 4.33, 4.55, 3.75, 4.08, 3.90, 3.88, 3.94, 4.33,
    ];

    fn close(got: f64, want: f64, tolerance: f64) {
        assert!((got - want).abs() < tolerance, "{got} is not {want}");
    }

    #[test]
    fn port_pirie_has_its_published_fit() {
        let (gev, log_likelihood) = Gev::fit(&PORT_PIRIE, false).unwrap();
        close(gev.location, 3.874_75, 1e-3);
        close(gev.scale, 0.198_04, 1e-3);
        close(gev.shape, -0.050_11, 1e-3);
        close(log_likelihood, 4.339_06, 1e-3);
        close(gev.once_in(10.0), 4.2962, 1e-3);
        close(gev.once_in(100.0), 4.6884, 1e-3);
        let (gumbel, log_likelihood) = Gev::fit(&PORT_PIRIE, true).unwrap();
        close(gumbel.location, 3.869_44, 1e-3);
        close(gumbel.scale, 0.194_89, 1e-3);
        close(log_likelihood, 4.217_68, 1e-3);
    }

    #[test]
    fn chances_have_their_known_values() {
        for (shape, at_most) in [(0.2, 0.830_328_04), (0.0, 0.873_423_02), (-0.2, 0.925_186_45)] {
            close(Gev { location: 3.0, scale: 1.0, shape }.at_most(5.0), at_most, 1e-8);
        }
        assert_eq!(Gev { location: 0.0, scale: 1.0, shape: -0.5 }.at_most(2.0), 1.0, "beyond its end");
        assert_eq!(Gev { location: 0.0, scale: 1.0, shape: 0.5 }.at_most(-2.0), 0.0, "before its beginning");
        assert_eq!(Gev::fit(&[1.0, 1.0, 1.0], false), None);
    }
}
