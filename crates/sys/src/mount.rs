//! Mounting file systems, and namespaces of a process (namespaces(7)).

use crate::check;
use std::ffi::{CStr, CString};
use std::io;

/// Mount point of POSIX shared memory, shm_overview(7).
const SHARED_MEMORY: &CStr = c"/dev/shm";

/// Mounts a new file system of `kind` at `place`, which must exist (mount(2)).
///
/// # Errors
/// The kernel's error; `EPERM` without `CAP_SYS_ADMIN`.
pub fn file_system(kind: &str, place: &str) -> io::Result<()> {
    mount(&CString::new(kind)?, &CString::new(place)?, 0)
}

/// Unshares shared memory, semaphores and message queues of System V and POSIX. Those that the calling process and its
/// descendants make from now on are private to them and disappear with the last process (ipc_namespaces(7)).
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`; nothing has changed then.
pub fn unshare_ipc() -> io::Result<()> {
    // SAFETY: the call takes integers only.
    check(unsafe { libc::unshare(libc::CLONE_NEWIPC | libc::CLONE_NEWNS) }.into())?;
    // Later mounts stay in this namespace, mount_namespaces(7).
    mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE)?;
    mount(c"tmpfs", SHARED_MEMORY, libc::MS_NOSUID | libc::MS_NODEV)
}

/// mount(2) without a source.
fn mount(kind: &CStr, place: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    // SAFETY: all strings end with NUL and outlive the call; a null `data` is allowed (mount(2)).
    check(unsafe { libc::mount(kind.as_ptr(), place.as_ptr(), kind.as_ptr(), flags, std::ptr::null()) }.into())
        .map(drop)
}
