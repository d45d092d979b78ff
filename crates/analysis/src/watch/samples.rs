//! Samples of a watched thread in the tables of a measured thread, in memory that does not grow with their number.

use punctual_model::{Episode, Episodes, Histogram, Mark, Period, Second, Slice, Span, WatchSample, Worst};

/// Slices at most; above, pairs are joined. And the samples of the first slices.
const MOST_SLICES: usize = 128;
const FIRST_SAMPLES: u64 = 20;
/// Largest samples that are kept one by one, and at most one of these many.
const MOST_WORST: usize = 1000;
const WORST_DIVISOR: u64 = 20;
const LEAST_WORST: u64 = 100;

/// One sample of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// Its cycle: activations and skipped due times before it.
    pub(super) cycle: u64,
    /// Its release, ns after the start of the cell.
    pub(super) at_ns: u64,
    /// The time that is measured, ns.
    pub(super) length_ns: u64,
    /// Due times that passed before the next activation.
    pub(super) skipped: u64,
    /// Whether it exceeds the deadline.
    pub(super) is_late: bool,
}

/// Tables of a thread, growing.
#[derive(Debug, Default, Clone)]
pub(super) struct Samples {
    pub(super) histogram: Histogram,
    pub(super) slices: Vec<Slice>,
    slice_samples: u64,
    pub(super) seconds: Vec<Second>,
    worst: Vec<Worst>,
    episodes: Episodes,
    open: Option<Episode>,
    pub(super) missed: u64,
}

impl Samples {
    pub(super) fn take(&mut self, sample: Sample) {
        let latency_ns = i64::try_from(sample.length_ns).unwrap_or(i64::MAX);
        self.histogram.record(latency_ns);
        self.missed += sample.skipped;
        self.take_slice(sample, latency_ns);
        self.take_second(sample, latency_ns);
        self.worst.push(Worst { latency_ns, cycle: sample.cycle });
        if self.worst.len() > 2 * MOST_WORST {
            self.keep_worst(MOST_WORST);
        }
        if sample.is_late {
            self.take_late(sample, latency_ns);
        }
    }

    fn take_slice(&mut self, sample: Sample, latency_ns: i64) {
        let full = self.slice_samples.max(FIRST_SAMPLES);
        self.slice_samples = full;
        if self.slices.last().is_none_or(|slice| slice.histogram.n >= full) {
            if self.slices.len() >= MOST_SLICES {
                self.join_pairs();
            }
            let is_new = self.slices.last().is_none_or(|slice| slice.histogram.n >= self.slice_samples);
            if is_new {
                self.slices.push(Slice { first_cycle: sample.cycle, cycles: 0, histogram: Histogram::default() });
            }
        }
        if let Some(slice) = self.slices.last_mut() {
            slice.cycles = sample.cycle + 1 + sample.skipped - slice.first_cycle;
            slice.histogram.record(latency_ns);
        }
    }

    fn join_pairs(&mut self) {
        self.slice_samples *= 2;
        let all = std::mem::take(&mut self.slices);
        for slice in all {
            match self.slices.last_mut().filter(|last| last.histogram.n < self.slice_samples) {
                Some(last) => {
                    last.cycles += slice.cycles;
                    last.histogram.merge(&slice.histogram);
                }
                None => self.slices.push(slice),
            }
        }
    }

    fn take_second(&mut self, sample: Sample, latency_ns: i64) {
        let second = sample.at_ns / Span::SECOND.ns();
        if self.seconds.last().is_none_or(|row| row.second != second) {
            self.seconds.push(Second { second, ..Second::default() });
        }
        let Some(row) = self.seconds.last_mut() else { return };
        row.n += 1;
        row.sum_ns = row.sum_ns.saturating_add(latency_ns);
        row.over_deadline += u64::from(sample.is_late);
        row.missed += sample.skipped;
        if row.max_ns.is_none_or(|max| latency_ns > max) {
            (row.max_ns, row.max_cycle) = (Some(latency_ns), Some(sample.cycle));
        }
    }

