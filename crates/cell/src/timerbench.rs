//! Measuring with Cobalt's own driver: its kernel task or timer handler measures, and its result is that of the cell.

mod result;

use super::measurers::{Measurement, Measurers, Window};
use super::program::of_reported;
use super::{CellError, prepared::Prepared};
use punctual_host::{CobaltTask, HostFs};
use punctual_model::{
    Achieved, Cell, CobaltContext, CpuSet, Ended, InstrumentRecord, InstrumentThread, MonoTime, Policy, RtPriority,
    Span, ThreadProgress,
};
use punctual_store::SampleWriter;
use punctual_sys::cobalt::timerbench::{DEVICE, Outcome, Request, Timerbench, reason};
use result::{Batches, Buckets};
use std::time::Duration;

/// The driver, measuring one cell. No thread of ours waits in it: one of Cobalt, woken every second, would be a second
/// real-time thread on the measured CPU.
#[derive(Debug)]
pub(super) struct Driver {
    cell: Cell,
    context: CobaltContext,
    batches: Batches,
    buckets: Buckets,
    /// Version of Xenomai.
    version: Option<String>,
    cpu_dma_latency_us: Option<u32>,
    bench: Timerbench,
    started: MonoTime,
    ends: MonoTime,
    is_stopped: bool,
    task: Option<CobaltTask>,
    /// The result, or the errno of its end.
    outcome: Option<Result<Outcome, i32>>,
}

/// Time from the start to the first due time (`timer_task_proc`, `rt_tmbench_start`).
const FIRST_DUE: Span = Span(1_000_000);

impl Driver {
    /// Binds this process to Cobalt and opens the device. Errors: in one line: Cobalt or the driver is absent or
    /// refuses this user.
    pub(super) fn arm(prepared: &Prepared, context: CobaltContext) -> Result<Driver, CellError> {
        punctual_sys::cobalt::bind().map_err(CellError::Setting)?;
        let bench = Timerbench::open().map_err(|errno| CellError::Setting(reason(errno)))?;
        let cell = prepared.cell.clone();
        let cobalt = prepared.host.cokernel.as_ref().and_then(|cokernel| cokernel.cobalt.as_ref());
        Ok(Driver {
            batches: Batches::of(cell.period),
            buckets: Buckets::FINE,
            version: cobalt.and_then(|cobalt| cobalt.version.clone()),
            cpu_dma_latency_us: prepared.dma_latency.as_ref().map(|(_, us)| *us),
            context,
            bench,
            started: MonoTime(0),
            ends: MonoTime(0),
            is_stopped: false,
            task: None,
            outcome: None,
            cell,
        })
    }

    /// Starts the driver, with wider buckets where memory is fragmented.
    fn start(&mut self) -> Result<(), CellError> {
        let priority = self.cell.policy.priority().filter(|_| self.context == CobaltContext::Kernel);
        let period_ns = u32::try_from(self.cell.period.ns()).unwrap_or(u32::MAX);
        let request =
            |Buckets { n, width_ns }: Buckets| Request { priority, period_ns, buckets: n, bucket_ns: width_ns };
        let mut result = self.bench.start(&request(self.buckets));
        if result == Err(libc::ENOMEM) {
            self.buckets = Buckets::COARSE;
            result = self.bench.start(&request(self.buckets));
        }
        result.map_err(|errno| CellError::Setting(reason(errno)))
    }

    /// Reads back where the kernel task runs: Linux starts it on any CPU, and Cobalt leaves it there.
    fn find_task(&self) -> Result<Option<CobaltTask>, CellError> {
        if self.context == CobaltContext::Handler {
            return Ok(None);
        }
        let tasks = punctual_host::cobalt_tasks(&HostFs::here(), CobaltContext::DRIVER).unwrap_or_default();
        let newest = tasks.into_iter().max_by_key(|task| task.tid);
        match newest.filter(|task| !self.cell.cpus.contains(task.cpu)) {
            Some(task) => Err(CellError::Driver(format!(
                "{DEVICE}: its kernel task runs on CPU {}, not {}, where Linux started it; repeat, or measure that CPU",
                task.cpu, self.cell.cpus
            ))),
            None => Ok(newest),
        }
    }

