//! Bins of a drawn histogram, on a logarithmic scale.

use punctual_analysis::Curves;
use punctual_model::Histogram;

/// Bins of a drawn histogram in each octave. The record has 128; 8 show every mode, and a late single sample is two
/// pixels wide.
const STEPS: u64 = 8;

/// Returns the bins of a drawn histogram that hold samples: from, to (excluded), count. Edges are those of the record's
/// buckets, so no bucket is divided.
pub(crate) fn bins(histogram: &Histogram) -> Vec<(u64, u64, u64)> {
    let mut bins: Vec<(u64, u64, u64)> = Vec::new();
    for bucket in histogram.buckets() {
        let (from, to) = bin(bucket.lower_ns);
        match bins.last_mut().filter(|last| last.0 == from) {
            Some(last) => last.2 += bucket.count,
            None => bins.push((from, to, bucket.count)),
        }
    }
    bins
}

/// Returns the number of samples in the largest bin.
pub(crate) fn highest_bin(histogram: &Histogram) -> Option<u64> {
    bins(histogram).into_iter().map(|(.., n)| n).max()
}

/// Returns the bin of a latency.
fn bin(ns: u64) -> (u64, u64) {
    let octave = 1_u64 << (u64::BITS - 1 - ns.max(1).leading_zeros());
    let width = (octave / STEPS).max(1);
    let from = ns / width * width;
    (from, from.saturating_add(width))
}

/// Names the samples that a curve does not show: `3 beyond the histogram of its tool`; `None` if it shows all.
pub(crate) fn not_shown(curves: &Curves) -> Option<String> {
    let mut words =
        Vec::from_iter((curves.beyond > 0).then(|| format!("{} beyond the histogram of its tool", curves.beyond)));
    words.extend(curves.is_cut.then(|| "later ones not counted by its tool".to_owned()));
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_the_edges_of_buckets() {
        for (ns, bin_of) in
            [(0, (0, 1)), (1, (1, 2)), (15, (15, 16)), (16, (16, 18)), (31, (30, 32)), (1_000, (960, 1_024))]
        {
            assert_eq!(bin(ns), bin_of, "{ns}");
        }
        let histogram = Histogram::of(&[-5, 0, 1_000, 1_001, 1_030]);
        assert_eq!(bins(&histogram), [(0, 1, 2), (960, 1_024, 2), (1_024, 1_152, 1)]);
        let top = bins(&Histogram::of(&[i64::MAX]));
        assert_eq!((top.len(), top[0].2), (1, 1));
    }
}
