//! Recorded measurements with a known effect.

use punctual_model::{Entry, Histogram};

/// The measurement with every latency multiplied by `factor`.
pub(super) fn scaled(entry: &Entry, factor: f64) -> Entry {
    #[expect(clippy::cast_possible_truncation, reason = "latencies are below 10^15 ns")]
    let scale = |ns: f64| (ns * factor).round() as i64;
    let mut entry = entry.clone();
    for thread in &mut entry.record.threads {
        let mut histogram = Histogram::default();
        for bucket in thread.histogram.buckets() {
            histogram.record_n(scale(bucket.upper_ns as f64), bucket.count);
        }
        thread.histogram = histogram;
        thread.worst.iter_mut().for_each(|worst| worst.latency_ns = scale(worst.latency_ns as f64));
    }
    entry
}
