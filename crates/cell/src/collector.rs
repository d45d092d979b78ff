//! Conversion of the samples of one thread into the tables of its record.

use analysis::{Level, MIN_EXCEEDANCES, quantile};
use model::{
    Bin, Censored, Episode, Episodes, Histogram, Schedule, Second, Slice, Span, Spike, Task, ThreadProgress, Worst,
};
use rt::Sample;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

/// Slices of a cell, and the fewest periods of a slice: a quantile of fewer is meaningless.
const SLICES: u64 = 64;
const MIN_CYCLES: u64 = 20;
/// The number of largest latencies that are kept one by one. At most one in 20, because those below are not tail and
/// would be most of the record of a short cell; 100 in any case.
const MAX_WORST: usize = 1000;
const WORST_DIVISOR: u64 = 20;
const MIN_WORST: u64 = 100;
/// Episodes that are kept one by one.
const MAX_EPISODES: usize = 1000;
/// Misses closer than this, ns, belong to one episode.
const EPISODE_GAP_NS: u64 = Span::SECOND.0;

/// The tables of one thread, growing.
#[derive(Debug)]
pub(super) struct Collector {
    schedule: Schedule,
    /// Whether a late wake-up misses due times ([`Task::misses_when_late`]).
    misses_when_late: bool,
    first: u64,
    end: u64,
    deadline: Span,
    slice_cycles: u64,
    pub(super) histogram: Histogram,
    pub(super) early: u64,
    pub(super) seconds: Vec<Second>,
    pub(super) slices: Vec<Slice>,
    /// Triggers that were never answered, by the length of the wait.
    pub(super) unanswered: Vec<Slice>,
    pub(super) episodes: Episodes,
    /// The last episode, which may still grow.
    open: Option<Episode>,
    worst: BinaryHeap<Reverse<Worst>>,
    /// Missed due times that follow from the samples.
    pub(super) missed: u64,
    /// The latency above which a sample is a spike, ns; `None` while the usual latency is not known.
    spike_above_ns: Option<i64>,
    /// The last spikes, in time order.
    spikes: VecDeque<Spike>,
    /// The last recorded latency, ns.
    pub(super) last_ns: Option<i64>,
    /// The cycle of the last sample, recorded or not.
    pub(super) last_cycle: Option<u64>,
}

impl Collector {
    /// Creates the tables for `cycles` of `schedule`; a wake-up later than `deadline` is a miss.
    pub(super) fn new(schedule: Schedule, task: &Task, cycles: Range<u64>, deadline: Span) -> Self {
        let Range { start: first, end } = cycles;
        Collector {
            schedule,
            misses_when_late: task.misses_when_late(),
            first,
            end,
            deadline,
            slice_cycles: (end - first).div_ceil(SLICES).max(MIN_CYCLES),
            histogram: Histogram::default(),
            early: 0,
            seconds: Vec::new(),
            slices: Vec::new(),
            unanswered: Vec::new(),
            episodes: Episodes::default(),
            open: None,
            worst: BinaryHeap::new(),
            missed: 0,
            spike_above_ns: None,
            spikes: VecDeque::new(),
            last_ns: None,
            last_cycle: None,
        }
    }

    /// Records the next sample; returns its cycle, counted from the first measured one. A sample outside the measured
    /// cycles is ignored.
    pub(super) fn take(&mut self, sample: Sample) -> Option<u64> {
        self.last_cycle = Some(sample.cycle);
        if !(self.first..self.end).contains(&sample.cycle) {
            return None;
        }
        let (cycle, latency_ns) = (sample.cycle - self.first, sample.latency.0);
        let missed = if self.misses_when_late { self.schedule.missed(sample.latency) } else { 0 };
        let missed = missed.min(self.end - sample.cycle - 1);
        let is_late = u64::try_from(latency_ns).is_ok_and(|late| late > self.deadline.ns());
        self.histogram.record(latency_ns);
        self.early += u64::from(latency_ns < 0);
        self.missed += missed;
        self.last_ns = Some(latency_ns);
        self.take_second(cycle, latency_ns, missed, is_late);
        self.take_slice(cycle, latency_ns);
        self.take_worst(Worst { latency_ns, cycle });
        self.take_spike(cycle, latency_ns);
        if is_late {
            self.take_late(cycle, latency_ns);
        }
        Some(cycle)
    }