    fn cpu(&self) -> u32 {
        self.cell.cpus.iter().next().unwrap_or(0)
    }

    fn record(&self, outcome: &Outcome) -> Result<InstrumentRecord, CellError> {
        let result = result::imported(self.context, self.cell.period, self.buckets, outcome);
        let mut result = result.map_err(|reason| CellError::Driver(format!("{DEVICE}: {reason}")))?;
        result.source.version.clone_from(&self.version);
        result.conditions.policy = self.task.and_then(|task| task.policy);
        result.threads.iter_mut().for_each(|thread| thread.cpu = Some(self.cpu()));
        let thread = |task: CobaltTask| {
            let cpus = CpuSet::from_iter([task.cpu]);
            Some(InstrumentThread { name: CobaltContext::DRIVER.to_owned(), policy: task.policy?, cpus })
        };
        let wall = Span(punctual_sys::clock::monotonic().0.saturating_sub(self.started.0));
        Ok(InstrumentRecord {
            program: Some(DEVICE.to_owned()),
            command_line: Vec::new(),
            status: String::new(),
            wall,
            result_sha256: punctual_host::sha256(&result::bytes(outcome)[..]).unwrap_or_default(),
            threads: self.task.and_then(thread).into_iter().collect(),
            result,
        })
    }
}

impl Measurers for Driver {
    fn release(&mut self) -> Result<Window, CellError> {
        // It must end the measurement within half a period, or samples of an unfinished second follow. Without the
        // right to that, they do.
        let _ = RtPriority::new(1).map(|priority| punctual_sys::sched::set_policy(0, Policy::Fifo(priority)));
        self.start()?;
        self.started = punctual_sys::clock::monotonic();
        self.task = self.find_task()?;
        let first = self.started.plus(FIRST_DUE);
        let measured = self.batches.within(self.cell.duration);
        // The last batch ends with its last due time, and the next one begins a period later.
        let half = Span(self.cell.period.ns() / 2);
        self.ends = MonoTime(first.plus(self.batches.length()).plus(measured).0.saturating_sub(half.ns()));
        Ok(Window { started: first.plus(self.batches.length()), ends: self.ends })
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        let left = |ends: MonoTime| Duration::from_nanos(ends.0.saturating_sub(punctual_sys::clock::monotonic().0));
        if !self.is_stopped {
            std::thread::sleep(timeout.min(left(self.ends)));
        }
        let has_ended = self.is_stopped || left(self.ends).is_zero();
        if has_ended && self.outcome.is_none() {
            // At once: whatever is done first takes time, in which further samples arrive.
            self.outcome = Some(self.bench.stop());
        }
        has_ended
    }

    fn stop(&mut self) {
        self.is_stopped = true;
    }

    fn collect(&mut self, _: &mut Option<SampleWriter>) -> Result<(), CellError> {
        Ok(())
    }

    fn thread_ids(&self) -> Vec<u32> {
        self.task.iter().map(|task| task.tid).collect()
    }

    fn progress(&self) -> Vec<ThreadProgress> {
        Vec::new()
    }

    fn finish(&mut self, _: &mut Option<SampleWriter>) -> Result<Measurement, CellError> {
        let outcome = self.outcome.take().unwrap_or_else(|| self.bench.stop());
        let outcome = outcome.map_err(|errno| CellError::Driver(reason(errno)))?;
        if outcome.batches < 1 && self.is_stopped {
            return Err(CellError::NothingMeasured);
        }
        let record = self.record(&outcome)?;
        let achieved = || Achieved {
            policy: self.task.and_then(|task| task.policy).unwrap_or(self.cell.policy),
            cpus: self.cell.cpus.clone(),
            cpu_dma_latency_us: self.cpu_dma_latency_us,
            ..Achieved::default()
        };
        let threads = &record.result.threads;
        let threads = threads.iter().filter_map(|thread| of_reported(thread, self.cpu(), achieved())).collect();
        let first = self.started.plus(FIRST_DUE).plus(self.batches.length());
        let measured = record.result.measured.unwrap_or(Span(0));
        let plain = Measurement::of_threads(first, measured, Ended::Completed, threads);
        Ok(Measurement { instrument: Some(record), ..plain })
    }
}
