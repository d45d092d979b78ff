//! The measured loop: wait for a due time, read the clock, append to the log.

use crate::log::{LogWriter, Sample};
use crate::spike::{LateWakeup, Watcher};
use crate::{Completion, RtSection, Triggered, Wait};
use punctual_model::{Nanos, Schedule, Span};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The cycles of one thread that run, and those that are recorded.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Cycles before this one are warm-up: they run and leave no sample.
    first_recorded: u64,
    /// Latency above which the cell ends for all its threads.
    stop_above: Nanos,
    ends: Ends,
    /// The index of this thread's end.
    index: usize,
}

/// The end of each thread of a cell: one past its last cycle. Only ever lowered, to end a cell early.
#[derive(Debug, Clone)]
pub(crate) struct Ends(Arc<[AtomicU64]>);

impl Ends {
    /// The ends of threads with these cycles, of which the first are recorded.
    pub(crate) fn of<'a>(cycles: impl Iterator<Item = &'a Range<u64>>) -> Ends {
        Ends(cycles.map(|cycles| AtomicU64::new(cycles.end)).collect())
    }

    /// The limits of the thread with this index.
    pub(crate) fn limits(&self, index: usize, first_recorded: u64, stop_above: Nanos) -> Limits {
        Limits { first_recorded, stop_above, ends: self.clone(), index }
    }

    /// Ends each thread before its cycle in `ends`, unless it ends earlier.
    pub(crate) fn lower(&self, ends: impl Iterator<Item = u64>) {
        for (mine, end) in self.0.iter().zip(ends) {
            mine.fetch_min(end, Relaxed);
        }
    }

    /// Ends all threads now.
    pub(crate) fn end_all(&self) {
        self.0.iter().for_each(|end| end.store(0, Relaxed));
    }

    /// Whether [`Ends::end_all`] was called.
    pub(crate) fn all_have_ended(&self) -> bool {
        self.0.iter().all(|end| end.load(Relaxed) == 0)
    }
}

impl Limits {
    /// The first recorded cycle.
    pub(crate) fn first_recorded(&self) -> u64 {
        self.first_recorded
    }

    /// One past the last cycle.
    #[inline]
    fn end(&self) -> u64 {
        self.ends.0.get(self.index).map_or(0, |end| end.load(Relaxed))
    }
}

/// Results of a thread at its end that are not in its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoopResult {
    /// Upper bound of the delay of the kernel's due times against the schedule.
    pub origin_uncertainty: Span,
    /// Overruns that the kernel counted in recorded cycles.
    pub overruns: u64,
    /// Due times before the end that passed while the thread stopped the trace, or without a hand-off by its waker.
    pub passed_over: u64,
}

