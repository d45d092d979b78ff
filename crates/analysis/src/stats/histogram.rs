//! Sums of histograms, and their moments.

use punctual_model::Histogram;

/// The sum of histograms.
pub(crate) fn merged<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Histogram {
    histograms.fold(Histogram::default(), |mut all, histogram| {
        all.merge(histogram);
        all
    })
}

/// The sample standard deviation, in integers as long as the squares fit: the difference of two large floats would be
/// noise.
pub(crate) fn standard_deviation(histogram: &Histogram) -> Option<f64> {
    let n = u128::from(histogram.n);
    if n < 2 {
        return None;
    }
    let squares = histogram.sum_of_squares_ns2;
    let exact = squares.checked_mul(n).zip(histogram.sum_ns.unsigned_abs().checked_pow(2));
    let above_n_n = exact.and_then(|(squares, square)| squares.checked_sub(square)).map_or_else(
        || (squares as f64 * n as f64 - (histogram.sum_ns as f64).powi(2)).max(0.0),
        |difference| difference as f64,
    );
    Some((above_n_n / n as f64 / (n - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_squares_do_not_break_the_deviation() {
        let mut histogram = Histogram::default();
        assert_eq!(standard_deviation(&histogram), None);
        histogram.record(i64::MAX);
        assert_eq!(standard_deviation(&histogram), None);
        histogram.record(i64::MAX);
        assert_eq!(standard_deviation(&histogram), Some(0.0));
        histogram.record_n(1, 1 << 40);
        assert!(standard_deviation(&histogram).unwrap() > 0.0, "beyond what integers hold");
    }

    #[test]
    fn mean_and_deviation_are_the_certified_ones_of_nist() {
        // NIST StRD, univariate summary statistics. NumAcc1.dat as it is, Michelso.dat in units of 0.01.
        let accuracy = Histogram::of(&[10_000_001, 10_000_003, 10_000_002]);
        assert_eq!((accuracy.mean_ns(), standard_deviation(&accuracy)), (Some(10_000_002), Some(1.0)));
        let light = Histogram::of(&[
            29985, 29974, 29990, 30007, 29993, 29985, 29995, 29998, 29998, 29988, 30000, 29998, 29993, 29965, 29976,
            29981, 30000, 30000, 29996, 29996, 29996, 29994, 29996, 29994, 29988, 29980, 29985, 29988, 29990, 29984,
            29983, 29979, 29981, 29988, 29988, 29983, 29980, 29979, 29976, 29980, 29988, 29988, 29988, 29986, 29972,
            29972, 29962, 29986, 29997, 29995, 29988, 29991, 29985, 29987, 29984, 29984, 29985, 29984, 29984, 29984,
            29989, 29981, 29981, 29982, 29980, 29977, 29976, 29974, 29975, 29976, 29991, 29992, 29989, 29986, 29988,
            29972, 29984, 29985, 29985, 29978, 29989, 29984, 29978, 29981, 29976, 29981, 29979, 29981, 29982, 29985,
            29987, 29987, 29981, 29974, 29981, 29994, 29995, 29980, 29981, 29987,
        ]);
        let mean = light.sum_ns as f64 / light.n as f64 / 100.0;
        assert!((mean - 299.852_4).abs() < 1e-12, "{mean}");
        let deviation = standard_deviation(&light).unwrap() / 100.0;
        assert!((deviation - 0.079_010_547_819_051_8).abs() < 1e-15, "{deviation}");
    }
}
