//! The second phase: the load runs and the measured threads wait at the barrier.

use super::CellError;
use super::children::Children;
use super::costs::Costs;
use super::link;
use super::measured::Measured;
use super::measurers::Measurers;
use super::prepared::Prepared;
use super::program::OutsideProgram;
use super::readings::Readings;
use super::sleepers::Sleepers;
use super::threads::Threads;
use super::timerbench::Driver;
use super::watch::Watcher;
use punctual_import::{READS_RESULTS, left_out};
use punctual_model::{Ended, MonoTime, Policy, Progress, Span, Task};
use punctual_workload::load::Running;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// A cell that is ready to measure; the next step is to release the threads.
#[derive(Debug)]
pub struct Armed {
    /// Dropped first, so that nothing measures any more when the load ends and the host is restored.
    pub(super) measurers: Box<dyn Measurers>,
    pub(super) loads: Vec<Running>,
    pub(super) prepared: Prepared,
}

/// Grace time for a late thread after the last due time, before its open wait is recorded as such.
const END_GRACE: Span = Span(250_000_000);
/// Interval at which the logs are emptied and the machine is sampled.
const TICK: Span = Span::SECOND;

impl Prepared {
    /// Starts the load and prepares the measurers, up to the barrier.
    ///
    /// The load starts before any thread: its workers are forked, which needs a process with one thread. A language
    /// runtime starts before the load, because it needs time to start up. Errors: when the load does not run, memory
    /// cannot be locked, or a thread's settings are refused or not kept.
    pub fn arm(self) -> Result<Armed, CellError> {
        let cell = &self.cell;
        // The parent may run nice or in real time; the load must not inherit that.
        punctual_sys::sched::set_policy(0, Policy::OTHER)
            .map_err(|err| CellError::setting("run at nice 0 (start without `nice`)", err))?;
        let sleepers = match &cell.task {
            Task::Sleep(runtime) => Some(Sleepers::arm(&self, *runtime)?),
            _ => None,
        };
        // Beside a load that fills the only CPU of a guest, binding 20 devices takes seconds of its time.
        let timers = link::timers_of(cell)?;
        let loads = self.start_load(&[cell.conditions.warm_up, cell.duration])?;
        punctual_sys::fail::point("loads-started");
        // Only the measuring process enters the cgroup; the load stays outside.
        if let Some(group) = &cell.conditions.prepare.cgroup {
            punctual_host::enter_group(Path::new(group)).map_err(CellError::Setting)?;
        }
        let measurers: Box<dyn Measurers> = match sleepers {
            Some(sleepers) => Box::new(sleepers),
            None if let Task::Program(instrument) = &cell.task => {
                if !READS_RESULTS {
                    return Err(CellError::Impossible(left_out()));
                }
                Box::new(OutsideProgram::arm(&self, instrument)?)
            }
            None if let Task::Watch(watch) = &cell.task => Box::new(Watcher::arm(&self, watch)?),
            None if let Task::Timerbench(context) = cell.task => Box::new(Driver::arm(&self, context)?),
            None if let Task::Cost(scope) = cell.task => Box::new(Costs::arm(&self, scope)?),
            None if cell.task.is_in_other_processes() && cell.cpus.len() > 1 => Box::new(Children::arm(&self)?),
            None => Box::new(Threads::arm(&self, timers)?),
        };
        // This thread empties the logs. It leaves the measured CPUs if there are others.
        let others = self.allowed.minus(&cell.cpus);
        if !others.is_empty() {
            punctual_sys::sched::set_affinity(0, &others)
                .map_err(|err| CellError::setting("leave the measured CPUs", err))?;
        }
        punctual_sys::fail::point("cell-armed");
        Ok(Armed { measurers, loads, prepared: self })
    }
}

impl Armed {
    /// Measures until the end of the cell, or until `stop` is set. The end is by the wall clock, even if the measured
    /// threads never run. `observe` is called about once a second. Errors: when the load ends early, or a wait fails.
    pub fn measure(mut self, stop: &AtomicBool, mut observe: impl FnMut(Progress)) -> Result<Measured, CellError> {
        let window = self.measurers.release()?;
        let started = window.started;
        punctual_sys::fail::point("threads-released");
        let mut readings = None;
        let mut ended = Ended::Completed;
        let mut tick = punctual_sys::clock::monotonic().plus(TICK).min(started);
        let grace = Span(END_GRACE.ns() + self.measurers.lingers().ns());
        let mut last_moment = window.ends.plus(grace);
        loop {
            let finished = self.measurers.wait(until(tick.min(last_moment)));
            let now = punctual_sys::clock::monotonic();
            if stop.load(Relaxed) && ended == Ended::Completed {
                self.measurers.stop();
                (ended, last_moment) = (Ended::Interrupted, now.plus(grace));
            }
            self.measurers.collect(&mut self.prepared.samples)?;
            match &mut readings {
                None if now >= started => {
                    // A load that ended before this point fails the cell, even without `load_must_hold`.
                    if let Some((load, reason)) = self.loads.iter().find_map(|load| Some((load, load.failure()?))) {
                        return Err(load.error(reason).into());
                    }
                    let (cell, threads) = (&self.prepared.cell, self.measurers.thread_ids());
                    readings = Some(Readings::begin(started, cell, threads, &self.loads));
                }
                None => {}
                Some(readings) => readings.read(&self.loads)?,
            }
            let elapsed = Span(now.0.saturating_sub(started.0));
            let loads = readings.as_ref().map_or_else(Vec::new, Readings::progress);
            observe(Progress { elapsed, threads: self.measurers.progress(), loads });
            punctual_sys::fail::point("cell-looked");
            if finished || now >= last_moment {
                break;
            }
            let next = tick.max(now).plus(TICK);
            tick = if readings.is_some() { next } else { next.min(started) };
        }
        let (loads, machine) = readings.map_or_else(Default::default, |readings| readings.finish(&self.loads));
        let mut measurement = self.measurers.finish(&mut self.prepared.samples)?;
        if ended == Ended::Interrupted {
            measurement.ended = ended;
        }
        punctual_sys::fail::point("cell-measured");
        let Armed { measurers, loads: running, prepared } = self;
        Ok(Measured { measurers, running, prepared, measurement, loads, machine })
    }
}

/// The time from now until `instant`.
fn until(instant: MonoTime) -> Duration {
    Duration::from_nanos(instant.0.saturating_sub(punctual_sys::clock::monotonic().0))
}
