//! The extremal index: clustering of large values.

/// The extremal index by the intervals between exceedances (Ferro & Segers 2003): 1 without clustering; its inverse is
/// the mean cluster size. `times` are the positions of the exceedances, ascending.
///
/// `None` below 2 exceedances, or when all of them are consecutive.
pub fn extremal_index(times: &[u64]) -> Option<f64> {
    let gaps = || times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64);
    let n = gaps().count() as f64;
    let longest = gaps().fold(0.0, f64::max);
    // For short gaps the first formula has less bias than the second, which leaves out gaps of 1 and 2.
    let (sum, product): (f64, f64) = if longest <= 2.0 {
        (gaps().sum(), gaps().map(|t| t * t).sum())
    } else {
        (gaps().map(|t| t - 1.0).sum(), gaps().map(|t| (t - 1.0) * (t - 2.0)).sum())
    };
    (n > 0.0 && product > 0.0).then(|| (2.0 * sum * sum / (n * product)).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_has_its_known_value() {
        let index = extremal_index(&[3, 4, 5, 20, 22, 40, 41, 55]).unwrap();
        assert!((index - 0.948_48).abs() < 1e-5, "{index}");
    }

    #[test]
    fn clusters_lower_it() {
        assert_eq!((extremal_index(&[]), extremal_index(&[7])), (None, None));
        let single: Vec<u64> = (0..50).map(|i| i * i * 7 % 1000 + 1000 * i).collect();
        let bursts: Vec<u64> = (0..50).flat_map(|i| (0..10).map(move |j| i * 1000 + j)).collect();
        assert!(extremal_index(&single).unwrap() > 0.8);
        assert!(extremal_index(&bursts).unwrap() < 0.2);
    }
}
