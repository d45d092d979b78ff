//! Futexes: a counter that threads wait for, also with a timeout, and locks with priority inheritance.

use crate::time::{self, timespec_of};
use punctual_model::{ClockId, ClockTime};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering::*};

/// A counter of the threads of this process, 0 at first.
#[derive(Debug, Default)]
pub struct Futex(AtomicU32);

impl Futex {
    /// Waits while it is 0, until `due` on the monotonic or realtime clock: `FUTEX_WAIT_BITSET` has an absolute timeout
    /// (futex(2)). Errors: the errno, such as `EINTR`, or `EAGAIN` when it is not 0. A timeout is a success.
    #[inline]
    pub fn wait_until(&self, clock: ClockId, due: ClockTime) -> Result<(), i32> {
        let timeout = timespec_of(due.0);
        let realtime = if clock == ClockId::Realtime { libc::FUTEX_CLOCK_REALTIME } else { 0 };
        let operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG | realtime;
        let (word, expected) = (self.0.as_ptr(), 0_u32);
        let (unused, any) = (std::ptr::null::<u32>(), libc::FUTEX_BITSET_MATCH_ANY);
        // SAFETY: `word` is a valid futex word and `timeout` a valid timespec; both outlive the call, which ignores the
        // fifth argument.
        let result =
            unsafe { libc::syscall(time::SYS_futex, word, operation, expected, &raw const timeout, unused, any) };
        match io::Error::last_os_error().raw_os_error() {
            _ if result == 0 => Ok(()),
            Some(libc::ETIMEDOUT) | None => Ok(()),
            Some(errno) => Err(errno),
        }
    }

    /// Adds one and wakes a waiter, `FUTEX_WAKE`. Errors: the errno.
    #[inline]
    pub fn post(&self) -> Result<(), i32> {
        self.0.fetch_add(1, AcqRel);
        call(&self.0, libc::FUTEX_WAKE, 1)
    }

    /// Waits until it is above 0 and subtracts one, `FUTEX_WAIT`. Errors: the errno, `EINTR` included.
    #[inline]
    pub fn take(&self) -> Result<(), i32> {
        while self.0.fetch_update(AcqRel, Acquire, |n| n.checked_sub(1)).is_err() {
            match call(&self.0, libc::FUTEX_WAIT, 0) {
                Ok(()) | Err(libc::EAGAIN) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Whether it is above 0.
    #[inline]
    pub fn is_posted(&self) -> bool {
        self.0.load(Acquire) > 0
    }
}

/// A lock with priority inheritance between threads of this process; it contains the id of its holder (futex(2)).
#[derive(Debug, Default)]
pub struct PiFutex(AtomicU32);

impl PiFutex {
    /// Locks it for thread `me`, the calling one. Errors: the errno; `ENOSYS` on a kernel without `CONFIG_FUTEX_PI`.
    #[inline]
    pub fn lock(&self, me: u32) -> Result<(), i32> {
        if self.try_lock(me) { Ok(()) } else { call(&self.0, libc::FUTEX_LOCK_PI, 0) }
    }

    /// Locks it for thread `me`, unless it has a holder; makes no system call.
    #[inline]
    pub fn try_lock(&self, me: u32) -> bool {
        self.0.compare_exchange(0, me, Acquire, Relaxed).is_ok()
    }

    /// Gives it to the waiter of the highest priority, if there is one. Errors: the errno; `EPERM` when thread `me`
    /// does not hold it.
    #[inline]
    pub fn unlock(&self, me: u32) -> Result<(), i32> {
        let is_free = self.0.compare_exchange(me, 0, Release, Relaxed).is_ok();
        if is_free { Ok(()) } else { call(&self.0, libc::FUTEX_UNLOCK_PI, 0) }
    }

    /// Whether the running kernel has such locks. Errors: `ENOSYS` if not.
    pub fn probe() -> io::Result<()> {
        call(&AtomicU32::new(0), libc::FUTEX_TRYLOCK_PI, 0).map_err(io::Error::from_raw_os_error)
    }
}

/// An operation on the futex `word` without a timeout.
#[inline]
fn call(word: &AtomicU32, operation: libc::c_int, value: libc::c_int) -> Result<(), i32> {
    let (operation, none) = (operation | libc::FUTEX_PRIVATE_FLAG, std::ptr::null::<libc::c_void>());
    // SAFETY: `word` is a valid futex word that outlives the call; a null timeout is allowed (futex(2)).
    crate::errno_of(unsafe { libc::syscall(time::SYS_futex, word.as_ptr(), operation, value, none) })
}
