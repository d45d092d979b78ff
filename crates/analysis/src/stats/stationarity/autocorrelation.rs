//! Autocorrelation of neighbors in time, and the test of Ljung and Box on ranks.

use crate::stats::ranks::midranks;
use crate::stats::special::{chi_squared_above, normal_quantile};

/// The autocorrelations `r_1` to `r_lags`: the sum of `(x_i - mean)(x_(i+k) - mean)` over that of `(x_i - mean)^2`.
///
/// `None` when nothing varies or there are not more values than lags.
pub fn autocorrelations(values: &[f64], lags: usize) -> Option<Vec<f64>> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let centered: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let total: f64 = centered.iter().map(|d| d * d).sum();
    if values.len() <= lags || total <= 0.0 {
        return None;
    }
    let at = |lag: usize| centered.iter().zip(centered.iter().skip(lag)).map(|(a, b)| a * b).sum::<f64>() / total;
    Some((1..=lags).map(at).collect())
}

/// The statistic of Ljung and Box (1978), `N (N + 2) sum r_k^2 / (N - k)`: chi-squared with `lags` degrees of freedom
/// when the values are independent. `None` as for [`autocorrelations`].
pub fn ljung_box(values: &[f64], lags: usize) -> Option<f64> {
    let n = values.len() as f64;
    let terms = autocorrelations(values, lags)?;
    let sum: f64 = terms.iter().zip(1..).map(|(r, k)| r * r / (n - f64::from(k))).sum();
    Some(n * (n + 2.0) * sum)
}

/// The chance of so much autocorrelation among independent values, by [`ljung_box`] on the normal scores of their ranks
/// (10 lags), so that one huge value cannot decide it. `None` as for [`autocorrelations`].
pub fn rank_ljung_box(values: &[f64]) -> Option<f64> {
    const LAGS: usize = 10;
    let statistic = ljung_box(&normal_scores(values), LAGS)?;
    Some(chi_squared_above(LAGS as f64, statistic))
}

/// Normal scores of the ranks: the normal quantile of `(rank - 0.5) / N`.
pub(crate) fn normal_scores(values: &[f64]) -> Vec<f64> {
    let n = values.len() as f64;
    midranks(values).into_iter().map(|rank| normal_quantile((rank - 0.5) / n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::stationarity::tests::NILE;

    /// NIST StRD, Michelso.dat: 100 measurements of the speed of light, Mm/s.
    const MICHELSON: [f64; 100] = [
        299.85, 299.74, 299.90, 300.07, 299.93, 299.85, 299.95, 299.98, 299.98, 299.88, 300.00, 299.98, 299.93, 299.65,
        299.76, 299.81, 300.00, 300.00, 299.96, 299.96, 299.96, 299.94, 299.96, 299.94, 299.88, 299.80, 299.85, 299.88,
        299.90, 299.84, 299.83, 299.79, 299.81, 299.88, 299.88, 299.83, 299.80, 299.79, 299.76, 299.80, 299.88, 299.88,
        299.88, 299.86, 299.72, 299.72, 299.62, 299.86, 299.97, 299.95, 299.88, 299.91, 299.85, 299.87, 299.84, 299.84,
        299.85, 299.84, 299.84, 299.84, 299.89, 299.81, 299.81, 299.82, 299.80, 299.77, 299.76, 299.74, 299.75, 299.76,
        299.91, 299.92, 299.89, 299.86, 299.88, 299.72, 299.84, 299.85, 299.85, 299.78, 299.89, 299.84, 299.78, 299.81,
        299.76, 299.81, 299.79, 299.81, 299.82, 299.85, 299.87, 299.87, 299.81, 299.74, 299.81, 299.94, 299.95, 299.80,
        299.81, 299.87,
    ];

    #[test]
    fn autocorrelations_are_the_certified_ones_of_nist() {
        // NIST StRD, univariate summary statistics: Michelso.dat, NumAcc1.dat, NumAcc4.dat.
        let first = |values: &[f64]| autocorrelations(values, 1).unwrap()[0];
        assert!((first(&MICHELSON) - 0.535_199_668_621_283).abs() < 1e-11, "{}", first(&MICHELSON));
        assert!((first(&[10_000_001.0, 10_000_003.0, 10_000_002.0]) + 0.5).abs() < 1e-14);
        let mut accuracy = vec![10_000_000.2];
        accuracy.extend((0..500).flat_map(|_| [10_000_000.1, 10_000_000.3]));
        assert!((first(&accuracy) + 0.999).abs() < 1e-7, "{}", first(&accuracy));
    }

    #[test]
    fn ljung_box_has_its_known_value() {
        for (lags, statistic) in [(10, 88.1269), (1, 25.5938)] {
            let got = ljung_box(&NILE, lags).unwrap();
            assert!((got - statistic).abs() < 1e-4, "{lags}: {got}");
        }
    }

    #[test]
    fn what_does_not_vary_is_refused() {
        assert_eq!(autocorrelations(&[3.0; 20], 10), None);
        assert_eq!(rank_ljung_box(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]), None, "as many as lags");
        assert_eq!(autocorrelations(&[], 1), None);
    }

    #[test]
    fn ranks_do_not_care_how_large_a_value_is() {
        let mut values = NILE.to_vec();
        let before = rank_ljung_box(&values);
        let largest = values.iter().copied().fold(0.0, f64::max);
        values.iter_mut().filter(|value| **value == largest).for_each(|value| *value = 1e12);
        assert_eq!(rank_ljung_box(&values), before);
    }
}
