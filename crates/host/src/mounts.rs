//! File systems: the mount point of tracefs, and the mounts of PID 1 of a guest.

use super::HostFs;
use punctual_sys::{boot, mount, process};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The two mount points of tracefs (Documentation/trace/ftrace.rst).
pub(super) const TRACEFS_MOUNTS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// Reason why this process cannot trace.
#[derive(Debug, thiserror::Error)]
pub enum NoTracing {
    /// The user is not root.
    #[error("tracing needs root, and this process runs as user {0}; run as root")]
    NotRoot(u32),
    /// Root lacks the capability, as in most containers.
    #[error(
        "tracing needs CAP_SYS_ADMIN, which root lacks here; run outside the container, or start it with --cap-add \
         SYS_ADMIN"
    )]
    NotCapable,
    /// The kernel has locked its memory down.
    #[error(
        "kernel lockdown `confidentiality` forbids tracing; boot with lockdown=integrity or none (kernel_lockdown(7))"
    )]
    Lockdown,
    /// The kernel has no tracefs, or none that this process can mount.
    #[error("tracefs cannot be mounted: {0}; as root: mount -t tracefs nodev /sys/kernel/tracing")]
    Absent(io::Error),
}

/// The root of a tracefs that supports instances: where it is mounted, or else a mount of this process alone, which
/// ends with the process. The lookup mounts it where the kernel does so by itself (`debug/tracing`). Errors: without
/// tracefs in the kernel, or without the right to use it.
pub fn tracing_dir() -> Result<PathBuf, NoTracing> {
    let fs = HostFs::running();
    let has_instances = |dir: &PathBuf| dir.join("instances").is_dir();
    if let Some(dir) = TRACEFS_MOUNTS.iter().map(|mount| fs.root.join(mount)).find(has_instances) {
        return Ok(dir);
    }
    let dir = private_tracefs().map_err(|err| match (err.raw_os_error(), process::effective_user_id()) {
        (Some(libc::EPERM), 0) => NoTracing::NotCapable,
        (Some(libc::EPERM), user) => NoTracing::NotRoot(user),
        _ => NoTracing::Absent(err),
    })?;
    let is_locked_down =
        || fs.text("sys/kernel/security/lockdown").is_some_and(|modes| modes.contains("[confidentiality]"));
    match () {
        () if has_instances(&dir) => Ok(dir),
        // tracefs is empty then (tracefs_create_file, fs/tracefs/inode.c).
        () if is_locked_down() => Err(NoTracing::Lockdown),
        () => Err(NoTracing::Absent(io::Error::other("it has no instances"))),
    }
}

/// The root of a tracefs that is mounted nowhere else, the same one each time.
fn private_tracefs() -> io::Result<PathBuf> {
    static ROOT: Mutex<Option<OwnedFd>> = Mutex::new(None);
    let mut root = ROOT.lock().unwrap_or_else(PoisonError::into_inner);
    let root = match &mut *root {
        Some(root) => root,
        none => none.insert(mount::detached(c"tracefs")?),
    };
    Ok(PathBuf::from(format!("/proc/self/fd/{}", root.as_raw_fd())))
}

/// Mounts tracefs in a system of our own; one with other users is left as it is. Errors: when the kernel has no
/// tracefs.
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

/// Mounts and brings up the parts of a system that a cell and its loads depend on. Errors: when the kernel lacks one of
/// the file systems.
pub fn make_system() -> io::Result<()> {
    FILE_SYSTEMS.iter().try_for_each(|(kind, place)| mount::file_system(kind, place))?;
    // Where the kernel shows its preemption model; not every kernel has it.
    let _ = mount::file_system("debugfs", "/sys/kernel/debug");
    // Without a loopback device `tcp` and `udp` fail with an error of their own.
    let _ = boot::bring_up_loopback();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_a_private_tracefs_is_mounted_nowhere_and_the_same_each_time() {
        match private_tracefs() {
            Ok(dir) => {
                assert_eq!(private_tracefs().unwrap(), dir);
                assert!(dir.join("trace_marker").exists(), "{}", dir.display());
                // Other processes mount meanwhile: the id of this mount counts (proc_pid_fdinfo(5)).
                let opened = std::fs::File::open(dir).unwrap();
                let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", opened.as_raw_fd())).unwrap();
                let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:")).unwrap().trim();
                let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
                assert!(mounts.lines().all(|mount| mount.split(' ').next() != Some(id)), "{id}: {mounts}");
            }
            Err(err) => println!("skipped: needs root and tracefs ({err})"),
        }
    }
}
