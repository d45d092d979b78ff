//! One column of a histogram under construction.

use super::ParseError;
use super::fields::ns;
use punctual_model::Histogram;
use std::collections::BTreeMap;

/// Limit of samples: 146 years of one each nanosecond; sums stay within their types.
pub(super) const MAX_SAMPLES: u64 = 1 << 62;

/// Counts by value, in the tool's unit.
#[derive(Debug, Default)]
pub(super) struct Column {
    counts: BTreeMap<u64, u64>,
    /// Total number of samples.
    pub(super) n: u64,
}

impl Column {
    /// Adds `n` samples of `value` units.
    pub(super) fn add(&mut self, value: u64, n: u64, line: usize) -> Result<(), ParseError> {
        if n > 0 {
            let too_many =
                || ParseError::at(line, format!("invalid count {n}: more samples than a measurement can have"));
            self.n = self.n.checked_add(n).filter(|all| *all <= MAX_SAMPLES).ok_or_else(too_many)?;
            *self.counts.entry(value).or_default() += n;
        }
        Ok(())
    }

    /// Removes the largest value: some tools count all larger values in their last cell.
    pub(super) fn take_last(&mut self) -> Option<(u64, u64)> {
        let (value, n) = self.counts.pop_last()?;
        self.n -= n;
        Some((value, n))
    }

    /// The value after the largest one: samples beyond the histogram are at least this.
    pub(super) fn end(&self) -> u64 {
        self.counts.last_key_value().map_or(0, |(last, _)| last.saturating_add(1))
    }

    /// Converts the column to a histogram; values are in units of `unit_ns`.
    pub(super) fn histogram(&self, unit_ns: u64) -> Result<Histogram, ParseError> {
        self.histogram_from(unit_ns, None)
    }

    /// Like [`Column::histogram`] with a lower bound `least_ns` from the tool's minimum: its first row may begin far
    /// below that.
    pub(super) fn histogram_from(&self, unit_ns: u64, least_ns: Option<i64>) -> Result<Histogram, ParseError> {
        let mut histogram = Histogram::default();
        let mut least_ns = least_ns;
        for (value, n) in &self.counts {
            let value = i64::try_from(*value).map_err(|_| ParseError::of_file(format!("invalid latency {value}")))?;
            let value_ns = ns(value, unit_ns).map_err(ParseError::of_file)?;
            histogram.record_n(least_ns.take().map_or(value_ns, |least_ns| value_ns.max(least_ns)), *n);
        }
        Ok(histogram)
    }

    /// Counts by ascending value, without zeros.
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> {
        self.counts.values().copied()
    }

    /// Greatest common divisor of all values relative to the first: the width of a row.
    pub(super) fn step(&self) -> u64 {
        let first = self.counts.keys().next().copied().unwrap_or(0);
        self.counts.keys().fold(0, |step, value| greatest_common_divisor(step, value - first))
    }
}

/// Euclid's algorithm; the result for (a, 0) is a.
pub(super) fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
