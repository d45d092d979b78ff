//! Every system call and every unsafe operation of punctual, wrapped once and safe above.
//!
//! Each function makes one call and returns the kernel's result. Policy, retries and meaning belong to the callers.

pub mod alloc;
pub mod boot;
pub mod calls;
pub mod clock;
pub mod cobalt;
pub mod counter;
pub mod fail;
pub mod futex;
pub mod gpio;
pub mod handoff;
pub mod ipc;
pub mod lock;
pub mod mapping;
pub mod memory;
pub mod mount;
pub mod network;
pub mod parport;
pub mod perf;
pub mod pipe;
pub mod poll;
#[cfg(target_arch = "x86_64")]
pub mod port;
pub mod process;
pub mod pthread;
pub mod registers;
pub mod sched;
pub mod serial;
pub mod signal;
pub mod signal_handler;
pub mod socket;
pub mod spawn;
pub mod storage;
pub mod terminal;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod thread;
mod time;
pub mod timerfd;
pub mod timers;
pub mod usage;
pub mod waited;
pub mod work;

use std::io;

/// The result of a call that returns -1 and sets errno on failure.
fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A count or an amount that is never negative, from a word of C, whose size differs between machines.
fn unsigned(word: impl TryInto<u64>) -> u64 {
    word.try_into().unwrap_or(0)
}

/// The errno of an error that the kernel returned, for the measured thread.
#[expect(clippy::needless_pass_by_value, reason = "it stands where an error is mapped")]
#[inline]
pub fn errno(err: io::Error) -> i32 {
    err.raw_os_error().unwrap_or(libc::EIO)
}

/// The errno of a call that returned -1, for the measured thread: nothing is allocated.
#[inline]
fn errno_of(result: libc::c_long) -> Result<(), i32> {
    if result == -1 { Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)) } else { Ok(()) }
}
