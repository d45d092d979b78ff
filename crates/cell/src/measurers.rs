//! What a cell measures with: threads of this process, or processes of their own.

use super::CellError;
use model::{
    ClockStep, CostRecord, Ended, ExplainRecord, MonoTime, OnSpikeRecord, Period, ResponseRecord, RuntimeRecord, Span,
    ThreadProgress, ThreadRecord,
};
use std::fmt::Debug;
use std::time::Duration;
use store::SampleWriter;

/// Measures on every CPU of a cell. Dropping it ends whatever it has started.
pub(super) trait Measurers: Debug {
    /// Lets them go.
    ///
    /// # Errors
    /// When they cannot be told to.
    fn release(&mut self) -> Result<Window, CellError>;

    /// Waits until all have ended, `timeout` at most; says whether they have.
    fn wait(&mut self, timeout: Duration) -> bool;

    /// How long after the last due time they may wait for what is on its way still.
    fn lingers(&self) -> Span {
        Span(0)
    }

    /// Has them end now: what was due so far is the measured window.
    fn stop(&mut self);

    /// Takes what they have measured so far, and hands it to `samples`. Called about once a second.
    ///
    /// # Errors
    /// When one of them failed, or the samples cannot be kept.
    fn collect(&mut self, samples: &mut Option<SampleWriter>) -> Result<(), CellError>;

    /// The ids of the threads that measure, or whose sleep is measured.
    fn thread_ids(&self) -> Vec<u32>;

    /// Where each of them stands.
    fn progress(&self) -> Vec<ThreadProgress>;

    /// Gives up waiting for those that have not ended, and tells what was measured.
    ///
    /// # Errors
    /// When one of them failed, so that its numbers are not what was asked, or the samples cannot be kept.
    fn finish(&mut self, samples: &mut Option<SampleWriter>) -> Result<Measurement, CellError>;
}

/// When the measured cycles are due, by `CLOCK_MONOTONIC`, as far as it was known when they were let go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// The first of them.
    pub(super) started: MonoTime,
    /// One period after the last.
    pub(super) ends: MonoTime,
}

/// What all of them measured.
#[derive(Debug)]
pub(super) struct Measurement {
    /// When the first measured cycle was due.
    pub(super) started: MonoTime,
    /// The time measured.
    pub(super) measured: Span,
    /// How it came to its end, as far as they know.
    pub(super) ended: Ended,
    pub(super) threads: Vec<ThreadRecord>,
    pub(super) clock_steps: Vec<ClockStep>,
    /// The language, if one was measured.
    pub(super) runtime: Option<RuntimeRecord>,
    /// What came over a link beside answers in time, if one was measured.
    pub(super) response: Option<ResponseRecord>,
    /// What made late wake-ups late, if that was asked.
    pub(super) explained: Option<ExplainRecord>,
    /// How the command fared that runs at spikes, if one was asked for.
    pub(super) on_spike: Option<OnSpikeRecord>,
    /// What operations cost, if that was measured.
    pub(super) cost: Option<CostRecord>,
}

impl Measurement {
    /// Of threads whose cycles are a `period` apart, measured to the end.
    ///
    /// # Errors
    /// When no cycle was due: it was over before the first.
    pub(super) fn of(started: MonoTime, period: Period, threads: Vec<ThreadRecord>) -> Result<Measurement, CellError> {
        let cycles = threads.iter().map(|thread| thread.cycles_due).max().filter(|cycles| *cycles > 0);
        let measured = Span(cycles.ok_or(CellError::NothingMeasured)?.saturating_mul(period.ns()));
        let ended = Ended::Completed;
        Ok(Measurement::of_threads(started, measured, ended, threads))
    }

    /// Of threads, with nothing to tell beside what they measured.
    pub(super) fn of_threads(
        started: MonoTime,
        measured: Span,
        ended: Ended,
        threads: Vec<ThreadRecord>,
    ) -> Measurement {
        Measurement {
            started,
            measured,
            ended,
            threads,
            clock_steps: Vec::new(),
            runtime: None,
            response: None,
            explained: None,
            on_spike: None,
            cost: None,
        }
    }
}
