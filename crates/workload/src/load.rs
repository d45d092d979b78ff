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
mod place;
mod programs;
mod report;
mod running;
mod supervisor;
mod workers;

pub use catalogue::CATALOGUE;
pub use monitor::LoadMonitor;
pub use place::{LoadError, Place};
use place::{count_one, count_several, own_name};
use punctual_model::{Load, LoadPart};
pub use running::Running;

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
