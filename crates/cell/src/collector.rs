//! Conversion of the samples of one thread into the tables of its record.

use punctual_analysis::{Level, MIN_EXCEEDANCES, quantile};
use punctual_model::{
    Bin, Cell, Censored, Episode, Episodes, Histogram, Measured, Nanos, Order, Schedule, Second, Slice, Span, Spike,
    Task, ThreadProgress, Worst,
};
use punctual_rt::Sample;
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
    /// Length of the stretches of time that slices are cut by, where the threads of the cell have different periods.
    pub(super) stretch: Option<Span>,
    /// Time from the start of the window to the first measured due time, where periods differ.
    lead: Span,
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
            stretch: None,
            lead: Span(0),
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

    /// The tables for the thread of `cell` with this schedule. Where the threads of a cell have different periods,
    /// their seconds and slices cover the same times, so that those of all threads can be added up.
    pub(super) fn of_thread(cell: &Cell, schedule: Schedule) -> Self {
        let period = schedule.period;
        let alone = Collector::new(schedule, &cell.task, cell.cycles_of(period), cell.deadline_at(period));
        if !cell.has_several_periods() {
            return alone;
        }
        let cycles = cell.end_cycle() - cell.first_cycle();
        // Enough cycles of the slowest thread, too.
        let least = MIN_CYCLES.saturating_mul(cell.period.cycles_in(cell.longest_period().span()));
        let stretch = Span(cycles.div_ceil(SLICES).max(least).saturating_mul(cell.period.ns()));
        Collector { stretch: Some(stretch), lead: cell.lead_of(period), ..alone }
    }

    /// The time of a measured cycle, ns after the start of the window.
    fn due_ns(&self, cycle: u64) -> u64 {
        cycle.saturating_mul(self.schedule.period.ns()).saturating_add(self.lead.ns())
    }

    /// Records the next sample; returns its cycle, counted from the first measured one, and its latency, ns. A sample
    /// outside the measured cycles is ignored.
    pub(super) fn take(&mut self, sample: Sample) -> Option<(u64, i64)> {
        let sample = self.reaching_in(sample);
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
        Some((cycle, latency_ns))
    }

    /// A wake-up of the warm-up that was so late that it missed the first measured due time is the wake-up of that one.
    fn reaching_in(&self, sample: Sample) -> Sample {
        let ahead = self.first.saturating_sub(sample.cycle);
        if ahead == 0 || !self.misses_when_late || self.schedule.missed(sample.latency) < ahead {
            return sample;
        }
        let ahead_ns = i64::try_from(ahead.saturating_mul(self.schedule.period.ns())).unwrap_or(i64::MAX);
        Sample { cycle: self.first, latency: Nanos(sample.latency.0.saturating_sub(ahead_ns)) }
    }

    /// A wait of the warm-up that is still open after the first measured due time is the wait for that one.
    pub(super) fn open_in_window(&self, wait: Censored) -> Censored {
        let ahead_ns = wait.cycle.min(0).unsigned_abs().saturating_mul(self.schedule.period.ns());
        match wait.at_least_ns.checked_sub(ahead_ns) {
            Some(at_least_ns @ 1..) if self.misses_when_late && wait.cycle < 0 => Censored { cycle: 0, at_least_ns },
            _ => wait,
        }
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
        let second = self.due_ns(cycle) / Span::SECOND.0;
        if self.seconds.last().is_none_or(|row| row.second != second) {
            self.seconds.push(Second { second, ..Second::default() });
        }
        self.seconds.last_mut()
    }

    /// The slice that contains `cycle`: its first cycle and its length.
    fn stretch(&self, cycle: u64) -> (u64, u64) {
        let cycles = self.end - self.first;
        let Some(Span(length)) = self.stretch else {
            let first_cycle = cycle / self.slice_cycles * self.slice_cycles;
            return (first_cycle, self.slice_cycles.min(cycles - first_cycle));
        };
        let begins = self.due_ns(cycle) / length * length;
        let not_before = |at: u64| at.saturating_sub(self.lead.ns()).div_ceil(self.schedule.period.ns());
        let (first_cycle, end) = (not_before(begins), not_before(begins.saturating_add(length)));
        (first_cycle, end.min(cycles) - first_cycle)
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
        let at = Span(self.due_ns(cycle));
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
        self.episodes.join(&mut self.open, due, new);
    }

    /// The end: one past the last cycle.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Progress of the thread on `cpu`.
    pub(super) fn progress(&self, cpu: u32) -> ThreadProgress {
        ThreadProgress {
            thread: Measured::Cpu(cpu),
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
        self.episodes.close(self.open.take());
        let mut worst: Vec<Worst> = std::mem::take(&mut self.worst).into_iter().map(|Reverse(worst)| worst).collect();
        worst.order_by(|a, b| b.cmp(a));
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
mod tests;
