//! Monitoring of one part of a load while it works: detection of stalls and of a lower rate.

use super::{LoadError, Running};
use punctual_model::{LoadFailure, LoadProgress, LoadRecord, LoadSecond, Percent, Span};

/// The readings of one part of a load, and the last one for comparison.
#[derive(Debug)]
pub struct LoadMonitor {
    record: LoadRecord,
    /// The share of its first rate that the load must hold.
    must_hold: Option<Percent>,
    workers: Workers,
    cpu_us: Option<u64>,
    counts_its_work: bool,
}

/// The workers that count their operations.
#[derive(Debug, Default)]
struct Workers {
    each: Vec<Worker>,
    /// Sum of their operations.
    operations: u64,
}

/// State of one worker.
#[derive(Debug, Clone, Copy, Default)]
struct Worker {
    operations: u64,
    /// Operations of all workers when this one last made progress.
    worked_at: u64,
}

/// A worker is stalled when the others have done this many operations each, on average, since its last one. With the
/// default load on two CPUs that takes 13 s; the fair scheduler was seen to keep a whole group waiting for 4 s.
const STALLED_AFTER: u64 = 50_000;

impl LoadMonitor {
    /// Takes the first reading.
    pub fn begin(load: &Running, must_hold: Option<Percent>) -> LoadMonitor {
        load.begin_costs();
        let counts = load.operations();
        let operations = counts.iter().sum();
        let each = counts.into_iter().map(|count| Worker { operations: count, worked_at: operations }).collect();
        LoadMonitor {
            record: load.record(),
            must_hold,
            workers: Workers { each, operations },
            cpu_us: load.cpu_us(),
            counts_its_work: load.counts_its_work(),
        }
    }

    /// Takes the next reading, `at` into the measured window, `elapsed` after the previous reading. Errors: when the
    /// load must hold its rate and does not.
    pub fn read(&mut self, load: &Running, at: Span, elapsed: Span) -> Result<(), LoadError> {
        let operations = self.workers.note(&load.operations());
        let cpu_us = load.cpu_us();
        let used_us = cpu_us.zip(self.cpu_us).map(|(now, before)| now.saturating_sub(before));
        self.cpu_us = cpu_us;
        self.record.seconds.push(LoadSecond { elapsed, operations: Some(operations), cpu_us: used_us });
        if let Some(reason) = load.failure().or_else(|| self.stall()) {
            if self.must_hold.is_some() {
                return Err(load.error(format!("{reason}; the load must hold, so this cell is not recorded")));
            }
            // The first reason is the cause; later ones follow from it.
            self.record.failure.get_or_insert(LoadFailure { at, reason });
        }
        self.check_share(load)
    }

    /// A message about workers without progress, either all of them or some while the others work on.
    fn stall(&self) -> Option<String> {
        let n_all = self.workers.each.len();
        let idle = if self.record.has_stalled() { n_all } else { self.workers.n_stalled() };
        (self.counts_its_work && idle > 0).then(|| format!("{idle} of {n_all} workers stalled"))
    }

    fn check_share(&self, load: &Running) -> Result<(), LoadError> {
        let Some((must_hold, share)) = self.must_hold.zip(self.record.lowest_share()) else { return Ok(()) };
        // Rounded down: 49.9 % is less than the half that it must hold.
        let percent = (share * 100.0).floor();
        if percent >= f64::from(must_hold.get()) {
            return Ok(());
        }
        let least = must_hold.get();
        Err(load.error(format!(
            "fell to {percent:.0} % of its rate at the start, below the {least} % that it must hold; \
             this cell is not recorded"
        )))
    }

    /// The work since the previous reading.
    pub fn progress(&self) -> LoadProgress {
        let LoadRecord { load, operation, seconds, .. } = &self.record;
        let last = seconds.last().filter(|last| self.counts_its_work && last.elapsed > Span(0));
        let rate = |last: &LoadSecond| {
            let per_second = u128::from(last.operations?) * 1_000_000_000 / u128::from(last.elapsed.ns());
            u64::try_from(per_second).ok()
        };
        LoadProgress { load: load.clone(), operation: operation.clone(), per_second: last.and_then(rate) }
    }

    /// The first failure of the load, if any.
    pub fn failure(&self) -> Option<&LoadFailure> {
        self.record.failure.as_ref()
    }

    /// The readings of the whole measurement, and the costs of the load's operations in it.
    pub fn finish(&self, load: &Running) -> LoadRecord {
        LoadRecord { cost: load.costs().map(Box::new), ..self.record() }
    }

    /// The readings so far.
    pub fn record(&self) -> LoadRecord {
        let mut record = self.record.clone();
        let has_run = record.seconds.iter().any(|second| second.operations != Some(0));
        if !self.counts_its_work && !has_run {
            // The rate of a single long run is unknown.
            record.seconds.iter_mut().for_each(|second| second.operations = None);
        }
        record
    }
}

impl Workers {
    /// Records the workers' counts; returns the number of operations since the last call.
    fn note(&mut self, counts: &[u64]) -> u64 {
        let all: u64 = counts.iter().sum();
        for (worker, &operations) in self.each.iter_mut().zip(counts) {
            if operations != worker.operations {
                *worker = Worker { operations, worked_at: all };
            }
        }
        all - std::mem::replace(&mut self.operations, all)
    }

    /// The number of workers without progress while the others worked.
    fn n_stalled(&self) -> usize {
        let enough = STALLED_AFTER.saturating_mul(self.each.len() as u64);
        self.each.iter().filter(|worker| self.operations - worker.worked_at >= enough).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_stalled_once_the_others_have_left_it_far_behind() {
        let mut workers = Workers { each: vec![Worker::default(); 2], operations: 0 };
        for (counts, operations, stalled) in [
            ([5, 5], 10, 0),
            ([100_004, 5], 99_999, 0),
            ([100_005, 5], 1, 1),
            ([100_005, 5], 0, 1),
            ([100_005, 6], 1, 0),
        ] {
            assert_eq!((workers.note(&counts), workers.n_stalled()), (operations, stalled), "{counts:?}");
        }
    }
}
