//! Background work while measuring: processes that are counted, checked, and always stopped.
//!
//! Each part of a load has a keeper, a process that starts its workers, says when one ends, and kills all of them and
//! removes their files when it is told to stop or whoever started it is gone.

mod catalogue;
mod cpu;
mod files;
mod job;
mod keeper;
mod kernel;
mod messaging;
mod monitor;
mod programs;
mod report;
mod running;
mod workers;

pub use catalogue::CATALOGUE;
use model::{CpuSet, Load, LoadPart, Policy, Span};
pub use monitor::LoadMonitor;
pub use running::Running;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Where and how a load runs.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// CPUs that it may use.
    pub cpus: &'a CpuSet,
    /// How it is scheduled.
    pub policy: Policy,
    /// A real-time load ends by itself after this time, by the clock or of CPU time, whatever happens to this program.
    pub at_most: Span,
}

/// Why a load does not do its work.
#[derive(Debug, thiserror::Error)]
#[error("load {load}: {reason}")]
pub struct LoadError {
    /// The load as typed.
    pub(crate) load: String,
    /// What is wrong, and what to do.
    pub(crate) reason: String,
}

/// Starts all parts of `load` and returns when all of them work; nothing for `none`.
///
/// Call it while this process has one thread: the keepers are forked.
///
/// # Errors
/// When a part cannot be started or does not begin to work; what was started is stopped again.
pub fn start(load: &Load, place: &Place<'_>) -> Result<Vec<Running>, LoadError> {
    load.parts().iter().map(|part| Running::start(part, place)).collect()
}

/// Why `load` cannot be had here: a program that is missing; `None` when it can.
pub fn why_not(load: &Load) -> Option<String> {
    load.parts().iter().find_map(|part| match part {
        LoadPart::Program(program) => programs::look_up(program).err(),
        _ => None,
    })
}

/// Counts one operation. The calling worker is the only writer of its counter.
fn count_one(count: Option<&AtomicU64>) {
    if let Some(count) = count {
        count.store(count.load(Relaxed) + 1, Relaxed);
    }
}

/// The name of what keeper `pid` makes for its load: a directory, a control group.
fn own_name(pid: u32) -> String {
    host::named("punctual-load", pid)
}