    /// Records a trigger that was never answered, with the length of the wait as its latency.
    pub(super) fn take_unanswered(&mut self, sample: Sample) {
        self.last_cycle = Some(sample.cycle);
        if !(self.first..self.end).contains(&sample.cycle) {
            return;
        }
        let (cycle, at_least_ns) = (sample.cycle - self.first, sample.latency.0);
        self.missed += 1;
        if let Some(row) = self.second(cycle) {
            row.missed += 1;
        }
        let slice = self.stretch(cycle);
        add_to(&mut self.unanswered, slice, at_least_ns, 1);
        if u64::try_from(at_least_ns).is_ok_and(|late| late > self.deadline.ns()) {
            self.take_late(cycle, at_least_ns);
        }
    }

    /// The number of triggers that were never answered.
    pub(super) fn never_answered(&self) -> u64 {
        self.unanswered.iter().map(|slice| slice.histogram.n).sum()
    }

    /// Records `n` triggers without an answer so far, of which the length of the wait is not known.
    pub(super) fn take_unknown(&mut self, n: u64) {
        if let Some(cycle) = self.end.checked_sub(self.first + 1).filter(|_| n > 0) {
            let slice = self.stretch(cycle);
            add_to(&mut self.unanswered, slice, 0, n);
        }
    }

    /// The row of the second in which `cycle` is due.
    fn second(&mut self, cycle: u64) -> Option<&mut Second> {
        let second = cycle * self.schedule.period.ns() / Span::SECOND.0;
        if self.seconds.last().is_none_or(|row| row.second != second) {
            self.seconds.push(Second { second, ..Second::default() });
        }
        self.seconds.last_mut()
    }

    /// The slice that contains `cycle`: its first cycle and its length.
    fn stretch(&self, cycle: u64) -> (u64, u64) {
        let first_cycle = cycle / self.slice_cycles * self.slice_cycles;
        (first_cycle, self.slice_cycles.min(self.end - self.first - first_cycle))
    }

    fn take_second(&mut self, cycle: u64, latency_ns: i64, missed: u64, is_late: bool) {
        let Some(row) = self.second(cycle) else { return };
        row.n += 1;
        row.sum_ns = row.sum_ns.saturating_add(latency_ns);
        row.over_deadline += u64::from(is_late);
        row.missed += missed;
        if row.max_ns.is_none_or(|max| latency_ns > max) {
            (row.max_ns, row.max_cycle) = (Some(latency_ns), Some(cycle));
        }
    }

    fn take_slice(&mut self, cycle: u64, latency_ns: i64) {
        let slice = self.stretch(cycle);
        add_to(&mut self.slices, slice, latency_ns, 1);
    }

    fn take_worst(&mut self, worst: Worst) {
        if self.worst.len() < MAX_WORST {
            self.worst.push(Reverse(worst));
        } else if let Some(mut least) = self.worst.peek_mut()
            && worst > least.0
        {
            *least = Reverse(worst);
        }
    }

    fn take_spike(&mut self, cycle: u64, latency_ns: i64) {
        let Some(above_ns) = self.spike_above_ns.filter(|above| latency_ns > *above) else { return };
        if self.spikes.len() == Spike::TOLD {
            self.spikes.pop_front();
        }
        let at = Span(cycle.saturating_mul(self.schedule.period.ns()));
        self.spikes.push_back(Spike { at, latency_ns, above_ns });
    }

    /// The latency above which a sample is a spike, ns; `None` while the usual latency is not known.
    pub(super) fn spike_above_ns(&self) -> Option<i64> {
        self.spike_above_ns
    }

