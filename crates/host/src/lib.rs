//! The machine: its facts, the rights of this user on it, and the requests held while measuring.
//!
//! The only module that reads or writes below `/proc` and `/sys`.
#![forbid(unsafe_code)]

mod activity;
mod boot_arguments;
mod boots;
mod cgroup;
mod cobalt_threads;
mod dma_latency;
#[cfg(target_arch = "x86_64")]
mod dma_timers;
pub mod file;
mod floor;
mod host_fs;
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

pub use activity::{ActivityLog, BelowKernel};
pub use boot_arguments::without_effect;
pub use boots::{
    BootWay, NoBoot, ResumeUnit, boot_next, changeable_by_others, forget_boots, installed_kernels, is_lost_by_a_boot,
    other_users, restart_system, way_to_boot,
};
pub use cgroup::{Cgroup, cpu_us_of_group, enter_group, is_stopped};
pub use cobalt_threads::{CobaltTask, cobalt_tasks};
pub use dma_latency::DmaLatency;
#[cfg(target_arch = "x86_64")]
pub use dma_timers::dma_timers;
pub use floor::keep_floor;
pub use host_fs::HostFs;
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
pub use prepare::{Permanent, Preparation, changes_something, changing_process, knobs, permanent, recover};
pub use private_directory::PrivateDirectory;
pub use privilege::{Privileges, drop_rights_of_file, how_to_allow, how_to_allow_others};
pub use process::{
    check_proc, children_of, is_gone, is_initial_pid_namespace, kernel_release, look_at_all_processes,
    memory_locked_bytes_of, name_of_thread, no_thread, own_id_of, pid_namespace, running_kernel, started_ticks_of,
    state_of_thread, thread_as_known_to, threads_of, times_of_thread, turns_of_thread, with_descendants,
};
pub use programs::{BINARIES_VARIABLE, program_for, program_of};
pub use refused::{RefusedBy, limit_of};
pub use sha256::sha256;
pub use smi::SmiCounter;
pub use snapshot::{cpus_at, kernel_config, snapshot, spinning_tasks};
pub use status::{configured_cpus, load_average, memory_available_bytes, node_of_cpu, offset_from_monotonic_ns};
pub use symbols::{KernelSymbols, kernel_functions};
pub use trace_mark::TraceMark;
pub use tracer::{HWLAT_MODE, NoTracer, Tracer, TracerRequest};
pub use watched::{CpuGroups, executable_of, is_in_group, is_in_unit, open_file, process_of, processes};

use std::path::PathBuf;

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
