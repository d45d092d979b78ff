//! The measurers of a cell: threads of this process, or processes of their own.

use super::CellError;
use punctual_model::{
    Cell, ClockStep, CostRecord, Ended, ExplainRecord, InstrumentRecord, MonoTime, OnSpikeRecord, ResponseRecord,
    RuntimeRecord, Span, ThreadProgress, ThreadRecord, WatchRecord,
};
use punctual_store::SampleWriter;
use std::fmt::Debug;
use std::time::Duration;

/// Measures on every CPU of a cell. Dropping it ends everything that it has started.
pub(super) trait Measurers: Debug {
    /// Releases the measurers. Errors: when they cannot be signaled.
    fn release(&mut self) -> Result<Window, CellError>;

    /// Waits until all have ended, at most `timeout`; returns whether they have.
    fn wait(&mut self, timeout: Duration) -> bool;

    /// The time after the last due time during which they may wait for answers still on their way.
    fn lingers(&self) -> Span {
        Span(0)
    }

    /// Stops them now: the measured window ends with the due times so far.
    fn stop(&mut self);

    /// Collects their measurements so far, and passes the samples to `samples`. Called about once a second. Errors:
    /// when one of them failed, or the samples cannot be kept.
    fn collect(&mut self, samples: &mut Option<SampleWriter>) -> Result<(), CellError>;

    /// IDs of the threads that measure, or whose sleep is measured.
    fn thread_ids(&self) -> Vec<u32>;

    fn progress(&self) -> Vec<ThreadProgress>;

    /// Stops waiting for those that have not ended, and returns the measurement. Errors: when one of them failed, so
    /// that its results are not what was requested, or the samples cannot be kept.
    fn finish(&mut self, samples: &mut Option<SampleWriter>) -> Result<Measurement, CellError>;
}

/// The window of the measured due times, `CLOCK_MONOTONIC`, as far as it is known at the release.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// The first due time.
    pub(super) started: MonoTime,
    /// One period after the last due time.
    pub(super) ends: MonoTime,
}

/// Results of all measurers.
#[derive(Debug, Default)]
pub(super) struct Measurement {
    /// The first measured due time.
    pub(super) started: MonoTime,
    /// The measured time.
    pub(super) measured: Span,
    /// The way that it ended, as far as the measurers know.
    pub(super) ended: Ended,
    pub(super) threads: Vec<ThreadRecord>,
    pub(super) clock_steps: Vec<ClockStep>,
    /// The language, if one was measured.
    pub(super) runtime: Option<RuntimeRecord>,
    /// The outside program, if one measured.
    pub(super) instrument: Option<InstrumentRecord>,
    /// Other events of a link besides answers in time, if a link was measured.
    pub(super) response: Option<ResponseRecord>,
    /// Explanations of late wake-ups, if requested.
    pub(super) explained: Option<ExplainRecord>,
    /// The record of the command that runs at spikes, if there is one.
    pub(super) on_spike: Option<OnSpikeRecord>,
    /// Costs of operations, if measured.
    pub(super) cost: Option<CostRecord>,
    /// Activations of watched threads, if there are any.
    pub(super) watch: Option<WatchRecord>,
}

impl Measurement {
    /// A measurement of threads of `cell`, measured to the end. Errors: when no cycle was due: it ended before the
    /// first.
    pub(super) fn of(started: MonoTime, cell: &Cell, threads: Vec<ThreadRecord>) -> Result<Measurement, CellError> {
        let length = |thread: &ThreadRecord| thread.cycles_due.saturating_mul(thread.period_in(cell).ns());
        let longest = threads.iter().map(length).max().filter(|ns| *ns > 0).ok_or(CellError::NothingMeasured)?;
        // The last period of a thread with a longer one exceeds the window, which is that of the first thread.
        let window = (cell.end_cycle() - cell.first_cycle()).saturating_mul(cell.period.ns());
        let measured = Span(longest.min(window));
        let ended = Ended::Completed;
        Ok(Measurement::of_threads(started, measured, ended, threads))
    }

    /// A measurement of threads, without any other results.
    pub(super) fn of_threads(
        started: MonoTime,
        measured: Span,
        ended: Ended,
        threads: Vec<ThreadRecord>,
    ) -> Measurement {
        Measurement { started, measured, ended, threads, ..Measurement::default() }
    }
}
