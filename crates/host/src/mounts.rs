//! File systems: the mount point of tracefs, and the mounts of PID 1 of a guest.

use super::HostFs;
use std::io;
use std::path::PathBuf;
use sys::{boot, mount};

/// The two mount points of tracefs (Documentation/trace/ftrace.rst).
pub(super) const TRACEFS_MOUNTS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// The mount point of tracefs that supports instances; `None` when tracefs is not mounted. The lookup mounts it where
/// the kernel does so by itself (`debug/tracing`).
pub fn tracing_dir() -> Option<PathBuf> {
    let root = HostFs::running().root;
    TRACEFS_MOUNTS.iter().map(|mount| root.join(mount)).find(|dir| dir.join("instances").is_dir())
}

/// Whether tracefs is mounted but this process may not access it: by default only root may.
pub fn is_tracing_forbidden() -> bool {
    let root = HostFs::running().root;
    let mut dirs = TRACEFS_MOUNTS.iter().map(|mount| root.join(mount).join("instances"));
    dirs.any(|dir| dir.metadata().is_err_and(|err| err.kind() == io::ErrorKind::PermissionDenied))
}

/// Mounts tracefs in a system of our own; one with other users is left as it is.
///
/// # Errors
/// When the kernel has no tracefs.
pub fn mount_tracing() -> io::Result<()> {
    mount::file_system("tracefs", &format!("/{}", TRACEFS_MOUNTS[0]))
}

/// File systems and their mount points, which have to exist.
const FILE_SYSTEMS: [(&str, &str); 5] =
    [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp"), ("tmpfs", "/var/tmp")];

/// The mount points of a guest's own file systems.
pub fn mount_points() -> impl Iterator<Item = &'static str> {
    FILE_SYSTEMS.iter().map(|(_, place)| *place)
}

/// Mounts and brings up the parts of a system that a cell and its loads depend on.
///
/// # Errors
/// When the kernel lacks one of the file systems.
pub fn make_system() -> io::Result<()> {
    FILE_SYSTEMS.iter().try_for_each(|(kind, place)| mount::file_system(kind, place))?;
    // Where the kernel shows its preemption model; not every kernel has it.
    let _ = mount::file_system("debugfs", "/sys/kernel/debug");
    // Without a loopback device `tcp` and `udp` fail with an error of their own.
    let _ = boot::bring_up_loopback();
    Ok(())
}
