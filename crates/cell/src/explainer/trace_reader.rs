//! The thread that takes each trace that a spike has stopped, and restarts it.
//!
//! While the trace is stopped, nothing is recorded. This thread therefore does nothing else: another one explains.

use super::COVERAGE_MARGIN;
use super::trace_queue::{Pages, TakenTrace, TraceQueue};
use crate::trace::PageSource;
use punctual_analysis::explain::{Answers, Stages, WaitsFor};
use punctual_ftrace::Decoder;
use punctual_model::{ClockId, Nice, Policy, RtPriority, Span};
use punctual_rt::{LateReader, LateWakeup, SpikeWatch};
use std::io::{PipeReader, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Interval at which the running trace is drained for per-wake-up statistics, before it is overwritten.
const DRAIN_INTERVAL: Duration = Duration::from_millis(200);
/// The same interval after more than a quarter of the trace's capacity arrived in one interval.
const BUSY_DRAIN_INTERVAL: Duration = Duration::from_millis(50);
/// The same interval where draining runs on a measured CPU.
const SHARED_CPU_DRAIN_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of the wait for a stopped trace where nothing is drained before.
const NO_DRAIN_INTERVAL: Duration = Duration::from_secs(3600);

/// The state of the taking thread.
pub(super) struct TraceReader<S> {
    /// The trace of the kernel, or a recorded one.
    pub(super) source: S,
    pub(super) decoder: Decoder,
    pub(super) wake_rx: PipeReader,
    pub(super) watch: Arc<SpikeWatch>,
    pub(super) is_over: Arc<AtomicBool>,
    pub(super) queue: Arc<TraceQueue>,
    /// Whether the thread has a CPU that is not measured.
    pub(super) has_own_cpu: bool,
    /// Whether the running trace is drained for statistics of every wake-up; otherwise it is read when it has stopped.
    pub(super) keeps_statistics: bool,
    pub(super) clock: ClockId,
    pub(super) waits_for: WaitsFor,
    /// One log of late wake-ups for each measured thread.
    pub(super) late: Vec<LateReader>,
    pub(super) stages: Stages,
    /// Stages of answers; empty where the threads wait for timers.
    pub(super) answers: Answers,
    /// Pages of each CPU since the trace was restarted.
    pub(super) pages: Pages,
    /// Whether older pages were dropped.
    pub(super) is_cut: bool,
    /// Start of the complete part of the trace, `CLOCK_MONOTONIC`, ns.
    pub(super) armed_ns: u64,
    pub(super) statistics: TraceStatistics,
}

/// Statistics of the trace and its gaps.
#[derive(Debug, Default)]
pub(super) struct TraceStatistics {
    /// The threshold at the first spike, ns.
    pub(super) first_above_ns: Option<i64>,
    /// Total time during which the trace was stopped.
    pub(super) stood_still: Span,
    /// The number of times that events were overwritten before they were read.
    pub(super) overwritten: u64,
    /// CPU time of the thread, us.
    pub(super) used_us: Option<u64>,
    /// Late wake-ups after the last trace, of each measured thread.
    pub(super) rest: Vec<Vec<LateWakeup>>,
    /// Offset of the clock of their due times from `CLOCK_MONOTONIC`, ns; positive when ahead.
    pub(super) ahead_ns: i64,
    /// Late wake-ups that found no room in the logs.
    pub(super) lost: u64,
}

impl<S: PageSource> TraceReader<S> {
    pub(super) fn run(mut self) -> (TraceStatistics, Stages, Answers, S) {
        // Each turn takes a fraction of a millisecond, and under load a normal thread waits many milliseconds for it.
        // Without the permission, or on a measured CPU, the thread runs at the highest nice priority.
        let urgent = RtPriority::new(1).filter(|_| self.has_own_cpu).map(Policy::Fifo);
        if urgent.is_none_or(|urgent| punctual_sys::sched::set_policy(0, urgent).is_err()) {
            let _ = punctual_sys::sched::set_policy(0, Policy::Other(Nice::HIGHEST));
        }
        let before = punctual_sys::usage::thread().ok();
        let mut interval = DRAIN_INTERVAL;
        while !self.is_over.load(Relaxed) {
            if !self.has_own_cpu {
                interval = SHARED_CPU_DRAIN_INTERVAL;
            }
            if !self.keeps_statistics {
                interval = NO_DRAIN_INTERVAL;
            }
            match punctual_sys::pipe::wait_readable(self.wake_rx.as_fd(), interval) {
                Ok(false) if !self.keeps_statistics => {}
                Ok(true) if self.wake_rx.read(&mut [0]).is_ok() && !self.is_over.load(Relaxed) => self.take_trace(),
                Ok(false) => {
                    interval =
                        if self.drain() > self.source.buffer_bytes() / 4 { BUSY_DRAIN_INTERVAL } else { DRAIN_INTERVAL }
                }
                _ => {}
            }
        }
        // A trace that was just stopped is taken, too.
        if self.watch.disarm() {
            self.take_trace();
        }
        self.drain();
        self.queue.end();
        let used = before
            .zip(punctual_sys::usage::thread().ok())
            .map(|(before, after)| punctual_sys::usage::since(&before, &after));
        self.statistics.used_us = used.map(|used| used.user_us + used.system_us);
        self.statistics.rest = self.late.iter_mut().map(taken).collect();
        self.statistics.ahead_ns = punctual_host::offset_from_monotonic_ns(self.clock);
        self.statistics.lost = self.late.iter().map(LateReader::lost).sum();
        (self.statistics, self.stages, self.answers, self.source)
    }

    /// Takes the stopped trace, restarts it, and pushes it to the explaining thread.
    fn take_trace(&mut self) {
        self.statistics.first_above_ns.get_or_insert(self.watch.above_ns());
        self.drain();
        self.stages.stood_still();
        let fresh = self.queue.pages(self.pages.len());
        let pages = std::mem::replace(&mut self.pages, fresh);
        let is_cut = std::mem::take(&mut self.is_cut);
        let late = self.late.iter_mut().map(taken).collect();
        let ahead_ns = punctual_host::offset_from_monotonic_ns(self.clock);
        let whole = TakenTrace { pages, is_cut, late, armed_ns: self.armed_ns, ahead_ns };
        if !self.is_over.load(Relaxed) && self.source.start().is_ok() {
            let now = punctual_sys::clock::monotonic();
            let still = self.watch.frozen_since().map_or(0, |since| now.0.saturating_sub(since.0));
            self.statistics.stood_still = Span(self.statistics.stood_still.ns().saturating_add(still));
            self.armed_ns = now.plus(COVERAGE_MARGIN).0;
            self.watch.arm();
        }
        self.queue.push(whole);
    }

    /// Drains the trace, and evaluates its timers; returns the most bytes of one CPU. At most as much is kept as fits
    /// the kernel's own buffer.
    fn drain(&mut self) -> usize {
        self.stages.set_ahead_ns(punctual_host::offset_from_monotonic_ns(self.clock));
        let (page_bytes, most) = (self.decoder.page_bytes(), self.source.buffer_bytes());
        let mut timers = Vec::new();
        let mut largest = 0;
        let mut fresh = (self.waits_for != WaitsFor::Timer).then(|| self.decoder.begin(self.pages.len()));
        for (cpu, pages) in self.pages.iter_mut().enumerate() {
            let before = pages.len();
            if self.source.drain(cpu, page_bytes, pages).is_err() {
                pages.clear();
            }
            let new = pages.get(before..).unwrap_or_default();
            largest = largest.max(new.len());
            match &mut fresh {
                _ if !self.keeps_statistics => {}
                None => self.statistics.overwritten += self.decoder.timers(new, |event| timers.push(event)),
                Some(fresh) => drop(self.decoder.read(fresh, cpu, new)),
            }
            let surplus = pages.len().saturating_sub(most).next_multiple_of(page_bytes);
            if surplus > 0 {
                pages.drain(..surplus);
                self.is_cut = true;
            }
        }
        self.stages.take(&mut timers);
        if let Some(mut fresh) = fresh {
            fresh.imply_switches();
            self.answers.take(&fresh);
        }
        largest
    }
}

fn taken(log: &mut LateReader) -> Vec<LateWakeup> {
    let mut late = Vec::new();
    log.drain(|one| late.push(one));
    late
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Recorded;
    use punctual_ftrace::testing::{decoder, page_of_all_kinds};
    use std::fs::File;

    #[test]
    fn a_recorded_trace_is_taken_like_a_live_one() {
        let directory = punctual_host::testing::Scratch::make();
        let pages = [page_of_all_kinds(1_000), page_of_all_kinds(9_000)];
        for (cpu, pages) in pages.iter().enumerate() {
            directory.file(&format!("cpu{cpu}"), pages);
        }
        let (watch, wake_rx) = SpikeWatch::new(File::create("/dev/null").unwrap(), None).unwrap();
        let queue = Arc::new(TraceQueue::new(true));
        let mut reader = TraceReader {
            source: Recorded::open(directory.dir()).unwrap(),
            decoder: decoder(),
            wake_rx,
            watch,
            is_over: Arc::new(AtomicBool::new(true)),
            queue: Arc::clone(&queue),
            has_own_cpu: false,
            keeps_statistics: true,
            clock: ClockId::Monotonic,
            waits_for: WaitsFor::Timer,
            late: Vec::new(),
            stages: Stages::new(std::iter::empty()),
            answers: Answers::new(std::iter::empty()),
            pages: vec![Vec::new(); 2],
            is_cut: false,
            armed_ns: 500,
            statistics: TraceStatistics::default(),
        };
        reader.take_trace();
        queue.end();
        let taken = queue.next().unwrap();
        assert_eq!((taken.armed_ns, taken.is_cut, taken.pages.as_slice()), (500, false, pages.as_slice()));
        assert!(queue.next().is_none());
    }
}
