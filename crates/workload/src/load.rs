//! Background work during a measurement: processes that are counted, checked, and always stopped.
//!
//! Each part of a load has a supervisor. This process starts the workers, reports when one ends, and kills all of them
//! and removes their files when it is stopped or its parent has ended.

mod catalogue;
mod cpu;
mod files;
mod idle_timeout;
mod job;
mod kernel;
mod messaging;
mod monitor;
mod programs;
mod report;
mod running;
mod supervisor;
mod workers;

pub use catalogue::CATALOGUE;
pub use monitor::LoadMonitor;
use punctual_model::{CpuSet, Load, LoadPart, Policy, Span};
pub use running::Running;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The place and the scheduling of a load.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// CPUs that the load may use.
    pub cpus: &'a CpuSet,
    /// The scheduling policy of the load.
    pub policy: Policy,
    /// Limit of a real-time load, which then ends by itself, by the clock or by CPU time, whatever happens to this
    /// program.
    pub at_most: Span,
}

/// The reason that a load does not work.
#[derive(Debug, thiserror::Error)]
#[error("load {load}: {reason}")]
pub struct LoadError {
    /// The load as typed.
    pub(crate) load: String,
    /// The failure, and advice.
    pub(crate) reason: String,
}

/// Starts all parts of `load` and returns when all of them work; an empty list for `none`.
///
/// Call it while this process has one thread: the supervisors are forked. Errors: when a part cannot be started or does
/// not begin to work; what was started is stopped again.
pub fn start(load: &Load, place: &Place<'_>) -> Result<Vec<Running>, LoadError> {
    load.parts().iter().map(|part| Running::start(part, place)).collect()
}

/// The reason that `load` is not available on this machine, which is a missing program; `None` when it is available.
pub fn why_not(load: &Load) -> Option<String> {
    load.parts().iter().find_map(|part| match part {
        LoadPart::Program(program) => programs::look_up(program).err(),
        _ => None,
    })
}

/// Counts one operation. The calling worker is the only writer of its counter.
fn count_one(count: Option<&AtomicU64>) {
    count_several(count, 1);
}

/// Counts `n` operations, as [`count_one`] does.
fn count_several(count: Option<&AtomicU64>, n: u64) {
    if let Some(count) = count {
        count.store(count.load(Relaxed) + n, Relaxed);
    }
}

/// The name of the directory and the control group that supervisor `pid` creates for its load.
fn own_name(pid: u32) -> String {
    punctual_host::named("punctual-load", pid)
}
