//! Waiting on a futex with a timeout.

use crate::time::{self, timespec_of};
use punctual_model::{ClockId, ClockTime};
use std::io;
use std::sync::atomic::AtomicU32;

/// A futex without a waker: a wait on it ends by its timeout only.
#[derive(Debug, Default)]
pub struct Futex(AtomicU32);

impl Futex {
    /// Waits until `due` on the monotonic or realtime clock: `FUTEX_WAIT_BITSET` has an absolute timeout (futex(2)).
    /// Errors: the errno, `EINTR` included; the timeout is no error.
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
}
