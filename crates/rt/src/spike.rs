//! Stopping the kernel's trace at a late wake-up, inside the measured thread: every other thread would be too late.

use crate::RtSection;
use crate::log::{LogReader, LogWriter, Sample, sample_log};
use punctual_model::{ClockTime, MonoTime, Nanos};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::*};

/// Late wake-ups of one thread that the log holds. They are rare, and read after each stop.
const ROOM: usize = 256;
/// Gaps of one thread that the log holds, of which half are read at a time: 160 000 a second.
const GAPS: usize = 1 << 14;
/// The mark that is written into the trace.
const MARK: &[u8] = b"punctual: late";

/// State shared by the measured threads of a cell: the threshold, and the trace that the first late one stops.
#[derive(Debug)]
pub struct SpikeWatch {
    /// Latency, ns, above which a wake-up is a spike; `i64::MAX` for none.
    above_ns: AtomicI64,
    /// Whether the trace is stopped or not yet running: then no thread stops it.
    is_frozen: AtomicBool,
    /// Time of the last stop, `CLOCK_MONOTONIC`, ns; 0 before the first.
    frozen_since_ns: AtomicU64,
    /// The longest time that a thread took to stop the trace, ns; 0 before the first stop.
    longest_freeze_ns: AtomicU64,
    /// The file of marks; `None` where nothing stops a trace.
    marker: Option<File>,
    /// The file in which 0 stops the trace; `None` where the mark stops it.
    tracing_on: Option<File>,
    wake_tx: PipeWriter,
}

/// One thread's part of a [`SpikeWatch`].
#[derive(Debug)]
pub struct Watcher {
    watch: Arc<SpikeWatch>,
    /// Every spike of this thread, with its due time in place of its cycle: where a wait is relative, or for an answer,
    /// no due time follows from a cycle.
    late: LogWriter,
}

/// One late wake-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateWakeup {
    /// Due time, by the clock of its method.
    pub due: ClockTime,
    /// `woke - due`.
    pub latency: Nanos,
}

/// The late wake-ups of one thread, for a reader in another one.
#[derive(Debug)]
pub struct LateReader(LogReader);

impl LateReader {
    /// Passes the late wake-ups since the last call to `take`, in order of time.
    pub fn drain(&mut self, mut take: impl FnMut(LateWakeup)) {
        self.0.drain(|Sample { cycle, latency }| take(LateWakeup { due: ClockTime(cycle), latency }));
    }

    /// Late wake-ups lost for lack of room.
    pub fn lost(&self) -> u64 {
        self.0.lost()
    }
}

impl SpikeWatch {
    /// A watch on a trace. Marks are written to `marker`; 0 written to `tracing_on` stops the trace, or without that
    /// file the mark itself. Returns also a pipe that becomes readable when the trace was stopped. Nothing is a spike
    /// yet. Errors: when no pipe can be created.
    pub fn new(marker: File, tracing_on: Option<File>) -> io::Result<(Arc<SpikeWatch>, PipeReader)> {
        SpikeWatch::of(Some(marker), tracing_on)
    }

    /// A watch of threads that never wait: it notes every gap, and stops no trace. Errors: as [`SpikeWatch::new`].
    pub fn of_gaps() -> io::Result<Arc<SpikeWatch>> {
        SpikeWatch::of(None, None).map(|(watch, _)| watch)
    }

    fn of(marker: Option<File>, tracing_on: Option<File>) -> io::Result<(Arc<SpikeWatch>, PipeReader)> {
        let (wake_rx, wake_tx) = io::pipe()?;
        let watch = SpikeWatch {
            above_ns: AtomicI64::new(i64::MAX),
            is_frozen: AtomicBool::new(true),
            frozen_since_ns: AtomicU64::new(0),
            longest_freeze_ns: AtomicU64::new(0),
            marker,
            tracing_on,
            wake_tx,
        };
        Ok((Arc::new(watch), wake_rx))
    }

    /// Sets the latency, ns, above which a wake-up is a spike.
    pub fn set_above_ns(&self, above_ns: i64) {
        self.above_ns.store(above_ns, Relaxed);
    }

    /// The threshold, ns.
    pub fn above_ns(&self) -> i64 {
        self.above_ns.load(Relaxed)
    }

    /// Arms the watch: the trace runs, and the next spike stops it.
    pub fn arm(&self) {
        self.is_frozen.store(false, Release);
    }

    /// Disarms the watch: no spike stops the trace from now on. Returns whether the trace is already stopped.
    pub fn disarm(&self) -> bool {
        self.is_frozen.swap(true, AcqRel)
    }

