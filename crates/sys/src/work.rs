//! Calls that loads make to keep a part of the kernel busy.

use crate::check;
use crate::mapping::page_bytes;
use std::io;
use std::ptr::NonNull;

/// Maps `bytes` of memory, writes to each page, and unmaps it, `mmap(2)`. Errors: when there is no memory.
pub fn map_and_touch(bytes: usize) -> io::Result<()> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches no other memory (mmap(2)).
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let start: NonNull<u8> = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
    for offset in (0..bytes).step_by(page_bytes()) {
        // SAFETY: `offset` lies within the mapping just made.
        let page = unsafe { start.add(offset) };
        // SAFETY: the page belongs to the mapping, which is writable and has no other user.
        unsafe { page.write_volatile(1) };
    }
    // SAFETY: exactly the mapping made above; no reference to it is left.
    check(unsafe { libc::munmap(start.as_ptr().cast(), bytes) }.into()).map(drop)
}

/// Creates a process that exits at once, and waits for it, `fork(2)`. Errors: `EAGAIN` at `RLIMIT_NPROC`, `ENOMEM`.
pub fn fork_and_wait() -> io::Result<()> {
    // SAFETY: the child makes one async-signal-safe call, which ends it.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: `_exit` takes an integer and does not return.
        unsafe { libc::_exit(0) };
    }
    check(pid.into())?;
    // SAFETY: a null status is allowed (waitpid(2)).
    check(unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) }.into()).map(drop)
}

/// Writes all dirty data to disk, `sync(2)`.
pub fn sync() {
    // SAFETY: the call takes no arguments and cannot fail.
    unsafe { libc::sync() };
}

extern "C" fn do_nothing(_signal: libc::c_int) {}

/// Installs a handler for SIGUSR1 that does nothing, `sigaction(2)`.
pub fn handle_signal() -> io::Result<()> {
    let handler: extern "C" fn(libc::c_int) = do_nothing;
    // SAFETY: the handler is async-signal-safe: it does nothing.
    let previous = unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    if previous == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends SIGUSR1 to the calling thread, which has handled it when this returns, `raise(3)`.
pub fn signal_oneself() -> io::Result<()> {
    // SAFETY: the call takes an integer; the signal has a handler (see `handle_signal`) or ends this process.
    check(unsafe { libc::raise(libc::SIGUSR1) }.into()).map(drop)
}
