//! Namespaces: what a process shares with the rest of the machine, and what it has for itself (namespaces(7)).

use super::check;
use std::ffi::CStr;
use std::io;

/// Where POSIX shared memory lies, shm_overview(7).
const SHARED_MEMORY: &CStr = c"/dev/shm";

/// From now on shared memory, semaphores and message queues that the calling process and its descendants make, those of
/// System V and of POSIX, are theirs alone, and go with the last of them (ipc_namespaces(7)).
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`; nothing is changed then.
pub fn have_ipc_of_ones_own() -> io::Result<()> {
    // SAFETY: the call takes integers only.
    check(unsafe { libc::unshare(libc::CLONE_NEWIPC | libc::CLONE_NEWNS) }.into())?;
    // What is mounted from here on is mounted here only, mount_namespaces(7).
    mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE)?;
    mount(c"tmpfs", SHARED_MEMORY, libc::MS_NOSUID | libc::MS_NODEV)
}

/// mount(2) of something without a source of its own.
pub(super) fn mount(kind: &CStr, place: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    // SAFETY: all strings end with NUL and outlive the call; a null `data` is allowed (mount(2)).
    check(unsafe { libc::mount(kind.as_ptr(), place.as_ptr(), kind.as_ptr(), flags, std::ptr::null()) }.into())
        .map(drop)
}
