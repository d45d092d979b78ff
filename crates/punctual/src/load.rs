//! Background work while measuring: processes that are counted, checked, and always stopped.

mod cpu;
mod crew;
mod messaging;

pub(crate) use crew::{Crew, LoadError};

use model::Load;

/// Starts `load` and returns when all of it works; `None` for [`Load::None`].
///
/// Call it while this process has one thread: the workers are forked.
///
/// # Errors
/// When a worker cannot be started or does not begin to work; what was started is stopped again.
pub(crate) fn start(load: &Load, n_cpus: usize) -> Result<Option<Crew>, LoadError> {
    match load {
        Load::None => Ok(None),
        Load::Cpu => cpu::start(load, n_cpus).map(Some),
        Load::Messaging { groups } => {
            let groups = groups.unwrap_or_else(|| messaging::default_groups(n_cpus));
            messaging::start(load, groups).map(Some)
        }
    }
}
