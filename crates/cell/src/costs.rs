//! Measuring the cost of operations: one process runs them, and no thread waits for a due time.

use super::measurers::{Measurement, Measurers, Window};
use super::{CellError, prepared::Prepared};
use punctual_model::{Cell, CostRecord, CostScope, Ended, MonoTime, Span, ThreadProgress};
use punctual_store::SampleWriter;
use punctual_workload::cost::{CostError, NOT_REACHED, Suite, SuiteEvent, SuiteRequest};
use std::time::{Duration, Instant};

/// The suite of one cell.
#[derive(Debug)]
pub(super) struct Costs {
    suite: Suite,
    cell: Cell,
    scope: CostScope,
    cpu_dma_latency_us: Option<u32>,
    started: MonoTime,
    has_stopped: bool,
    /// The error of a failed wait; returned by the next `collect`.
    failed: Option<CostError>,
}

/// Extra time of a suite beyond its batches: to prepare operations, to find the batch size, and for operations that are
/// slower than their share of time. A load can make all of that many times longer.
const SUITE_TIME_FACTOR: u64 = 4;
const MIN_SUITE_MARGIN: Span = Span(120_000_000_000);

impl Costs {
    /// Starts the process of the suite. Call it before any thread is started. Errors: when an operation cannot be run
    /// here.
    pub(super) fn arm(prepared: &Prepared, scope: CostScope) -> Result<Costs, CellError> {
        let cell = prepared.cell.clone();
        let request = SuiteRequest { scope, cpus: cell.cpus.clone(), policy: cell.policy, duration: cell.duration };
        Ok(Costs {
            suite: Suite::start(&request)?,
            cell,
            scope,
            cpu_dma_latency_us: prepared.dma_latency.as_ref().map(|(_, us)| *us),
            started: MonoTime(0),
            has_stopped: false,
            failed: None,
        })
    }
}

impl Measurers for Costs {
    fn release(&mut self) -> Result<Window, CellError> {
        self.suite.release()?;
        self.started = punctual_sys::clock::monotonic();
        let longest =
            Span(self.cell.duration.ns().saturating_mul(SUITE_TIME_FACTOR).saturating_add(MIN_SUITE_MARGIN.ns()));
        Ok(Window { started: self.started, ends: self.started.plus(longest) })
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        while !self.has_stopped {
            let left = until.saturating_duration_since(Instant::now());
            match self.suite.listen(left) {
                Ok(SuiteEvent::Everything) => return true,
                Ok(SuiteEvent::Something) => {}
                // The signal may be a stop request, which the caller checks.
                Ok(SuiteEvent::Nothing | SuiteEvent::Signal) => return false,
                Err(err) => {
                    self.failed = Some(err);
                    return false;
                }
            }
        }
        true
    }

    fn stop(&mut self) {
        self.suite.stop();
        self.has_stopped = true;
        // What stops this process by a signal may have sent it to all processes.
        self.failed = None;
    }

    fn collect(&mut self, _: &mut Option<SampleWriter>) -> Result<(), CellError> {
        self.failed.take().map_or(Ok(()), |err| Err(err.into()))
    }

    fn thread_ids(&self) -> Vec<u32> {
        vec![self.suite.pid()]
    }

    fn progress(&self) -> Vec<ThreadProgress> {
        Vec::new()
    }

    fn finish(&mut self, _: &mut Option<SampleWriter>) -> Result<Measurement, CellError> {
        self.suite.stop();
        let measured = Span(punctual_sys::clock::monotonic().0.saturating_sub(self.started.0));
        let (operations, skipped) = self.suite.results(self.scope);
        if operations.is_empty() && skipped.iter().all(|skipped| skipped.reason == NOT_REACHED) {
            return Err(CellError::NothingMeasured);
        }
        let cost = CostRecord {
            policy: self.cell.policy,
            cpus: self.cell.cpus.clone(),
            cpu_dma_latency_us: self.cpu_dma_latency_us,
            clock_ns: self.suite.clock_ns(),
            operations,
            skipped,
        };
        let plain = Measurement::of_threads(self.started, measured, Ended::Completed, Vec::new());
        Ok(Measurement { cost: Some(cost), ..plain })
    }
}
