//! The machine: its facts, the rights of this user on it, and the requests held while measuring.
//!
//! The only module that reads or writes below `/proc` and `/sys`.
#![forbid(unsafe_code)]

mod activity;
mod boot_arguments;
mod cgroup;
mod cobalt_threads;
mod dma_latency;
#[cfg(target_arch = "x86_64")]
mod dma_timers;
pub mod file;
mod kernel_log;
mod leftovers;
mod lock;
mod mapped;
mod mounts;
mod output;
mod pci;
mod ports;
mod prepare;
mod private_directory;
mod privilege;
mod process;
mod programs;
#[cfg(any(test, feature = "testing"))]
pub mod recorded;
mod refused;
mod semaphores;
mod sha256;
mod smi;
mod snapshot;
mod status;
mod symbols;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod trace_mark;
mod tracer;
mod watched;

pub use activity::ActivityLog;
pub use boot_arguments::without_effect;
pub use cgroup::{Cgroup, cpu_us_of_group, enter_group, is_stopped};
pub use cobalt_threads::{CobaltTask, cobalt_tasks};
pub use dma_latency::DmaLatency;
#[cfg(target_arch = "x86_64")]
pub use dma_timers::dma_timers;
pub use leftovers::{
    MARK, OwnDirectory, end_group, is_process, kill_marked, named, remove_leftovers, remove_leftovers_of_guests,
};
pub use lock::{LockError, MachineLock, MonitorMark, Subject, keep_lock, pass_lock};
pub use mapped::{MappedCode, debug_file, mapped_code, perf_map};
pub use mounts::{NoTracing, make_system, mount_points, mount_tracing, tracing_dir};
pub use output::{
    ANSWER_BYTES, Lines, OutputLimit, TooMuchOutput, end_waits_with, end_within, is_wait_to_end, output_of, written,
};
pub use pci::{DeviceMemory, device_memory};
pub use ports::{disable_rx_buffering, parallel_port, uio_name};
pub use prepare::{Permanent, Preparation, changing_process, knobs, permanent, recover};
pub use private_directory::PrivateDirectory;
pub use privilege::{Privileges, drop_rights_of_file, how_to_allow, how_to_allow_others};
pub use process::{
    check_proc, children_of, is_gone, is_initial_pid_namespace, kernel_release, look_at_all_processes,
    memory_locked_bytes_of, name_of_thread, no_thread, own_id_of, pid_namespace, started_ticks_of, state_of_thread,
    thread_as_known_to, threads_of, times_of_thread, turns_of_thread, with_descendants,
};
pub use programs::{BINARIES_VARIABLE, program_for, program_of};
pub use refused::{RefusedBy, limit_of};
pub use sha256::sha256;
pub use smi::SmiCounter;
pub use snapshot::{cpus_at, kernel_config, snapshot, spinning_tasks};
pub use status::{configured_cpus, load_average, memory_available_bytes, node_of_cpu, offset_from_monotonic_ns};
pub use symbols::KernelSymbols;
pub use trace_mark::TraceMark;
pub use tracer::{NoTracer, Tracer, TracerRequest};
pub use watched::{CpuGroups, executable_of, is_in_group, is_in_unit, open_file, process_of, processes};

use std::path::{Path, PathBuf};

/// This program, also when its file was replaced since it started (proc_pid_exe(5)).
pub const THIS_PROGRAM: &str = "/proc/self/exe";

/// Word of every lab guest's command line that the kernel does not know.
///
/// It passes it to init as an environment variable (Documentation/admin-guide/kernel-parameters.rst), and init to its
/// children.
pub const GUEST_VARIABLE: &str = "PUNCTUAL_GUEST";

/// The path under which a process started with this open file can open it (proc_pid_fd(5)). The descriptors of another
/// process are inaccessible where that one has more privileges, as this one has after setcap(8).
pub fn name_of_open(file: &impl std::os::fd::AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// The root below which facts are read: `/` in use, a recorded machine in tests.
#[derive(Debug, Clone)]
pub struct HostFs {
    root: PathBuf,
}

impl HostFs {
    /// The running machine, or the one whose `/proc` and `/sys` are below `PUNCTUAL_ROOT`, for testing changes of
    /// settings without making any.
    pub fn here() -> Self {
        HostFs { root: std::env::var_os("PUNCTUAL_ROOT").map_or_else(|| PathBuf::from("/"), PathBuf::from) }
    }

    /// The running kernel, whatever [`HostFs::here`] is: processes are always its own.
    fn running() -> Self {
        HostFs { root: PathBuf::from("/") }
    }

    /// Whether this is the running machine.
    fn is_running(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The text of a file, without trailing white space; `None` when it is unreadable, empty or not UTF-8.
    fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = std::fs::read_to_string(self.root.join(path)).ok()?;
        let text = text.trim_end_matches(['\n', '\0', ' ']);
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The number in a file; `None` when it has none.
    fn number<T: std::str::FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.text(path)?.trim().parse().ok()
    }

    /// The number in a property of the device tree with one cell, which is big-endian (Devicetree Specification 2.2.4).
    fn cell(&self, path: impl AsRef<Path>) -> Option<u32> {
        let bytes = std::fs::read(self.root.join(path)).ok()?;
        bytes.try_into().ok().map(u32::from_be_bytes)
    }

    /// The names in a directory, sorted; none when it cannot be read.
    fn names_in(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// The names in a directory that are numbers, in ascending order.
    fn numbers_in(&self, path: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.names_in(path).iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The directories in a directory, in the order of their names.
    fn directories_in(&self, path: &str) -> Vec<String> {
        let directory = self.root.join(path);
        self.names_in(path).into_iter().filter(|name| directory.join(name).is_dir()).collect()
    }

    /// Whether a path exists.
    fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.root.join(path).exists()
    }
}

#[cfg(test)]
mod tests {
    use super::HostFs;
    use crate::testing::Scratch;

    impl Scratch {
        /// The machine whose files are in this directory.
        pub(crate) fn machine(&self) -> HostFs {
            HostFs { root: self.dir().to_owned() }
        }
    }
}