    /// Counts a late sample that is still growing: an episode, but none of the complete samples.
    pub(super) fn take_open(&mut self, sample: Sample) {
        if sample.is_late {
            self.take_late(sample, i64::try_from(sample.length_ns).unwrap_or(i64::MAX));
        }
    }

    fn take_late(&mut self, sample: Sample, latency_ns: i64) {
        let ended_ns = sample.at_ns.saturating_add(sample.length_ns);
        let Sample { cycle, .. } = sample;
        let new = Episode { first_cycle: cycle, last_cycle: cycle, count: 1, worst_ns: latency_ns, ended_ns };
        self.episodes.join(&mut self.open, sample.at_ns, new);
    }

    /// Sets the counts of late samples to zero, for a thread without a deadline.
    pub(super) fn clear_late(&mut self) {
        (self.episodes, self.open) = (Episodes::default(), None);
        self.seconds.iter_mut().for_each(|second| second.over_deadline = 0);
    }

    fn keep_worst(&mut self, most: usize) {
        self.worst.sort_unstable_by(|a, b| b.cmp(a));
        self.worst.truncate(most);
    }

    /// The largest samples, largest first, and the episodes of late ones.
    pub(super) fn finish(&mut self) -> (Vec<Worst>, Episodes) {
        self.episodes.close(self.open.take());
        let tail = (self.histogram.n / WORST_DIVISOR).max(LEAST_WORST);
        self.keep_worst(usize::try_from(tail).unwrap_or(MOST_WORST).min(MOST_WORST));
        (std::mem::take(&mut self.worst), std::mem::take(&mut self.episodes))
    }
}

/// Settings of all watched threads.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The period, if given.
    pub period: Option<Period>,
    /// The deadline, if given.
    pub deadline: Option<Span>,
    /// Name of the call that they wait in, if given.
    pub wait: Option<String>,
    /// The time that is the sample.
    pub sample: WatchSample,
    /// Start of the measured time, `CLOCK_MONOTONIC`, ns: releases before it do not count.
    pub since_ns: u64,
    /// Its end, ns: releases from then on do not count.
    pub until_ns: u64,
    /// Marks that cut activations into phases.
    pub marks: Vec<Mark>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However many samples, the tables are bounded and hold every one of them.
        #[test]
        fn tables_are_bounded_and_complete(lengths in prop::collection::vec(1u64..10_000_000, 1..6_000)) {
            let mut samples = Samples::default();
            let mut cycle = 0;
            for (index, length_ns) in lengths.iter().enumerate() {
                let skipped = length_ns / 3_000_000;
                let at_ns = cycle * 1_000_000;
                samples.take(Sample { cycle, at_ns, length_ns: *length_ns, skipped, is_late: index % 9 == 0 });
                cycle += 1 + skipped;
            }
            let n = lengths.len() as u64;
            prop_assert!(samples.slices.len() <= MOST_SLICES);
            prop_assert_eq!(samples.slices.iter().map(|slice| slice.histogram.n).sum::<u64>(), n);
            prop_assert_eq!(samples.slices.iter().map(|slice| slice.cycles).sum::<u64>(), cycle);
            prop_assert!(samples.slices.windows(2).all(|two| two[0].first_cycle + two[0].cycles == two[1].first_cycle));
            prop_assert_eq!(samples.seconds.iter().map(|row| row.n).sum::<u64>(), n);
            prop_assert_eq!(n + samples.missed, cycle);
            let (worst, episodes) = samples.finish();
            let largest = lengths.iter().max().map(|ns| ns.cast_signed());
            prop_assert_eq!(worst.first().map(|worst| worst.latency_ns), largest);
            let late: u64 = episodes.first.iter().map(|episode| episode.count).sum();
            prop_assert_eq!(late, lengths.len().div_ceil(9) as u64);
        }
    }
}
