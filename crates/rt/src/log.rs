//! The sample log: one measured thread writes and one normal thread reads, both without waiting.

use crate::RtSection;
use atomic::{AtomicI64, AtomicU64, Ordering::*};
use punctual_model::{ClockTime, Nanos};
use std::sync::Arc;

#[cfg(loom)]
use loom::sync::atomic;
#[cfg(not(loom))]
use std::sync::atomic;

/// One wake-up: its cycle and its latency. The due time follows from the cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Index of the cycle in the thread's schedule.
    pub cycle: u64,
    /// `woke - due`.
    pub latency: Nanos,
}

/// One entry of the log. Atomics make the transfer safe code; relaxed stores cost no more than plain ones.
#[derive(Debug)]
struct Slot {
    cycle: AtomicU64,
    latency_ns: AtomicI64,
}

/// Separates the data of the two sides into different cache lines; 128 bytes because x86 prefetches lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CacheAligned<T>(T);

#[derive(Debug)]
struct Shared {
    slots: Box<[Slot]>,
    /// Samples ever written. The writer's release store publishes all earlier samples.
    written: CacheAligned<AtomicU64>,
    /// Samples ever taken. The reader's release store frees the slots.
    taken: CacheAligned<AtomicU64>,
    /// Samples that found no free slot. Written by the writer.
    lost: AtomicU64,
    /// The instant that the thread waits for; 0 before its first wait. Written by the writer.
    waits_for: AtomicU64,
}

/// The measured thread's end of the log. It never waits, allocates or fails: without room it counts lost samples.
#[derive(Debug)]
pub struct LogWriter {
    shared: Arc<Shared>,
    written: u64,
    /// The last value of `taken` that was read: re-read only when the log looks full.
    taken: u64,
    lost: u64,
}

/// The reader's end, for a normal thread.
#[derive(Debug)]
pub struct LogReader {
    shared: Arc<Shared>,
    taken: u64,
}

/// A log with room for at least `room` samples (16 bytes each). All of it is written once, so that it is in memory.
pub fn sample_log(room: usize) -> (LogWriter, LogReader) {
    let slot = |_| Slot { cycle: AtomicU64::new(u64::MAX), latency_ns: AtomicI64::new(i64::MIN) };
    let shared = Arc::new(Shared {
        slots: (0..room.max(1).next_power_of_two()).map(slot).collect(),
        written: CacheAligned(AtomicU64::new(0)),
        taken: CacheAligned(AtomicU64::new(0)),
        lost: AtomicU64::new(0),
        waits_for: AtomicU64::new(0),
    });
    let writer = LogWriter { shared: Arc::clone(&shared), written: 0, taken: 0, lost: 0 };
    (writer, LogReader { shared, taken: 0 })
}

impl Shared {
    /// The slot of sample `n`. `None` cannot happen; it keeps the measured path free of panics.
    #[inline]
    fn slot(&self, n: u64) -> Option<&Slot> {
        #[expect(clippy::cast_possible_truncation, reason = "masked to the number of slots, which is a usize")]
        self.slots.get(n as usize & (self.slots.len() - 1))
    }
}

impl LogWriter {
    /// Appends a sample, or counts it as lost when the log is full.
    #[inline]
    pub fn push(&mut self, _rt: &RtSection<'_>, sample: Sample) {
        if self.written - self.taken == self.shared.slots.len() as u64 {
            self.taken = self.shared.taken.0.load(Acquire);
        }
        let free = self.written - self.taken < self.shared.slots.len() as u64;
        let Some(slot) = self.shared.slot(self.written).filter(|_| free) else {
            self.lost += 1;
            self.shared.lost.store(self.lost, Relaxed);
            return;
        };
        slot.cycle.store(sample.cycle, Relaxed);
        slot.latency_ns.store(sample.latency.0, Relaxed);
        self.written += 1;
        self.shared.written.0.store(self.written, Release);
    }

