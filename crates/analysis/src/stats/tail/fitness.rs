//! Goodness of fit of a generalized Pareto distribution: two tests of its residuals.

/// Largest statistic of Anderson and Darling (1954) of a good fit. The 1 % point with both parameters estimated is 1.07
/// to 1.39 in simulation (60 and 180 excesses, shapes -0.2 to 0.2).
pub const MOST_DISTANCE: f64 = 1.4;

/// p-value of the widest gap below which there are two populations.
const GAP_LEVEL: f64 = 0.01;

/// The statistic of Anderson and Darling for ascending residuals of the standard exponential distribution. `None`
/// without any.
pub fn anderson_darling(residuals: &[f64]) -> Option<f64> {
    let k = residuals.len() as f64;
    let chance = |e: f64| (-(-e).exp_m1()).clamp(1e-15, 1.0 - 1e-15);
    let pairs = residuals.iter().zip(residuals.iter().rev()).zip(1..);
    let sum: f64 = pairs
        .map(|((low, high), i)| {
            let weight = 2.0 * f64::from(i) - 1.0;
            weight * (chance(*low).ln() + (-chance(*high)).ln_1p())
        })
        .sum();
    (!residuals.is_empty()).then_some(-k - sum / k)
}

/// The widest gap among residuals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gap {
    /// Its width as a normalized spacing: `(k - i) (e_(i+1) - e_(i))`, standard exponential for one population
    /// (Sukhatme 1937).
    pub spacing: f64,
    /// Residuals above it.
    pub above: usize,
}

/// The widest gap between ascending residuals, 0 included as the first. The gap below the largest residual is left out,
/// because a single large value is no population. `None` below 2 residuals.
pub fn widest_gap(residuals: &[f64]) -> Option<Gap> {
    let below = std::iter::once(&0.0).chain(residuals);
    let gaps = below.zip(residuals).zip((1..=residuals.len()).rev());
    let gaps = gaps.map(|((low, high), above)| Gap { spacing: above as f64 * (high - low), above });
    gaps.filter(|gap| gap.above > 1).reduce(|a, b| if b.spacing > a.spacing { b } else { a })
}

/// The 99 % quantile of the widest of `k` gaps: `-ln(1 - 0.99^(1 / k))`.
pub fn widest_by_chance(k: usize) -> f64 {
    -(-((-GAP_LEVEL).ln_1p() / k as f64).exp()).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_gaps_has_its_known_values() {
        for (k, limit) in [(30, 8.0015), (60, 8.6946), (180, 9.7931), (500, 10.8148)] {
            assert!((widest_by_chance(k) - limit).abs() < 1e-4, "{k}: {}", widest_by_chance(k));
        }
    }

    #[test]
    fn ideal_residuals_fit_and_shifted_ones_do_not() {
        let ideal: Vec<f64> = (1..=60).map(|i| -(1.0 - (f64::from(i) - 0.5) / 60.0f64).ln()).collect();
        assert!(anderson_darling(&ideal).unwrap() < 0.1);
        let shifted: Vec<f64> = ideal.iter().map(|e| e + 0.5).collect();
        assert!(anderson_darling(&shifted).unwrap() > MOST_DISTANCE);
        assert_eq!(anderson_darling(&[]), None);
    }

    #[test]
    fn two_populations_have_a_gap_between_them() {
        let mut residuals: Vec<f64> = (0..50).map(|i| f64::from(i) / 50.0).collect();
        residuals.extend((0..10).map(|i| 3.0 + f64::from(i) / 50.0));
        let gap = widest_gap(&residuals).unwrap();
        assert!(gap.above == 10 && gap.spacing > widest_by_chance(60), "{gap:?}");
        let single = [0.1, 0.2, 0.3, 9.0];
        assert!(widest_gap(&single).unwrap().spacing < 1.0, "one outlier is no population");
        assert_eq!(widest_gap(&[1.0]), None);
    }
}
