//! Readings once a second during the measurement: the loads' work and the machine's activity.

use punctual_host::{ActivityLog, HostFs};
use punctual_model::{Cell, LoadProgress, LoadRecord, MachineSecond, MonoTime, Span};
use punctual_workload::load::{LoadError, LoadMonitor, Running};

/// The rows so far, and the last readings for comparison.
#[derive(Debug)]
pub(super) struct Readings {
    started: MonoTime,
    time: MonoTime,
    activity: ActivityLog,
    loads: Vec<LoadMonitor>,
    machine: Vec<MachineSecond>,
}

impl Readings {
    /// Takes the first reading; the measured window of `cell` begins at `started`, its threads are `threads`.
    pub(super) fn begin(started: MonoTime, cell: &Cell, threads: Vec<u32>, loads: &[Running]) -> Self {
        Readings {
            started,
            time: punctual_sys::clock::monotonic(),
            activity: ActivityLog::begin(HostFs::here(), &cell.cpus, threads),
            loads: loads.iter().map(|load| LoadMonitor::begin(load, cell.conditions.load_must_hold)).collect(),
            machine: Vec::new(),
        }
    }

    /// Takes the next reading. Errors: when a load that must hold its rate does not.
    pub(super) fn read(&mut self, loads: &[Running]) -> Result<(), LoadError> {
        let time = punctual_sys::clock::monotonic();
        let (at, elapsed) = (span(time, self.started), span(time, self.time));
        self.machine.push(self.activity.read(at, elapsed));
        self.time = time;
        self.loads.iter_mut().zip(loads).try_for_each(|(watch, load)| watch.read(load, at, elapsed))
    }

    /// The work of each load in the last second.
    pub(super) fn progress(&self) -> Vec<LoadProgress> {
        self.loads.iter().map(LoadMonitor::progress).collect()
    }

    /// All rows, and the costs of operations that a load timed.
    pub(super) fn finish(self, loads: &[Running]) -> (Vec<LoadRecord>, Vec<MachineSecond>) {
        (self.loads.iter().zip(loads).map(|(watch, load)| watch.finish(load)).collect(), self.machine)
    }
}

/// The time from `earlier` to `later`; 0 when `later` is before `earlier`.
fn span(later: MonoTime, earlier: MonoTime) -> Span {
    Span(later.0.saturating_sub(earlier.0))
}
