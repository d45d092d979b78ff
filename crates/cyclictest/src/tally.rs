//! Accumulated statistics of one thread's samples.

use punctual_model::Nanos;

/// Count, extremes, sum and histogram of the values of one thread, in the unit of the output.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    unit_ns: i64,
    rows: u64,
    /// Number of wake-ups.
    pub(super) cycles: u64,
    pub(super) min: Option<i64>,
    /// The last value.
    pub(super) last: Option<i64>,
    pub(super) max: Option<i64>,
    sum: i128,
    /// Wake-ups before their due time: possible only if the clock was set. Row 0 of the histogram counts them.
    pub(super) early: u64,
    /// Count of each row; trailing zero rows may be absent.
    pub(super) counts: Vec<u64>,
    /// Values beyond the last row.
    pub(super) overflows: u64,
    /// Numbers of these wake-ups: the first `rows` of them, as in the original.
    pub(super) overflow_cycles: Vec<u64>,
}

impl Tally {
    /// Creates a tally for values in ns or us, with a histogram of `rows` rows (0: none).
    pub(super) fn new(nanoseconds: bool, rows: u64) -> Tally {
        Tally { unit_ns: if nanoseconds { 1 } else { 1000 }, rows, ..Tally::default() }
    }

    /// Converts a latency to whole units, rounded down.
    pub(super) fn value(&self, latency: Nanos) -> i64 {
        latency.0.div_euclid(self.unit_ns)
    }

    /// Adds a latency, and returns its value.
    pub(super) fn take(&mut self, latency: Nanos) -> i64 {
        let value = self.value(latency);
        self.min = Some(self.min.map_or(value, |min| min.min(value)));
        self.max = Some(self.max.map_or(value, |max| max.max(value)));
        self.last = Some(value);
        self.sum += i128::from(value);
        self.early += u64::from(latency.0 < 0);
        if self.rows > 0 {
            self.count(u64::try_from(value).unwrap_or(0));
        }
        self.cycles += 1;
        value
    }

    fn count(&mut self, row: u64) {
        if row >= self.rows {
            self.overflows += 1;
            if (self.overflow_cycles.len() as u64) < self.rows {
                self.overflow_cycles.push(self.cycles);
            }
            return;
        }
        let index = usize::try_from(row).unwrap_or(usize::MAX);
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(index) {
            *count += 1;
        }
    }

    /// Count of this row.
    pub(super) fn in_row(&self, row: u64) -> u64 {
        usize::try_from(row).ok().and_then(|row| self.counts.get(row)).copied().unwrap_or(0)
    }

    /// The mean truncated to an integer, as in the text output. `None` without values.
    pub(super) fn mean_cut(&self) -> Option<i64> {
        i64::try_from(self.sum.checked_div(i128::from(self.cycles))?).ok()
    }

    /// The mean. `None` without values.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.cycles > 0).then(|| self.sum as f64 / self.cycles as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_whole_units_rounded_down_and_rows_end_where_overflows_begin() {
        let mut tally = Tally::new(false, 3);
        let values = [0, 999, 1000, 2999, 3000, -1, 5_000_000, 7000].map(|ns| tally.take(Nanos(ns)));
        assert_eq!(values, [0, 0, 1, 2, 3, -1, 5000, 7]);
        assert_eq!((tally.min, tally.last, tally.max), (Some(-1), Some(7), Some(5000)));
        assert_eq!((tally.counts.as_slice(), tally.overflows, tally.early), (&[3, 1, 1][..], 3, 1));
        assert_eq!(tally.overflow_cycles, [4, 6, 7]);
        assert_eq!((tally.mean_cut(), tally.mean()), (Some(626), Some(626.5)));
        tally.take(Nanos(9000));
        assert_eq!((tally.overflows, tally.overflow_cycles.len()), (4, 3), "as many positions as rows");
    }

    #[test]
    fn without_a_value_there_is_no_extreme_and_no_mean() {
        let tally = Tally::new(true, 0);
        assert_eq!((tally.min, tally.max, tally.mean_cut(), tally.mean()), (None, None, None, None));
        assert_eq!(tally.in_row(5), 0);
    }
}
