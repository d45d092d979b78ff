//! What is read once a second while measuring: the load's work and the machine's activity.

use crate::host::{Activity, HostFs};
use crate::load::{Crew, LoadError};
use model::{LoadRecord, LoadSecond, MachineSecond, MonoTime, Span};
use rt::sys;
use std::time::Duration;

/// The rows read so far, and what the next reading is compared with.
#[derive(Debug)]
pub(super) struct Readings {
    started: MonoTime,
    time: MonoTime,
    activity: Activity,
    operations: u64,
    load: Vec<LoadSecond>,
    machine: Vec<MachineSecond>,
}

/// Work is expected of a load in every stretch at least this long; a shorter one may fall into a pause.
const EXPECT_WORK_IN: Span = Span(900_000_000);

impl Readings {
    /// The first reading; the measured window begins at `started`.
    pub(super) fn begin(started: MonoTime, crew: Option<&Crew>) -> Self {
        Readings {
            started,
            time: sys::clock::monotonic(),
            activity: Activity::read(&HostFs::here()),
            operations: crew.map_or(0, Crew::operations),
            load: Vec::new(),
            machine: Vec::new(),
        }
    }

    /// Reads again.
    ///
    /// # Errors
    /// When the load has lost a worker or done nothing.
    pub(super) fn read(&mut self, crew: Option<&Crew>) -> Result<(), LoadError> {
        let (time, activity) = (sys::clock::monotonic(), Activity::read(&HostFs::here()));
        let elapsed = span(time, self.time);
        self.machine.push(activity.since(&self.activity, span(time, self.started), elapsed));
        (self.time, self.activity) = (time, activity);
        let Some(crew) = crew else { return Ok(()) };
        crew.check_alive()?;
        let all = crew.operations();
        let operations = all - self.operations;
        self.operations = all;
        self.load.push(LoadSecond { elapsed, operations });
        if elapsed >= EXPECT_WORK_IN {
            crew.check_worked(operations, Duration::from_nanos(elapsed.ns()))?;
        }
        Ok(())
    }

    /// All rows.
    pub(super) fn finish(self, crew: Option<&Crew>) -> (Option<LoadRecord>, Vec<MachineSecond>) {
        let load = crew.map(|crew| LoadRecord {
            operation: crew.operation.to_owned(),
            workers: crew.n_workers() as u64,
            seconds: self.load,
        });
        (load, self.machine)
    }
}

/// From `earlier` to `later`; 0 when it is the other way round.
fn span(later: MonoTime, earlier: MonoTime) -> Span {
    Span(later.0.saturating_sub(earlier.0))
}