    /// Sets the spike threshold for the samples from here on, from the p99 so far.
    pub(super) fn watch_for_spikes(&mut self) {
        self.spike_above_ns = self.p99_ns().map(|p99| p99.saturating_mul(Spike::FACTOR));
    }

    /// The 99 % quantile, ns; `None` while too few samples lie above it to know it.
    fn p99_ns(&self) -> Option<i64> {
        let above = (1.0 - Level::P99.p()) * self.histogram.n as f64;
        quantile(&self.histogram, Level::P99.p()).filter(|_| above >= MIN_EXCEEDANCES * (1.0 - 1e-9))
    }

    fn take_late(&mut self, cycle: u64, latency_ns: i64) {
        let due = cycle * self.schedule.period.ns();
        let woke = due.saturating_add_signed(latency_ns);
        let new = Episode { first_cycle: cycle, last_cycle: cycle, count: 1, worst_ns: latency_ns, ended_ns: woke };
        match &mut self.open {
            Some(episode) if due < episode.ended_ns.saturating_add(EPISODE_GAP_NS) => {
                episode.last_cycle = cycle;
                episode.count += 1;
                episode.worst_ns = episode.worst_ns.max(latency_ns);
                episode.ended_ns = woke;
            }
            open => {
                let ended = open.replace(new);
                self.close(ended);
            }
        }
    }

    fn close(&mut self, ended: Option<Episode>) {
        let Some(episode) = ended else { return };
        self.episodes.count += 1;
        if self.episodes.first.len() < MAX_EPISODES {
            self.episodes.first.push(episode);
        }
    }

    /// The end: one past the last cycle.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Progress of the thread on `cpu`.
    pub(super) fn progress(&self, cpu: u32) -> ThreadProgress {
        ThreadProgress {
            cpu,
            n: self.histogram.n,
            min_ns: self.histogram.min_ns,
            last_ns: self.last_ns,
            mean_ns: self.histogram.mean_ns(),
            p99_ns: self.p99_ns(),
            max_ns: self.histogram.max_ns,
            missed: self.missed,
            bins: Bin::of(&self.histogram),
            spikes: self.spikes.iter().copied().collect(),
        }
    }

    /// Moves the end forward to cycle `end` (exclusive), which no sample has reached yet.
    pub(super) fn end_before(&mut self, end: u64) {
        self.end = self.end.min(end);
    }

    /// Closes the tables; `open_wait` is a wait that was still open then. Returns the largest latencies, largest first.
    pub(super) fn finish(&mut self, open_wait: Option<Censored>) -> Vec<Worst> {
        if let Some(Censored { cycle, at_least_ns }) = open_wait
            && at_least_ns > self.deadline.ns()
        {
            self.take_late(u64::try_from(cycle).unwrap_or(0), i64::try_from(at_least_ns).unwrap_or(i64::MAX));
        }
        let ended = self.open.take();
        self.close(ended);
        let mut worst: Vec<Worst> = std::mem::take(&mut self.worst).into_iter().map(|Reverse(worst)| worst).collect();
        worst.sort_by(|a, b| b.cmp(a));
        let tail = (self.histogram.n / WORST_DIVISOR).max(MIN_WORST);
        worst.truncate(usize::try_from(tail).unwrap_or(MAX_WORST));
        worst
    }
}

