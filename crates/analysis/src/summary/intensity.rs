//! Achieved rates of the loads, and utilization of the machine, during the measurement.

use crate::summary::pool::Pool;
use punctual_model::{Header, LoadRecord, MachineSecond};
use serde::Serialize;

/// The rate of one part of a load, over all blocks.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LoadRate {
    /// The part as it is typed.
    pub load: String,
    /// Meaning of one operation.
    pub operation: String,
    /// Operations a second; `None` for a program that does not report them.
    pub per_second: Option<f64>,
    /// Average number of CPUs that it kept busy; `None` if unknown.
    pub cpus_used: Option<f64>,
    /// The lowest of its rates as a share of its first one, in the worst block; `None` with a single reading.
    pub lowest_share: Option<f64>,
}

/// Utilization of the machine during the measurement, as shares of the available CPU time, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct Busy {
    /// Idle; `None` if unreadable.
    pub idle: Option<f64>,
    /// Stolen by the hypervisor; `None` if unreadable.
    pub steal: Option<f64>,
}

/// One for each part, in the order of the load.
pub(super) fn loads(pool: &Pool<'_>) -> Vec<LoadRate> {
    let parts = pool.entries.iter().map(|entry| entry.record.loads.len()).max().unwrap_or(0);
    (0..parts).filter_map(|part| rate(pool, part)).collect()
}

fn rate(pool: &Pool<'_>, part: usize) -> Option<LoadRate> {
    let records: Vec<_> = pool.entries.iter().filter_map(|entry| entry.record.loads.get(part)).collect();
    let first = records.first()?;
    let together = LoadRecord {
        seconds: records.iter().flat_map(|record| record.seconds.iter().copied()).collect(),
        ..LoadRecord::default()
    };
    Some(LoadRate {
        load: first.load.clone(),
        operation: first.operation.clone(),
        per_second: together.per_second(),
        cpus_used: together.cpus_used(),
        lowest_share: records.iter().filter_map(|record| record.lowest_share()).min_by(f64::total_cmp),
    })
}

/// Utilization over all blocks.
pub(super) fn busy(header: &Header, pool: &Pool<'_>) -> Busy {
    let cpus = header.host.cpus_online.as_ref().map(|cpus| cpus.len() as f64);
    let seconds = || pool.entries.iter().flat_map(|entry| &entry.record.machine);
    let elapsed_ms = seconds().map(|second| second.elapsed.ns()).sum::<u64>() as f64 / 1e6;
    let share = |of: fn(&MachineSecond) -> Option<u64>| {
        let ms = seconds().map(of).sum::<Option<u64>>()? as f64;
        // Ticks are sampled at other instants than the elapsed time, so the share may exceed 1.
        cpus.filter(|_| elapsed_ms > 0.0).map(|cpus| (ms / (elapsed_ms * cpus)).min(1.0))
    };
    Busy { idle: share(|second| second.idle_ms), steal: share(|second| second.steal_ms) }
}
