//! Noise: a thread that never waits, and the gaps between its readings of a counter.
//!
//! Between two readings it compares two numbers. A gap above the threshold is time in which the CPU did something else:
//! an interrupt, another thread, the hypervisor, firmware. Each is a sample whose cycle is that of its begin.

use crate::{Completion, RtSection, Sample, Wait};
use punctual_model::{ClockId, ClockTime, Cycle, Nanos, Schedule, Span};
use punctual_sys::counter::Counter;
use std::cell::Cell;
use std::io;

/// Default threshold: some 50 readings, and less than an interrupt takes. It is also the bucket of oslat (rt-tests).
const THRESHOLD: Span = Span(1_000);
/// The default is at least so many readings; a threshold of fewer than two would take the loop itself for a gap.
const DEFAULT_READINGS: u64 = 8;
const MIN_READINGS: u64 = 2;
/// Time over which the rate of the counter is compared with the clock: its error is then some millionths.
const CALIBRATION: Span = Span(20_000_000);
/// Batches of readings whose median is the time of one.
const BATCHES: usize = 101;
const BATCH: u64 = 100;
/// Tries to read the clock and the counter together.
const TRIES: u32 = 3;

/// A counter, and the clock that it is compared with; replaceable in tests.
pub(crate) trait Ticks {
    fn ticks(&self) -> u64;
    fn now(&self) -> ClockTime;
}

impl Ticks for Counter {
    #[inline]
    fn ticks(&self) -> u64 {
        self.read()
    }

    #[inline]
    fn now(&self) -> ClockTime {
        punctual_sys::clock::now(ClockId::Monotonic)
    }
}

/// Both factors between ticks and nanoseconds, times 2^32.
#[derive(Debug, Clone, Copy)]
struct Rate {
    ns: u64,
    ticks: u64,
}

impl Rate {
    /// `None`: the counter or the clock stands still, or their rates differ by more than 2^31.
    fn of(ns: u64, ticks: u64) -> Option<Rate> {
        let factor =
            |a: u64, b: u64| u64::try_from((u128::from(a) << 32).checked_div(b.into())?).ok().filter(|f| *f > 0);
        Some(Rate { ns: factor(ns, ticks)?, ticks: factor(ticks, ns)? })
    }

    #[inline]
    fn ns(self, ticks: u64) -> u64 {
        times(self.ns, ticks)
    }

    #[inline]
    fn ticks(self, ns: u64) -> u64 {
        times(self.ticks, ns)
    }

    /// The most ticks that count as at most `ns`, so that one more is above it in both units.
    fn most_ticks(self, ns: u64) -> u64 {
        let below = (u128::from(ns) + 1) << 32;
        u64::try_from((below - 1) / u128::from(self.ns)).unwrap_or(u64::MAX)
    }
}

#[inline]
fn times(factor: u64, by: u64) -> u64 {
    u64::try_from((u128::from(factor) * u128::from(by)) >> 32).unwrap_or(u64::MAX)
}

/// The loop of one thread, and what it has counted.
#[derive(Debug)]
pub(crate) struct Noise<C = Counter> {
    counter: C,
    rate: Rate,
    /// The threshold, and its ticks.
    longest: Span,
    threshold: u64,
    reading_ps: u64,
    first_due: Cell<ClockTime>,
    period_ns: Cell<u64>,
    /// The first instant of the measured time, and the last reading.
    first: Cell<u64>,
    last: Cell<u64>,
    readings: Cell<u64>,
    gaps: Cell<u64>,
    lost_ns: Cell<u64>,
}

/// What the loop counted besides the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoiseOutcome {
    /// Gaps longer than this are samples.
    pub threshold: Span,
    /// Time of a reading: the median of batches before the first cycle, ps.
    pub reading_ps: u64,
    /// Number of readings.
    pub readings: u64,
    /// Number of gaps above the threshold.
    pub gaps: u64,
    /// Sum of their lengths.
    pub lost: Span,
    /// From the first due time to the last reading.
    pub observed: Span,
}

impl Noise {
    /// Compares `counter` with the clock, which takes 20 ms. Errors: the counter stands still, or the threshold is too
    /// low for this machine.
    pub(super) fn new(threshold: Option<Span>, counter: Counter) -> io::Result<Noise> {
        let begin = together(&counter, u64::MAX);
        punctual_sys::clock::sleep_for(ClockId::Monotonic, CALIBRATION).map_err(io::Error::from_raw_os_error)?;
        let end = together(&counter, u64::MAX);
        let ns = u64::try_from(end.0.since(begin.0).0).unwrap_or(0);
        let rate = Rate::of(ns, end.1.saturating_sub(begin.1));
        let rate = rate.ok_or_else(|| io::Error::other("the processor's counter stands still"))?;
        Noise::of(counter, rate, threshold)
    }
}

