//! One column of a histogram while it is read.

use super::Flaw;
use super::fields::ns;
use model::Histogram;
use std::collections::BTreeMap;

/// More samples than this nobody has taken: 146 years of one each nanosecond, and sums stay within their types.
const MOST: u64 = 1 << 62;

/// Values in the tool's unit, and how often each came.
#[derive(Debug, Default)]
pub(super) struct Column {
    counts: BTreeMap<u64, u64>,
    /// Samples in all.
    pub(super) n: u64,
}

impl Column {
    /// Counts `n` samples of `value` units.
    pub(super) fn add(&mut self, value: u64, n: u64, line: usize) -> Result<(), Flaw> {
        if n > 0 {
            let too_many = || Flaw::at(line, format!("{n} samples are more than anybody can take"));
            self.n = self.n.checked_add(n).filter(|all| *all <= MOST).ok_or_else(too_many)?;
            *self.counts.entry(value).or_default() += n;
        }
        Ok(())
    }

    /// Takes the largest value out: what tools that fold everything above into their last cell count there.
    pub(super) fn take_last(&mut self) -> Option<(u64, u64)> {
        let (value, n) = self.counts.pop_last()?;
        self.n -= n;
        Some((value, n))
    }

    /// The first value that has no sample, nor any above it: what is beyond the histogram is at least this.
    pub(super) fn end(&self) -> u64 {
        self.counts.last_key_value().map_or(0, |(last, _)| last.saturating_add(1))
    }

    /// The samples with values of `unit_ns`.
    pub(super) fn histogram(&self, unit_ns: u64) -> Result<Histogram, Flaw> {
        self.histogram_from(unit_ns, None)
    }

    /// The same, none of them smaller than `least_ns`, which the tool says: its first row may begin far below that.
    pub(super) fn histogram_from(&self, unit_ns: u64, least_ns: Option<i64>) -> Result<Histogram, Flaw> {
        let mut histogram = Histogram::default();
        let mut least_ns = least_ns;
        for (value, n) in &self.counts {
            let value = i64::try_from(*value).map_err(|_| Flaw::of_file(format!("{value} is no latency")))?;
            let value_ns = ns(value, unit_ns).map_err(Flaw::of_file)?;
            histogram.record_n(least_ns.take().map_or(value_ns, |least_ns| value_ns.max(least_ns)), *n);
        }
        Ok(histogram)
    }

    /// The distance that all values are multiples of, counted from the first: what one row stands for.
    pub(super) fn step(&self) -> u64 {
        let first = self.counts.keys().next().copied().unwrap_or(0);
        self.counts.keys().fold(0, |step, value| greatest_common_divisor(step, value - first))
    }
}

/// By Euclid; 0 divides by nothing.
pub(super) fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