/// Adds a latency, `n` times, to the slice of `cycles` from `first_cycle` on, which is the last slice or follows it.
fn add_to(slices: &mut Vec<Slice>, (first_cycle, cycles): (u64, u64), latency_ns: i64, n: u64) {
    if slices.last().is_none_or(|slice| slice.first_cycle != first_cycle) {
        slices.push(Slice { first_cycle, cycles, histogram: Histogram::default() });
    }
    if let Some(slice) = slices.last_mut() {
        slice.histogram.record_n(latency_ns, n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{ClockTime, Nanos, Period};

    fn collect(end: u64, deadline: u64, samples: &[(u64, i64)]) -> Collector {
        let schedule = Schedule { first_due: ClockTime(7), period: Period::try_from(Span(1_000_000)).unwrap() };
        let mut collector = Collector::new(schedule, &Task::CLOCK_NANOSLEEP, 10..end, Span(deadline));
        for &(cycle, latency_ns) in samples {
            collector.take(Sample { cycle, latency: Nanos(latency_ns) });
        }
        collector
    }

    #[test]
    fn only_measured_cycles_count() {
        let collector = collect(20, 1_000_000, &[(9, 5), (10, 6), (19, 7), (20, 8)]);
        assert_eq!((collector.histogram.n, collector.last_ns, collector.last_cycle), (2, Some(7), Some(20)));
    }

    #[test]
    fn missed_due_times_stop_at_the_end() {
        assert_eq!(collect(20, 1, &[(10, 2_000_001)]).missed, 2);
        assert_eq!(collect(20, 1, &[(18, 9_000_000)]).missed, 1);
        assert_eq!(collect(20, 1, &[(19, 9_000_000)]).missed, 0);
    }

    #[test]
    fn seconds_and_slices_cut_at_their_boundaries() {
        let collector = collect(2 * 1280 + 10, 100, &[(10, 5), (1009, -3), (1010, 200), (1049, 9), (1050, 1)]);
        let rows: Vec<_> =
            collector.seconds.iter().map(|s| (s.second, s.n, s.max_ns, s.max_cycle, s.over_deadline)).collect();
        assert_eq!(rows, [(0, 2, Some(5), Some(0), 0), (1, 3, Some(200), Some(1000), 1)]);
        let slices: Vec<_> = collector.slices.iter().map(|s| (s.first_cycle, s.cycles, s.histogram.n)).collect();
        assert_eq!(slices, [(0, 40, 1), (960, 40, 1), (1000, 40, 2), (1040, 40, 1)]);
        assert_eq!(collector.early, 1);
    }

    #[test]
    fn a_slice_has_at_least_20_cycles_and_the_last_may_be_shorter() {
        let collector = collect(10 + 50, 1, &[(10, 1), (59, 1)]);
        assert_eq!(collector.slices.iter().map(|s| (s.first_cycle, s.cycles)).collect::<Vec<_>>(), [(0, 20), (40, 10)]);
    }

    #[test]
    fn misses_closer_than_a_second_are_one_episode() {
        let late = 2_000_000;
        // Each wakes 2 ms late. The second is due just within a second of the first wake-up, the third exactly a second
        // after the second wake-up.
        let mut collector = collect(5000, 1_000_000, &[(10, late), (1011, late), (1011 + 1002, late)]);
        let worst = collector.finish(None);
        let found: Vec<_> = collector.episodes.first.iter().map(|e| (e.first_cycle, e.last_cycle, e.count)).collect();
        assert_eq!((collector.episodes.count, found), (2, vec![(0, 1001, 2), (2003, 2003, 1)]));
        assert_eq!(worst.first(), Some(&Worst { latency_ns: late, cycle: 2003 }));
    }

    #[test]
    fn a_spike_is_later_than_twice_the_p99_of_before() {
        let samples: Vec<_> = (0..1000).map(|i| (10 + i, if i < 990 { 5 } else { 50 })).collect();
        let mut collector = collect(5000, 1_000_000, &samples[..999]);
        collector.watch_for_spikes();
        assert_eq!((collector.progress(3).p99_ns, collector.spike_above_ns), (None, None), "too few to know p99");
        let mut collector = collect(5000, 1_000_000, &samples);
        assert_eq!(collector.progress(3).p99_ns, Some(5));
        assert_eq!(collector.progress(3).spikes, [], "none before anybody watches");
        collector.watch_for_spikes();
        for (cycle, latency_ns) in [(1010, 10), (1011, 11), (1012, 4)].into_iter().chain((1013..1019).map(|i| (i, 20)))
        {
            collector.take(Sample { cycle, latency: Nanos(latency_ns) });
        }
        let spikes = collector.progress(3).spikes;
        assert_eq!(spikes.len(), Spike::TOLD);
        let last = Spike { at: Span(1_008_000_000), latency_ns: 20, above_ns: 10 };
        assert_eq!((spikes[0].at, spikes.last()), (Span(1_004_000_000), Some(&last)));
        let mut other = collect(5000, 1_000_000, &samples);
        other.watch_for_spikes();
        other.take(Sample { cycle: 1010, latency: Nanos(10) });
        other.take(Sample { cycle: 1011, latency: Nanos(11) });
        assert_eq!(other.spikes.iter().map(|spike| spike.latency_ns).collect::<Vec<_>>(), [11], "equal is none");
    }

    #[test]
    fn a_trigger_without_an_answer_is_a_miss_and_late_answers_miss_nothing() {
        let schedule = Schedule { first_due: ClockTime(7), period: Period::try_from(Span(1_000_000)).unwrap() };
        let method: Task = "response:udp:x:1".parse().unwrap();
        let mut collector = Collector::new(schedule, &method, 10..5010, Span(1_000_000));
        let sample = |cycle, latency_ns| Sample { cycle, latency: Nanos(latency_ns) };
        collector.take(sample(10, 50_000_000));
        collector.take_unanswered(sample(9, 3_000_000_000));
        collector.take_unanswered(sample(11, 3_000_000_000));
        collector.take(sample(12, 5));
        collector.take_unanswered(sample(4510, 400_000));
        collector.take_unanswered(sample(5010, 400_000));
        collector.take_unknown(2);
        collector.finish(None);
        assert_eq!((collector.histogram.n, collector.missed, collector.episodes.count), (2, 2, 1));
        let rows: Vec<_> = collector.seconds.iter().map(|row| (row.second, row.n, row.missed, row.max_ns)).collect();
        assert_eq!(rows, [(0, 2, 1, Some(50_000_000)), (4, 0, 1, None)]);
        let slices = collector.unanswered.iter();
        let slices: Vec<_> =
            slices.map(|slice| (slice.first_cycle, slice.histogram.n, slice.histogram.min_ns)).collect();
        assert_eq!(slices, [(0, 1, Some(3_000_000_000)), (4424, 1, Some(400_000)), (4977, 2, Some(0))]);
        let wired: Task = "response:gpio:gpiochip0/1,2".parse().unwrap();
        let mut collector = Collector::new(schedule, &wired, 10..5010, Span(1_000_000));
        collector.take(sample(10, 50_000_000));
        assert_eq!(collector.missed, 49, "no trigger could be sent meanwhile");
    }

    #[test]
    fn an_open_wait_is_a_miss() {
        let mut collector = collect(5000, 1_000_000, &[]);
        collector.finish(Some(Censored { cycle: -3, at_least_ns: 9_300_000_000 }));
        assert_eq!(collector.episodes.first.first().map(|e| e.worst_ns), Some(9_300_000_000));
    }

    #[test]
    fn only_the_largest_are_kept() {
        let samples: Vec<_> = (0..3000_u64).map(|i| (10 + i, i.cast_signed() % 1500)).collect();
        let mut collector = collect(5000, 1_000_000, &samples);
        let worst = collector.finish(None);
        assert_eq!(worst.len(), 150, "one in 20");
        assert_eq!((worst[0].latency_ns, worst[0].cycle, worst[149].latency_ns), (1499, 2999, 1425));
        assert_eq!(collect(5000, 1_000_000, &samples[..500]).finish(None).len(), 100);
        let many: Vec<_> = (0..30_000_u64).map(|i| (10 + i, 1)).collect();
        assert_eq!(collect(40_000, 1_000_000, &many).finish(None).len(), MAX_WORST);
    }
}