impl<C: Ticks> Noise<C> {
    fn of(counter: C, rate: Rate, threshold: Option<Span>) -> io::Result<Noise<C>> {
        let mut batches = [0; BATCHES];
        for batch in &mut batches {
            let begin = counter.ticks();
            *batch = spin(&counter, begin, u64::MAX, u64::MAX, BATCH).at.saturating_sub(begin);
        }
        batches.sort_unstable();
        let reading_ps = rate.ns(batches[BATCHES / 2].saturating_mul(1000)) / BATCH;
        let of_readings = |n: u64| Span((reading_ps * n).div_ceil(1000));
        let threshold = threshold.unwrap_or_else(|| THRESHOLD.max(of_readings(DEFAULT_READINGS)));
        if threshold < of_readings(MIN_READINGS) {
            return Err(io::Error::other("the threshold is below the time of two readings; raise it"));
        }
        Ok(Noise {
            counter,
            rate,
            longest: threshold,
            threshold: rate.most_ticks(threshold.ns()),
            reading_ps,
            first_due: Cell::default(),
            period_ns: Cell::new(1),
            first: Cell::new(0),
            last: Cell::new(0),
            readings: Cell::new(0),
            gaps: Cell::new(0),
            lost_ns: Cell::new(0),
        })
    }

    /// The counts so far.
    pub(super) fn outcome(&self) -> NoiseOutcome {
        NoiseOutcome {
            threshold: self.longest,
            reading_ps: self.reading_ps,
            readings: self.readings.get(),
            gaps: self.gaps.get(),
            lost: Span(self.lost_ns.get()),
            observed: Span(self.rate.ns(self.last.get().saturating_sub(self.first.get()))),
        }
    }

    /// The gap between two readings as a sample, and its begin, where the clock stood at `now` when the counter was
    /// `at`. It began in the period from `due` on, or before that.
    #[inline]
    fn gap(&self, before: u64, after: u64, (now, at): (ClockTime, u64), due: ClockTime) -> Completion {
        let gap_ns = self.rate.ns(after - before);
        self.gaps.set(self.gaps.get() + 1);
        self.lost_ns.set(self.lost_ns.get().saturating_add(gap_ns));
        let later = self.rate.ns(before.saturating_sub(at));
        let begin = now.plus(Span(later)).0.saturating_sub(self.rate.ns(at.saturating_sub(before)));
        let cycle = begin.min(due.0 + self.period_ns.get() - 1).saturating_sub(self.first_due.get().0);
        let cycle = cycle / self.period_ns.get();
        let latency = Nanos(i64::try_from(gap_ns).unwrap_or(i64::MAX));
        Completion::Gap(Sample { cycle, latency }, ClockTime(begin))
    }
}

/// The clock and the counter at one instant, unless the thread was interrupted between them three times.
#[inline]
fn together<C: Ticks>(counter: &C, threshold: u64) -> (ClockTime, u64) {
    let mut both = (ClockTime(0), 0);
    for _ in 0..TRIES {
        let before = counter.ticks();
        both = (counter.now(), counter.ticks());
        if both.1.saturating_sub(before) <= threshold {
            break;
        }
    }
    both
}

/// The end of [`spin`].
struct Spun {
    readings: u64,
    /// The last two readings.
    before: u64,
    at: u64,
}

/// Reads the counter until a gap above `threshold`, until it reaches `end`, or `most` times.
#[inline]
fn spin<C: Ticks>(counter: &C, last: u64, threshold: u64, end: u64, most: u64) -> Spun {
    let mut spun = Spun { readings: 0, before: last, at: last };
    while spun.readings < most {
        (spun.before, spun.at) = (spun.at, counter.ticks());
        spun.readings += 1;
        if spun.at.saturating_sub(spun.before) > threshold || spun.at >= end {
            break;
        }
    }
    spun
}