    /// Time of the last stop of the trace; `None` before the first.
    pub fn frozen_since(&self) -> Option<MonoTime> {
        Some(MonoTime(self.frozen_since_ns.load(Relaxed))).filter(|since| since.0 > 0)
    }

    /// The longest time that a thread took to stop the trace, ns; `None` before the first stop.
    pub fn longest_freeze_ns(&self) -> Option<u64> {
        Some(self.longest_freeze_ns.load(Relaxed)).filter(|ns| *ns > 0)
    }

    /// Makes the pipe readable.
    pub fn wake(&self) {
        let _ = (&self.wake_tx).write(&[0]);
    }

    /// A thread's part, and the reader of its spikes.
    pub fn watcher(self: &Arc<Self>) -> (Watcher, LateReader) {
        let (late, reader) = sample_log(if self.marker.is_some() { ROOM } else { GAPS });
        (Watcher { watch: Arc::clone(self), late }, LateReader(reader))
    }
}

impl Watcher {
    /// Whether a wake-up is a spike.
    #[inline]
    pub(crate) fn is_spike(&self, _rt: &RtSection<'_>, latency: Nanos) -> bool {
        latency.0 > self.watch.above_ns.load(Relaxed)
    }

    /// Records a gap.
    #[inline]
    pub(crate) fn note(&mut self, rt: &RtSection<'_>, LateWakeup { due, latency }: LateWakeup) {
        self.late.push(rt, Sample { cycle: due.0, latency });
    }

    /// Records a spike, and stops the trace unless it is already stopped. Returns whether it stopped the trace. The two
    /// or three calls come after the reading of the clock, and their time is not counted as lateness.
    #[cold]
    pub(crate) fn take(&mut self, rt: &RtSection<'_>, LateWakeup { due, latency }: LateWakeup) -> bool {
        self.note(rt, LateWakeup { due, latency });
        if self.watch.is_frozen.compare_exchange(false, true, AcqRel, Relaxed).is_err() {
            return false;
        }
        let before = punctual_sys::clock::monotonic();
        self.watch.frozen_since_ns.store(before.0, Relaxed);
        // On failure the mark is missing, and the reader reports that.
        let _ = self.watch.marker.as_ref().map(|mut marker| marker.write(MARK));
        let _ = self.watch.tracing_on.as_ref().map(|mut tracing_on| tracing_on.write(b"0"));
        let _ = (&self.watch.wake_tx).write(&[1]);
        let took = punctual_sys::clock::monotonic().0.saturating_sub(before.0);
        self.watch.longest_freeze_ns.fetch_max(took, Relaxed);
        true
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::OwnedFd;

    /// A watch whose files are pipes.
    fn watch() -> (Arc<SpikeWatch>, PipeReader, [PipeReader; 2]) {
        let ((marks, marker), (ons, on)) = (io::pipe().unwrap(), io::pipe().unwrap());
        let (watch, wake_rx) = SpikeWatch::new(OwnedFd::from(marker).into(), Some(OwnedFd::from(on).into())).unwrap();
        (watch, wake_rx, [marks, ons])
    }

    #[test]
    fn the_first_spike_stops_the_trace_and_the_others_are_noted() {
        let (watch, mut wake_rx, [mut marks, mut ons]) = watch();
        let (mut watcher, mut late) = watch.watcher();
        let late_by = |ns| LateWakeup { due: ClockTime(5), latency: Nanos(ns) };
        let (said, allocations) = RtSection::enter(|rt| {
            let before = watcher.is_spike(rt, Nanos(i64::MAX));
            watch.set_above_ns(100);
            let limit = (watcher.is_spike(rt, Nanos(100)), watcher.is_spike(rt, Nanos(101)));
            let unarmed = watcher.take(rt, late_by(101));
            watch.arm();
            (before, limit, unarmed, watcher.take(rt, late_by(102)), watcher.take(rt, late_by(103)))
        });
        assert_eq!((said, allocations), ((false, (false, true), false, true, false), 0));
        let mut byte = [9];
        assert_eq!((wake_rx.read(&mut byte).unwrap(), byte), (1, [1]));
        let mut text = [0; 64];
        let n = marks.read(&mut text).unwrap();
        assert_eq!(&text[..n], MARK);
        assert_eq!((ons.read(&mut byte).unwrap(), byte), (1, *b"0"));
        let mut noted = Vec::new();
        late.drain(|late| noted.push((late.due.0, late.latency.0)));
        assert_eq!(noted, [(5, 101), (5, 102), (5, 103)]);
        assert!(watch.longest_freeze_ns().is_some() && watch.frozen_since().is_some());
        assert!(watch.disarm());
    }
}
