//! Mounting file systems, and namespaces of a process (namespaces(7)).

use crate::check;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Mount point of POSIX shared memory, shm_overview(7).
const SHARED_MEMORY: &CStr = c"/dev/shm";

/// Mounts a new file system of `kind` at `place`, which must exist (mount(2)). Errors: the kernel's error; `EPERM`
/// without `CAP_SYS_ADMIN`.
pub fn file_system(kind: &str, place: &str) -> io::Result<()> {
    mount(&CString::new(kind)?, &CString::new(place)?, 0)
}

/// Mounts the block device `source`, which has a file system of `kind`, at `place`, which must exist (mount(2)).
/// Errors: the kernel's error: `EPERM` without `CAP_SYS_ADMIN`, `ENODEV` for an unknown kind.
pub fn device(source: &str, kind: &str, place: &str) -> io::Result<()> {
    mount_source(&CString::new(source)?, &CString::new(kind)?, &CString::new(place)?, 0)
}

/// Unmounts what is mounted at `place`; its files are written before (umount(2)). Errors: `EBUSY` while files of it are
/// open.
pub fn leave(place: &str) -> io::Result<()> {
    let place = CString::new(place)?;
    // SAFETY: the string ends with NUL and outlives the call.
    check(unsafe { libc::umount2(place.as_ptr(), 0) }.into()).map(drop)
}

/// Makes a new file system of `kind` that is mounted nowhere (fsopen(2), fsmount(2)): it is reached through the
/// descriptor of its root only, and is gone when that is closed. Errors: the kernel's error: `EPERM` without
/// `CAP_SYS_ADMIN`, `ENODEV` for an unknown kind, `ENOSYS` before Linux 5.2.
pub fn detached(kind: &CStr) -> io::Result<OwnedFd> {
    // linux/mount.h; the same on all architectures.
    const FSOPEN_CLOEXEC: libc::c_uint = 1;
    const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
    const FSMOUNT_CLOEXEC: libc::c_uint = 1;
    const NOSUID_NODEV_NOEXEC: libc::c_uint = 0xe;
    let null = std::ptr::null::<libc::c_char>();
    // SAFETY: the name ends with NUL and outlives the call.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), FSOPEN_CLOEXEC) })?;
    // SAFETY: the command takes neither key nor value (fsconfig(2)), so both are null.
    let created = unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), FSCONFIG_CMD_CREATE, null, null, 0) };
    check(created)?;
    // SAFETY: the call takes integers only.
    let root = unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, NOSUID_NODEV_NOEXEC) };
    owned(root)
}

/// The descriptor that a call has returned.
fn owned(returned: libc::c_long) -> io::Result<OwnedFd> {
    let fd = i32::try_from(check(returned)?).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made the descriptor for this process, and nothing else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Unshares shared memory, semaphores and message queues of System V and POSIX. Those that the calling process and its
/// descendants make from now on are private to them and disappear with the last process (ipc_namespaces(7)). Errors:
/// `EPERM` without `CAP_SYS_ADMIN`, `EINVAL` on a kernel without `CONFIG_IPC_NS`; nothing has changed then.
pub fn unshare_ipc() -> io::Result<()> {
    // Two calls: where one for both fails for want of `CONFIG_IPC_NS`, the kernel (5.13) leaves the process in a mount
    // namespace that it has already taken apart, without `/dev`.
    for namespace in [libc::CLONE_NEWIPC, libc::CLONE_NEWNS] {
        // SAFETY: the call takes integers only.
        check(unsafe { libc::unshare(namespace) }.into())?;
    }
    // Later mounts stay in this namespace, mount_namespaces(7).
    mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE)?;
    mount(c"tmpfs", SHARED_MEMORY, libc::MS_NOSUID | libc::MS_NODEV)
}

/// Mounts a file system without a device: its source is its name only.
fn mount(kind: &CStr, place: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    mount_source(kind, kind, place, flags)
}

fn mount_source(source: &CStr, kind: &CStr, place: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    // SAFETY: all strings end with NUL and outlive the call; a null `data` is allowed (mount(2)).
    check(unsafe { libc::mount(source.as_ptr(), place.as_ptr(), kind.as_ptr(), flags, std::ptr::null()) }.into())
        .map(drop)
}
