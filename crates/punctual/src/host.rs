//! The machine: its facts, what this user may do on it, what is held while measuring.
//!
//! The only module that reads or writes below `/proc` and `/sys`.

mod activity;
mod clock;
mod dma_latency;
mod lock;
mod preemption;
mod privilege;
mod process;
mod processes;
#[cfg(test)]
pub(crate) mod recorded;
mod smi;
mod snapshot;
mod status;
mod trace_mark;

pub(crate) use activity::Activity;
pub(crate) use clock::ahead_of_monotonic_ns;
pub(crate) use dma_latency::DmaLatency;
pub(crate) use lock::MachineLock;
pub(crate) use privilege::{Privileges, how_to_allow};
pub(crate) use process::{memory_locked_bytes_of, threads_of};
pub(crate) use processes::look_at_all_processes;
pub(crate) use smi::SmiCounter;
pub(crate) use snapshot::snapshot;
pub(crate) use status::{configured_cpus, load_average, node_of_cpu};
pub(crate) use trace_mark::TraceMark;

use std::path::{Path, PathBuf};

/// This program, also when its file was replaced since it started (proc_pid_exe(5)).
pub(crate) const THIS_PROGRAM: &str = "/proc/self/exe";

/// The root that facts are read below: `/` in use, a recorded machine in tests.
#[derive(Debug, Clone)]
pub(crate) struct HostFs {
    root: PathBuf,
}

impl HostFs {
    /// Reads the machine this runs on.
    pub(crate) fn here() -> Self {
        HostFs { root: PathBuf::from("/") }
    }

    /// The text of a file, without trailing white space; `None` when it cannot be read, is empty or is no text.
    fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = std::fs::read_to_string(self.root.join(path)).ok()?;
        let text = text.trim_end_matches(['\n', '\0', ' ']);
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A file that holds one number.
    fn number<T: std::str::FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.text(path)?.trim().parse().ok()
    }

    /// Whether a path exists.
    fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.root.join(path).exists()
    }
}
