//! Background work while measuring: processes that are counted, checked, and always stopped.

mod cpu;
mod crew;
mod kernel;
mod messaging;

pub(crate) use crew::{Crew, LoadError};

use model::{CpuSet, Load};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Starts `load` on `cpus` and returns when all of it works; `None` for [`Load::None`].
///
/// Call it while this process has one thread: the workers are forked.
///
/// # Errors
/// When a worker cannot be started or does not begin to work; what was started is stopped again.
pub(crate) fn start(load: &Load, cpus: &CpuSet) -> Result<Option<Crew>, LoadError> {
    match load {
        Load::None => Ok(None),
        Load::Cpu { percent } => cpu::start(load, *percent, cpus).map(Some),
        Load::Messaging { groups } => {
            let groups = groups.unwrap_or_else(|| messaging::default_groups(cpus.len()));
            messaging::start(load, groups).map(Some)
        }
        Load::Kernel(what) => kernel::start(load, *what, cpus.len()).map(Some),
    }
}

/// Counts one operation. The calling worker is the only writer of its counter.
fn count_one(count: Option<&AtomicU64>) {
    if let Some(count) = count {
        count.store(count.load(Relaxed) + 1, Relaxed);
    }
}