    /// Publishes the instant of the next wait. Released, so that a reader that sees it also sees the samples before.
    #[inline]
    pub fn waits_for(&mut self, _rt: &RtSection<'_>, due: ClockTime) {
        self.shared.waits_for.store(due.0, Release);
    }
}

impl LogReader {
    /// Passes every sample written so far to `take`, in order, and frees its slot.
    pub fn drain(&mut self, mut take: impl FnMut(Sample)) {
        let written = self.shared.written.0.load(Acquire);
        for slot in (self.taken..written).filter_map(|n| self.shared.slot(n)) {
            take(Sample { cycle: slot.cycle.load(Relaxed), latency: Nanos(slot.latency_ns.load(Relaxed)) });
        }
        self.taken = written;
        self.shared.taken.0.store(written, Release);
    }

    /// Samples lost so far for lack of room.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Relaxed)
    }

    /// The instant that the thread waits for, or last waited for; `None` before its first wait. Read it before
    /// [`LogReader::drain`]: then all earlier samples are there.
    pub fn waits_for(&self) -> Option<ClockTime> {
        Some(ClockTime(self.shared.waits_for.load(Acquire))).filter(|due| due.0 > 0)
    }
}

#[cfg(loom)]
#[cfg(test)]
mod loom_tests {
    use super::*;

    /// All interleavings of a writer that is faster than its reader: every sample is taken once in order, or lost.
    #[test]
    fn loom_a_sample_is_taken_once_whole_and_in_order_or_counted_as_lost() {
        const SAMPLES: u64 = 4;
        loom::model(|| {
            let (mut writer, mut reader) = sample_log(2);
            let thread = loom::thread::spawn(move || {
                let ((), _) = RtSection::enter(|rt| {
                    for cycle in 0..SAMPLES {
                        writer.push(rt, Sample { cycle, latency: Nanos(cycle.cast_signed() * 10) });
                        writer.waits_for(rt, ClockTime(cycle + 1));
                    }
                });
            });
            let mut seen = Vec::new();
            let waits_for = reader.waits_for().map_or(0, |due| due.0);
            reader.drain(|sample| seen.push(sample));
            let before = seen.len() as u64 + reader.lost();
            assert!(before >= waits_for, "all samples before the announced wait are there or lost");
            thread.join().expect("the writer ends");
            reader.drain(|sample| seen.push(sample));
            assert_eq!(seen.len() as u64 + reader.lost(), SAMPLES);
            assert!(seen.iter().all(|sample| sample.latency.0 == sample.cycle.cast_signed() * 10), "never torn");
            assert!(seen.windows(2).all(|pair| pair[0].cycle < pair[1].cycle), "never reordered or repeated");
        });
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_back_by_draining() {
        let (mut writer, mut reader) = sample_log(3);
        let sample = |cycle| Sample { cycle, latency: Nanos(1) };
        let ((), allocations) = RtSection::enter(|rt| (0..6).for_each(|cycle| writer.push(rt, sample(cycle))));
        assert_eq!((reader.lost(), allocations), (2, 0), "3 rounds up to 4");
        let mut taken = Vec::new();
        reader.drain(|sample| taken.push(sample.cycle));
        RtSection::enter(|rt| writer.push(rt, sample(6)));
        reader.drain(|sample| taken.push(sample.cycle));
        assert_eq!(taken, [0, 1, 2, 3, 6]);
    }

    #[test]
    fn a_log_that_is_drained_in_time_loses_nothing_however_often_it_is_full() {
        let (mut writer, mut reader) = sample_log(4);
        let mut taken = Vec::new();
        for round in 0..5 {
            let cycles = round * 4..(round + 1) * 4;
            RtSection::enter(|rt| cycles.for_each(|cycle| writer.push(rt, Sample { cycle, latency: Nanos(1) })));
            reader.drain(|sample| taken.push(sample.cycle));
        }
        assert_eq!((taken, reader.lost()), ((0..20).collect(), 0));
    }
}