impl<C: Ticks> Wait for Noise<C> {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        self.counter.now()
    }

    /// Runs until the first due time, which counts as the first reading: a thread that comes late has a gap from there.
    fn start(&self, rt: &RtSection<'_>, schedule: &Schedule) -> Result<Span, i32> {
        while self.now(rt) < schedule.first_due {}
        let (now, at) = together(&self.counter, self.threshold);
        let late = u64::try_from(now.since(schedule.first_due).0).unwrap_or(0);
        self.first_due.set(schedule.first_due);
        self.period_ns.set(schedule.period.ns());
        self.first.set(at.saturating_sub(self.rate.ticks(late)));
        self.last.set(self.first.get());
        Ok(Span(0))
    }

    /// The cycle that the present belongs to; those that a gap has covered are left out.
    #[inline]
    fn next(&self, rt: &RtSection<'_>, schedule: &Schedule, cycle: Cycle) -> Cycle {
        schedule.cycle(schedule.containing(self.now(rt)).index.max(cycle.index))
    }

    /// Reads the counter for the period from `due` on, and returns early with a gap. At most once a nanosecond, so that
    /// it ends even if the counter stands still.
    #[inline]
    fn complete(&self, _rt: &RtSection<'_>, due: ClockTime) -> Result<Completion, i32> {
        let both = together(&self.counter, self.threshold);
        let (now, at, ends) = (both.0.0, both.1, due.plus(Span(self.period_ns.get())).0);
        let left = |from: u64, to: u64| self.rate.ticks(to.saturating_sub(from));
        let end = at.saturating_add(left(now, ends)).saturating_sub(left(ends, now));
        if self.last.get() >= end {
            // A gap from here on begins in another period.
            return Ok(Completion::TimedOut);
        }
        let spun = spin(&self.counter, self.last.get(), self.threshold, end, self.period_ns.get());
        self.last.set(spun.at);
        self.readings.set(self.readings.get() + spun.readings);
        if spun.at.saturating_sub(spun.before) > self.threshold {
            return Ok(self.gap(spun.before, spun.at, both, due));
        }
        Ok(Completion::TimedOut)
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::cyclic::{Ends, run_cycles};
    use crate::sample_log;
    use punctual_model::Period;

    /// Two ticks a nanosecond, and 10 ns a reading of either; gaps come after the given instants.
    struct Machine<'a> {
        ns: Cell<u64>,
        gaps: &'a [(i64, u64)],
        next: Cell<usize>,
    }

    const BEGIN: u64 = 1_000_000;
    const READING: u64 = 10;
    const PERIOD: u64 = 10_000;

    impl Machine<'_> {
        fn step(&self) -> u64 {
            let mut ns = self.ns.get() + READING;
            if let Some((_, gap)) =
                self.gaps.get(self.next.get()).filter(|(at, _)| ns > BEGIN.saturating_add_signed(*at))
            {
                ns += gap - READING;
                self.next.set(self.next.get() + 1);
            }
            self.ns.set(ns);
            ns
        }
    }

    impl Ticks for Machine<'_> {
        fn ticks(&self) -> u64 {
            self.step() * 2
        }

        fn now(&self) -> ClockTime {
            ClockTime(self.step())
        }
    }

    /// The samples of `cycles` periods of 10 us, the lost ones, and the counts.
    fn run(gaps: &[(i64, u64)], cycles: u64, room: usize) -> (Vec<(u64, i64)>, u64, NoiseOutcome) {
        let machine = Machine { ns: Cell::new(BEGIN - 500_000), gaps, next: Cell::new(0) };
        let noise = Noise::of(machine, Rate::of(1, 2).unwrap(), None).unwrap();
        let schedule = Schedule { first_due: ClockTime(BEGIN), period: Period::try_from(Span(PERIOD)).unwrap() };
        let limits = Ends::of(std::iter::once(&(0..cycles))).limits(0, 0, Nanos(i64::MAX));
        let (mut writer, mut reader) = sample_log(room);
        let (ended, allocations) =
            RtSection::enter(|rt| run_cycles(rt, &noise, &schedule, &limits, &mut writer, &mut None));
        assert_eq!((ended.map(drop), allocations), (Ok(()), 0));
        let mut samples = Vec::new();
        reader.drain(|Sample { cycle, latency: Nanos(ns) }| samples.push((cycle, ns)));
        (samples, reader.lost(), noise.outcome())
    }

    #[test]
    fn a_gap_is_one_above_the_threshold_and_none_at_it() {
        for (gap, samples) in [(10, vec![]), (1_000, vec![]), (1_002, vec![(2, 1_002)]), (90_000, vec![(2, 90_000)])] {
            let (seen, lost, counts) = run(&[(25_000, gap)], 4, 8);
            assert_eq!((seen, lost), (samples.clone(), 0), "{gap}");
            assert_eq!((counts.threshold, counts.reading_ps), (Span(1_000), 10_000));
            assert_eq!(counts.lost, Span(samples.iter().map(|(_, ns)| ns.unsigned_abs()).sum()), "{gap}");
            let rest = counts.observed.ns() - counts.lost.ns();
            assert!(counts.observed.ns() >= 4 * PERIOD && rest <= 4 * PERIOD + READING * 2, "{gap}: {counts:?}");
        }
    }

    #[test]
    fn gaps_have_the_cycle_that_they_begin_in() {
        let gaps = [(100, 1_500), (9_980, 1_500), (22_000, 22_000), (46_100, 2_000), (49_000, 2_000)];
        let (seen, _, counts) = run(&gaps, 5, 8);
        assert_eq!(seen, [(0, 1_500), (0, 1_500), (2, 22_000), (4, 2_000), (4, 2_000)]);
        assert_eq!((counts.gaps, counts.lost.ns()), (5, 29_000));
    }

    /// A gap across the first due time counts from there, one across the end whole.
    #[test]
    fn gaps_are_cut_at_the_begin_and_whole_at_the_end() {
        let gaps = [(-3_000, 1_500), (-500, 5_500), (19_995, 70_000), (89_000, 9_000)];
        let (seen, _, counts) = run(&gaps, 2, 8);
        let ([(0, first), (1, 70_000)], rest) = (&seen[..], counts.observed.ns() - counts.lost.ns()) else {
            panic!("{seen:?}")
        };
        assert!((5_000..5_100).contains(first) && rest <= 2 * PERIOD, "{seen:?} {counts:?}");
    }

    #[test]
    fn a_full_log_loses_samples_and_counts_them() {
        let gaps: Vec<_> = (0..6).map(|n| (n * 5_000 + 100, 1_200)).collect();
        let (seen, lost, counts) = run(&gaps, 4, 4);
        assert_eq!((seen.len(), lost, counts.gaps, counts.lost.ns()), (4, 2, 6, 7_200));
    }

    /// A counter that stands still: the bound of readings ends each period.
    struct Still;

    impl Ticks for Still {
        fn ticks(&self) -> u64 {
            7
        }

        fn now(&self) -> ClockTime {
            ClockTime(BEGIN)
        }
    }

    #[test]
    fn a_counter_that_stands_still_is_refused_and_ends_the_loop() {
        assert!(Rate::of(20_000_000, 0).is_none());
        assert!(Rate::of(0, 20_000_000).is_none());
        let noise = Noise::of(Still, Rate::of(1, 2).unwrap(), None).unwrap();
        let schedule = Schedule { first_due: ClockTime(BEGIN), period: Period::try_from(Span(PERIOD)).unwrap() };
        let limits = Ends::of(std::iter::once(&(0..3))).limits(0, 0, Nanos(i64::MAX));
        let mut log = sample_log(1).0;
        RtSection::enter(|rt| run_cycles(rt, &noise, &schedule, &limits, &mut log, &mut None).unwrap());
        assert_eq!((noise.outcome().readings, noise.outcome().gaps), (3 * PERIOD, 0));
    }

    #[test]
    fn rates_convert_both_ways() {
        let rate = Rate::of(20_000_000, 59_985_000).unwrap();
        assert_eq!((rate.ns(0), rate.ticks(0)), (0, 0));
        assert_eq!(rate.ns(59_985_000_000) / 1_000, 19_999_999, "millionths of a nanosecond a tick");
        assert_eq!(rate.ns(u64::MAX) / 1_000_000_000, 6_150_452_300);
        assert_eq!(Rate::of(1, 1).map(|rate| (rate.ns(u64::MAX), rate.ticks(5))), Some((u64::MAX, 5)));
        for (ns, ticks) in [(1, 1), (1, 2), (3, 1), (20_000_000, 59_985_000), (20_000_003, 49_000_001)] {
            let rate = Rate::of(ns, ticks).unwrap();
            for most in [0, 1, 999, 1_000, 5_000_000_000] {
                let ticks = rate.most_ticks(most);
                assert!(rate.ns(ticks) <= most && rate.ns(ticks + 1) > most, "{rate:?} {most}");
            }
        }
    }

    #[test]
    fn a_threshold_below_two_readings_is_refused() {
        let of = |ns| {
            let machine = Machine { ns: Cell::new(0), gaps: &[], next: Cell::new(0) };
            Noise::of(machine, Rate::of(1, 2).unwrap(), Some(Span(ns))).map(|noise| noise.outcome().threshold)
        };
        assert!(of(19).is_err_and(|err| err.to_string().contains("raise it")));
        assert_eq!(of(20).ok(), Some(Span(20)));
    }
}
