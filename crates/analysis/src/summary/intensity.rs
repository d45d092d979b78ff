//! What the loads achieved while measuring, and how busy the machine was.

use crate::summary::pool::Pool;
use model::{Header, LoadRecord, MachineSecond};
use serde::Serialize;

/// What one part of a load achieved, over all blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadRate {
    /// The part as it is typed.
    pub load: String,
    /// What one operation is.
    pub operation: String,
    /// Operations a second; `None` for a program that does not say.
    pub per_second: Option<f64>,
    /// CPUs that it kept busy on average; `None` when that is not known.
    pub cpus_used: Option<f64>,
    /// The lowest of its rates as a share of the one that it began with, in the worst block; `None` when there is only
    /// one reading.
    pub lowest_share: Option<f64>,
}

/// How busy the machine was while measuring, as shares of the CPU time that there was, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Busy {
    /// Nothing ran; `None` when it cannot be read.
    pub idle: Option<f64>,
    /// The hypervisor ran something else; `None` when it cannot be read.
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

/// Over all blocks.
pub(super) fn busy(header: &Header, pool: &Pool<'_>) -> Busy {
    let cpus = header.host.cpus_online.as_ref().map(|cpus| cpus.len() as f64);
    let seconds = || pool.entries.iter().flat_map(|entry| &entry.record.machine);
    let elapsed_ms = seconds().map(|second| second.elapsed.ns()).sum::<u64>() as f64 / 1e6;
    let share = |of: fn(&MachineSecond) -> Option<u64>| {
        let ms = seconds().map(of).sum::<Option<u64>>()? as f64;
        // Ticks are counted at other instants than those between which they are compared.
        cpus.filter(|_| elapsed_ms > 0.0).map(|cpus| (ms / (elapsed_ms * cpus)).min(1.0))
    };
    Busy { idle: share(|second| second.idle_ms), steal: share(|second| second.steal_ms) }
}
