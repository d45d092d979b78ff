//! File systems: where tracefs is, and those that the first process of a guest mounts.

use super::HostFs;
use std::io;
use std::path::PathBuf;
use sys::{boot, mount};

/// The two places that tracefs is mounted at (Documentation/trace/ftrace.rst).
pub(super) const TRACEFS_MOUNTS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// Where tracefs is mounted, with room for private instances; `None` when it is nowhere. Looking mounts it, where the
/// kernel does so by itself (`debug/tracing`).
pub fn tracing_dir() -> Option<PathBuf> {
    let root = HostFs::running().root;
    TRACEFS_MOUNTS.iter().map(|mount| root.join(mount)).find(|dir| dir.join("instances").is_dir())
}

/// Whether tracefs is mounted and this process may not look into it: only root may, by default.
pub fn is_tracing_forbidden() -> bool {
    let root = HostFs::running().root;
    let mut dirs = TRACEFS_MOUNTS.iter().map(|mount| root.join(mount).join("instances"));
    dirs.any(|dir| dir.metadata().is_err_and(|err| err.kind() == io::ErrorKind::PermissionDenied))
}

/// Mounts tracefs, in a system that we have made: one that others use keeps what it has.
///
/// # Errors
/// When the kernel has none.
pub fn mount_tracing() -> io::Result<()> {
    mount::file_system("tracefs", &format!("/{}", TRACEFS_MOUNTS[0]))
}

/// File systems, and where they are mounted; the places have to exist.
const FILE_SYSTEMS: [(&str, &str); 5] =
    [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp"), ("tmpfs", "/var/tmp")];

/// Where a guest has file systems of its own.
pub fn mount_points() -> impl Iterator<Item = &'static str> {
    FILE_SYSTEMS.iter().map(|(_, place)| *place)
}

/// Makes what a cell and its loads expect of any system.
///
/// # Errors
/// When the kernel lacks one of the file systems.
pub fn make_system() -> io::Result<()> {
    FILE_SYSTEMS.iter().try_for_each(|(kind, place)| mount::file_system(kind, place))?;
    // Where the kernel shows its preemption model; not every one has it.
    let _ = mount::file_system("debugfs", "/sys/kernel/debug");
    // Without a loopback device there is nothing for `tcp` and `udp`; they will say so.
    let _ = boot::bring_up_loopback();
    Ok(())
}
