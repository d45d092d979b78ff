//! A thread whose samples are all known, in their order.

use super::ParseError;
use punctual_model::{Histogram, ImportedThread, Slice};

/// Number of slices that samples are divided into, as in our own records.
pub(super) const SLICES: usize = 64;

/// The thread `number` with these `n` latencies, ns.
pub(super) fn thread(
    number: u32,
    n: usize,
    mut values: impl Iterator<Item = Result<i64, ParseError>>,
) -> Result<ImportedThread, ParseError> {
    let length = n.div_ceil(SLICES).max(1);
    let mut slices = Vec::new();
    for first in (0..n).step_by(length) {
        let mut histogram = Histogram::default();
        for value in values.by_ref().take(length) {
            histogram.record(value?);
        }
        slices.push(Slice { first_cycle: u64::try_from(first).unwrap_or(u64::MAX), cycles: histogram.n, histogram });
    }
    Ok(of_slices(number, slices))
}

/// The thread `number` whose samples are those of its slices.
pub(super) fn of_slices(number: u32, slices: Vec<Slice>) -> ImportedThread {
    let mut pooled = Histogram::default();
    slices.iter().for_each(|slice| pooled.merge(&slice.histogram));
    ImportedThread {
        number,
        samples: Some(pooled.n),
        min_ns: pooled.min_ns,
        max_ns: pooled.max_ns,
        histogram: Some(pooled),
        slices,
        ..ImportedThread::default()
    }
}