/// Runs the cycles of `schedule` until the end of `limits`: the one loop that every published latency comes from.
///
/// It terminates: each turn waits for a later due time, and finitely many come before the end. Per cycle it makes the
/// calls of its method, reads the clock once after them and writes one sample. Errors: the errno of a wait that failed
/// for a reason other than a signal.
pub(crate) fn run_cycles<W: Wait>(
    rt: &RtSection<'_>,
    wait: &W,
    schedule: &Schedule,
    limits: &Limits,
    log: &mut LogWriter,
    watcher: &mut Option<Watcher>,
) -> Result<LoopResult, i32> {
    let mut ended = LoopResult { origin_uncertainty: wait.start(rt, schedule)?, ..LoopResult::default() };
    let record_late = |log: &mut LogWriter, sample: Sample| {
        if sample.cycle >= limits.first_recorded {
            log.push(rt, sample);
            if sample.latency > limits.stop_above {
                limits.ends.end_all();
            }
        }
    };
    let mut cycle = wait.next(rt, schedule, schedule.cycle(0));
    while cycle.index < limits.end() {
        match wait.trigger(rt, schedule, cycle)? {
            Triggered::Cycle(triggered) => cycle = triggered,
            Triggered::Late(sample) => {
                record_late(log, sample);
                continue;
            }
        }
        log.waits_for(rt, cycle.due);
        let is_done = loop {
            match wait.complete(rt, cycle.due) {
                Ok(Completion::Done) => break true,
                Ok(Completion::TimedOut) => break false,
                Ok(Completion::Late(sample)) => record_late(log, sample),
                Ok(Completion::Gap(sample, begin)) => {
                    record_late(log, sample);
                    if let Some(watcher) = watcher {
                        watcher.note(rt, LateWakeup { due: begin, latency: sample.latency });
                    }
                }
                Err(libc::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        };
        if !is_done {
            cycle = wait.next(rt, schedule, schedule.cycle(cycle.index + 1));
            continue;
        }
        let mut latency = wait.now(rt).since(cycle.due);
        let ahead = limits.first_recorded.saturating_sub(cycle.index);
        if ahead == 0 || schedule.after(cycle, latency).index > limits.first_recorded {
            let sample = Sample { cycle: cycle.index, latency };
            log.push(rt, sample);
            if ahead == 0 && latency.0 > schedule.period.ns().cast_signed() {
                ended.overruns += wait.overruns(rt);
            }
            // One of the warm-up that passed the first recorded due time is the wake-up of that one.
            let ahead_ns = ahead.saturating_mul(schedule.period.ns());
            let late = LateWakeup {
                due: cycle.due.plus(Span(ahead_ns)),
                latency: Nanos(latency.0.saturating_sub_unsigned(ahead_ns)),
            };
            let is_sample = ahead == 0 || wait.misses_when_late();
            if is_sample && late.latency > limits.stop_above {
                limits.ends.end_all();
            }
            if let Some(watcher) = watcher
                && is_sample
                && watcher.is_spike(rt, late.latency)
                && watcher.take(rt, late)
            {
                // The next wait is for a due time after all this.
                latency = wait.now(rt).since(cycle.due);
                let end = limits.end();
                let before_end = |latency| schedule.after(cycle, latency).index.min(end);
                ended.passed_over += before_end(latency).saturating_sub(before_end(sample.latency));
            }
        }
        cycle = wait.next(rt, schedule, schedule.after(cycle, latency));
    }
    while let Some(sample) = wait.finish(rt)? {
        record_late(log, sample);
    }
    Ok(ended)
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_log;
    use punctual_model::{ClockTime, Period};
    use std::cell::{Cell, RefCell};
    use std::iter::Copied;
    use std::slice::Iter;

    /// A wait that does not complete its cycle.
    #[derive(Clone, Copy)]
    enum Not {
        TimedOut,
        Late,
        Errno(i32),
    }

    const TIMED_OUT: Result<i64, Not> = Err(Not::TimedOut);
    const LATE: Result<i64, Not> = Err(Not::Late);
    const INTERRUPTED: Result<i64, Not> = Err(Not::Errno(libc::EINTR));
    const LATE_SAMPLE: Sample = Sample { cycle: 10, latency: Nanos(2_500_000) };

    /// A fake kernel in which nothing takes time except the given lateness of each wait.
    struct FakeKernel<'a> {
        now: Cell<u64>,
        lateness: RefCell<Copied<Iter<'a, Result<i64, Not>>>>,
    }

    impl Wait for FakeKernel<'_> {
        fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
            ClockTime(self.now.get())
        }

        fn complete(&self, _rt: &RtSection<'_>, due: ClockTime) -> Result<Completion, i32> {
            match self.lateness.borrow_mut().next().unwrap_or(Ok(0)) {
                Ok(late) => {
                    self.now.set(due.0.max(self.now.get()).wrapping_add_signed(late));
                    Ok(Completion::Done)
                }
                Err(Not::TimedOut) => Ok(Completion::TimedOut),
                Err(Not::Late) => Ok(Completion::Late(LATE_SAMPLE)),
                Err(Not::Errno(errno)) => Err(errno),
            }
        }

        fn finish(&self, _rt: &RtSection<'_>) -> Result<Option<Sample>, i32> {
            Ok(self.lateness.borrow_mut().next().filter(|next| matches!(next, Err(Not::Late))).map(|_| LATE_SAMPLE))
        }
    }

    /// The samples of a run of `end` cycles of 1 ms with these outcomes of its waits, and the number of lost ones.
    fn run(
        first: u64,
        end: u64,
        room: usize,
        lateness: &[Result<i64, Not>],
    ) -> (Vec<(u64, i64)>, u64, Result<(), i32>) {
        run_until(i64::MAX, first, end, room, lateness)
    }

    /// As [`run`], ended by a latency above `stop_above_ns`.
    fn run_until(
        stop_above_ns: i64,
        first: u64,
        end: u64,
        room: usize,
        lateness: &[Result<i64, Not>],
    ) -> (Vec<(u64, i64)>, u64, Result<(), i32>) {
        let schedule = Schedule { first_due: ClockTime(1 << 40), period: Period::try_from(Span(1_000_000)).unwrap() };
        let clock = FakeKernel { now: Cell::new(0), lateness: RefCell::new(lateness.iter().copied()) };
        let limits = Ends::of(std::iter::once(&(first..end))).limits(0, first, Nanos(stop_above_ns));
        let (mut writer, mut reader) = sample_log(room);
        let (result, allocations) =
            RtSection::enter(|rt| run_cycles(rt, &clock, &schedule, &limits, &mut writer, &mut None));
        assert_eq!(allocations, 0, "the measured loop allocates nothing");
        let mut samples = Vec::new();
        reader.drain(|Sample { cycle, latency: Nanos(ns) }| samples.push((cycle, ns)));
        (samples, reader.lost(), result.map(drop))
    }

    #[test]
    fn each_due_time_leaves_a_sample_or_is_missed() {
        let on_time = run(0, 3, 8, &[Ok(5), Ok(-3), Ok(0)]);
        assert_eq!(on_time, (vec![(0, 5), (1, -3), (2, 0)], 0, Ok(())));
        // Exactly one period late: the next due time is now, and is waited for.
        assert_eq!(run(0, 3, 8, &[Ok(1_000_000)]).0, [(0, 1_000_000), (1, 0), (2, 0)]);
        // One nanosecond more and it is past: missed.
        assert_eq!(run(0, 3, 8, &[Ok(1_000_001)]).0, [(0, 1_000_001), (2, 0)]);
        // A stall beyond the end leaves its one sample and ends.
        assert_eq!(run(0, 3, 8, &[Ok(9_000_000)]).0, [(0, 9_000_000)]);
    }

    #[test]
    fn warm_up_runs_and_is_not_recorded() {
        assert_eq!(run(2, 4, 8, &[Ok(7), Ok(7), Ok(1), Ok(2)]).0, [(2, 1), (3, 2)]);
    }

    #[test]
    fn a_wake_up_of_the_warm_up_that_passed_the_first_recorded_due_time_is_logged() {
        assert_eq!(run(2, 6, 8, &[Ok(7), Ok(1_000_000)]).0, [(2, 0), (3, 0), (4, 0), (5, 0)], "that is now");
        assert_eq!(run(2, 6, 8, &[Ok(7), Ok(1_000_001)]).0, [(1, 1_000_001), (3, 0), (4, 0), (5, 0)]);
        // As after a late start of the thread.
        assert_eq!(run(2, 6, 8, &[Ok(4_500_000)]).0, [(0, 4_500_000), (5, 0)]);
    }

    #[test]
    fn late_arrivals_are_recorded_beside_the_wait_and_after_the_last() {
        let late = (10, 2_500_000);
        // The wait for cycle 12 continues; cycle 13 has no answer yet; another answer comes after the end.
        let lateness = [Ok(1), LATE, Ok(2), TIMED_OUT, LATE, Ok(0)];
        let none_of_11 = &[TIMED_OUT, Ok(1), LATE, Ok(2)];
        let warm = [Ok(0); 10];
        let run = |lateness: &[Result<i64, Not>], first, end| run(first, end, 8, &[&warm[..], lateness].concat());
        assert_eq!(run(&lateness, 10, 13), (vec![(10, 1), late, (11, 2), late], 0, Ok(())));
        assert_eq!(run(none_of_11, 11, 13).0, [(11, 1), (12, 2)], "one of the warm-up is none");
        let lateness = [&warm[..], &[Ok(1), LATE, Ok(2), Ok(3)]].concat();
        assert_eq!(run_until(2_499_999, 10, 20, 8, &lateness).0, [(10, 1), late, (11, 2)], "it ends the cell");
    }

    #[test]
    fn a_latency_above_the_limit_is_the_last() {
        assert_eq!(run_until(9, 0, 5, 8, &[Ok(9), Ok(10), Ok(0)]).0, [(0, 9), (1, 10)]);
        assert_eq!(run_until(9, 1, 4, 8, &[Ok(99), Ok(1), Ok(1)]).0, [(1, 1), (2, 1), (3, 0)], "not in the warm-up");
        // From the first recorded due time on.
        assert_eq!(run_until(9, 1, 4, 8, &[Ok(1_000_009)]).0, [(0, 1_000_009), (2, 0), (3, 0)]);
        assert_eq!(run_until(9, 1, 4, 8, &[Ok(1_000_010)]).0, [(0, 1_000_010)]);
    }

    /// A watch of spikes above `above_ns`, armed, on pipes.
    fn watch(above_ns: i64) -> Arc<crate::SpikeWatch> {
        let ((_, marker), (_, on)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        let [marker, on] = [marker, on].map(|pipe| std::fs::File::from(std::os::fd::OwnedFd::from(pipe)));
        let (watch, _) = crate::SpikeWatch::new(marker, Some(on)).unwrap();
        watch.set_above_ns(above_ns);
        watch.arm();
        watch
    }

    #[test]
    fn a_wake_up_of_the_warm_up_is_a_spike_of_the_first_recorded_due_time() {
        let schedule = Schedule { first_due: ClockTime(1 << 40), period: Period::try_from(Span(1_000_000)).unwrap() };
        for (late, spikes) in [(2_000_100, vec![]), (2_000_101, vec![((1 << 40) + 2_000_000, 101)])] {
            let lateness = [Ok(late)];
            let clock = FakeKernel { now: Cell::new(0), lateness: RefCell::new(lateness.iter().copied()) };
            let limits = Ends::of(std::iter::once(&(2..4))).limits(0, 2, Nanos(i64::MAX));
            let watch = watch(100);
            let (watcher, mut reader) = watch.watcher();
            let (mut writer, _log) = sample_log(8);
            let run = |rt: &RtSection<'_>| run_cycles(rt, &clock, &schedule, &limits, &mut writer, &mut Some(watcher));
            assert_eq!(RtSection::enter(run).1, 0, "the measured loop allocates nothing");
            let mut noted = Vec::new();
            reader.drain(|late| noted.push((late.due.0, late.latency.0)));
            assert_eq!(noted, spikes, "{late}");
        }
    }

    #[test]
    fn each_thread_has_its_own_end_and_a_latency_above_the_limit_ends_all() {
        let ends = Ends::of([0..6, 0..4].iter());
        let run = |index: usize, lateness: &[Result<i64, Not>]| {
            let schedule =
                Schedule { first_due: ClockTime(1 << 40), period: Period::try_from(Span(1_000_000)).unwrap() };
            let clock = FakeKernel { now: Cell::new(0), lateness: RefCell::new(lateness.iter().copied()) };
            let (mut writer, mut reader) = sample_log(8);
            let limits = ends.limits(index, 1, Nanos(9));
            let (ended, _) = RtSection::enter(|rt| run_cycles(rt, &clock, &schedule, &limits, &mut writer, &mut None));
            ended.unwrap();
            let mut cycles = Vec::new();
            reader.drain(|sample| cycles.push(sample.cycle));
            cycles
        };
        assert_eq!((run(0, &[]), run(1, &[])), (vec![1, 2, 3, 4, 5], vec![1, 2, 3]));
        ends.lower([3, 9].into_iter());
        assert_eq!((run(0, &[]), run(1, &[])), (vec![1, 2], vec![1, 2, 3]), "an end is never raised");
        assert!(!ends.all_have_ended());
        assert_eq!((run(1, &[Ok(0), Ok(10)]), run(0, &[])), (vec![1], vec![]));
        assert!(ends.all_have_ended());
    }

    #[test]
    fn stopping_the_trace_is_not_counted_as_lateness() {
        /// A clock of which every reading takes 600 us.
        struct SlowClock(Cell<u64>);
        impl Wait for SlowClock {
            fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
                self.0.set(self.0.get() + 600_000);
                ClockTime(self.0.get())
            }

            fn complete(&self, _rt: &RtSection<'_>, due: ClockTime) -> Result<Completion, i32> {
                self.0.set(due.0.max(self.0.get()));
                Ok(Completion::Done)
            }
        }
        let schedule = Schedule { first_due: ClockTime(1 << 40), period: Period::try_from(Span(1_000_000)).unwrap() };
        let limits = Ends::of(std::iter::once(&(0..6))).limits(0, 0, Nanos(i64::MAX));
        let watch = watch(0);
        let (watcher, mut late) = watch.watcher();
        let (mut writer, mut reader) = sample_log(8);
        let clock = SlowClock(Cell::new(0));
        let run = |rt: &RtSection<'_>| run_cycles(rt, &clock, &schedule, &limits, &mut writer, &mut Some(watcher));
        let (ended, allocations) = RtSection::enter(run);
        let mut samples = Vec::new();
        reader.drain(|sample| samples.push((sample.cycle, sample.latency.0)));
        // The first is a spike, and more than 1200 us have passed since its due time: the next due time is passed over.
        let want: Vec<_> = [0, 2, 3, 4, 5].map(|cycle| (cycle, 600_000)).into();
        assert_eq!((samples, ended.map(|ended| ended.passed_over), allocations), (want, Ok(1), 0));
        let mut n_late = 0;
        late.drain(|_| n_late += 1);
        assert_eq!(n_late, 5, "only the first stops it, all are noted");
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let (samples, lost, _) = run(0, 5, 2, &[Ok(1), Ok(2), Ok(3), Ok(4), Ok(5)]);
        assert_eq!((samples, lost), (vec![(0, 1), (1, 2)], 3));
    }

    #[test]
    fn a_signal_repeats_the_wait_and_another_error_ends_the_run() {
        assert_eq!(run(0, 1, 8, &[INTERRUPTED, INTERRUPTED, Ok(4)]).0, [(0, 4)]);
        assert_eq!(run(0, 2, 8, &[Ok(4), Err(Not::Errno(libc::EINVAL))]), (vec![(0, 4)], 0, Err(libc::EINVAL)));
    }
}
