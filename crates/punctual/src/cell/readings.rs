//! What is read once a second while measuring: the load's work and the machine's activity.

use crate::host::{Activity, HostFs};
use crate::load::{Crew, LoadError};
use model::{LoadRecord, LoadSecond, MachineSecond, MonoTime, Span};
use rt::sys;

/// The rows read so far, and what the next reading is compared with.
#[derive(Debug)]
pub(super) struct Readings {
    started: MonoTime,
    time: MonoTime,
    activity: Activity,
    /// The state of each worker that counts.
    workers: Vec<Worker>,
    /// Operations of all of them.
    operations: u64,
    load: Vec<LoadSecond>,
    machine: Vec<MachineSecond>,
}

/// What is known of one worker.
#[derive(Debug, Clone, Copy, Default)]
struct Worker {
    operations: u64,
    /// Operations of all workers when this one was last seen to have worked.
    worked_at: u64,
}

/// Work is expected of a load in every stretch at least this long; a shorter one may fall into a pause.
const EXPECT_WORK_IN: Span = Span(900_000_000);
/// A worker is stalled when the others have done this many operations each, on average, since it did one. With the
/// default load that takes seconds: far longer than any worker waits for its turn.
const STALLED_AFTER: u64 = 10_000;

impl Readings {
    /// The first reading; the measured window begins at `started`.
    pub(super) fn begin(started: MonoTime, crew: Option<&Crew>) -> Self {
        let counts = crew.map(Crew::operations).unwrap_or_default();
        let all = counts.iter().sum();
        Readings {
            started,
            time: sys::clock::monotonic(),
            activity: Activity::read(&HostFs::here()),
            workers: counts.into_iter().map(|operations| Worker { operations, worked_at: all }).collect(),
            operations: all,
            load: Vec::new(),
            machine: Vec::new(),
        }
    }

    /// Reads again.
    ///
    /// # Errors
    /// When the load, or a part of it, does nothing.
    pub(super) fn read(&mut self, crew: Option<&Crew>) -> Result<(), LoadError> {
        let (time, activity) = (sys::clock::monotonic(), Activity::read(&HostFs::here()));
        let elapsed = span(time, self.time);
        self.machine.push(activity.since(&self.activity, span(time, self.started), elapsed));
        (self.time, self.activity) = (time, activity);
        let Some(crew) = crew else { return Ok(()) };
        let counts = crew.operations();
        let operations = self.note(&counts);
        self.load.push(LoadSecond { elapsed, operations });
        let idle = if operations == 0 && elapsed >= EXPECT_WORK_IN { self.workers.len() } else { self.n_stalled() };
        if idle > 0 { Err(crew.stalled(idle)) } else { Ok(()) }
    }

    /// Takes the workers' counts; returns how many operations there were since the last time.
    fn note(&mut self, counts: &[u64]) -> u64 {
        let all: u64 = counts.iter().sum();
        for (worker, &operations) in self.workers.iter_mut().zip(counts) {
            if operations != worker.operations {
                *worker = Worker { operations, worked_at: all };
            }
        }
        all - std::mem::replace(&mut self.operations, all)
    }

    /// Workers that the others have left behind.
    fn n_stalled(&self) -> usize {
        let enough = STALLED_AFTER.saturating_mul(self.workers.len() as u64);
        self.workers.iter().filter(|worker| self.operations - worker.worked_at >= enough).count()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_stalled_once_the_others_have_left_it_far_behind() {
        let mut readings = Readings::begin(MonoTime(0), None);
        readings.workers = vec![Worker::default(); 2];
        for (counts, operations, stalled) in
            [([5, 5], 10, 0), ([20_004, 5], 19_999, 0), ([20_005, 5], 1, 1), ([20_005, 5], 0, 1), ([20_005, 6], 1, 0)]
        {
            assert_eq!((readings.note(&counts), readings.n_stalled()), (operations, stalled), "{counts:?}");
        }
    }
}
