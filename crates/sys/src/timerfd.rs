//! Timers that are read as files.

use crate::clock::number;
use crate::time::{self, timespec_of};
use crate::{check, errno_of};
use punctual_model::{ClockId, ClockTime};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A timer that is read as a file, `timerfd_create(2)`.
#[derive(Debug)]
pub struct Timerfd(OwnedFd);

impl Timerfd {
    /// A disarmed timer on `clock`. Errors: `EINVAL` for `CLOCK_TAI`, `EMFILE` or `ENFILE` at the limit of open files.
    pub fn new(clock: ClockId) -> io::Result<Timerfd> {
        // SAFETY: the call takes integers only.
        let fd = unsafe { libc::timerfd_create(number(clock), libc::TFD_CLOEXEC) };
        check(fd.into())?;
        // SAFETY: `fd` is new and has no other owner.
        Ok(Timerfd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Arms it once, for `due`; a past instant expires at once. Earlier expirations are discarded.
    #[inline]
    pub fn arm(&self, due: ClockTime) -> Result<(), i32> {
        // An instant of 0 would disarm it (timerfd_settime(2)).
        let it_value = timespec_of(due.0.max(1));
        let value = time::itimerspec { it_interval: timespec_of(0), it_value };
        let (fd, no_old_value) = (self.0.as_raw_fd(), std::ptr::null_mut());
        // SAFETY: `value` is a valid itimerspec that outlives the call; a null old value is allowed.
        let result = unsafe { time::timerfd_settime(fd, libc::TFD_TIMER_ABSTIME, &raw const value, no_old_value) };
        errno_of(result.into())
    }

    /// Waits until it has expired.
    #[inline]
    pub fn wait(&self) -> Result<(), i32> {
        let mut expirations = 0_u64;
        // SAFETY: `expirations` is memory for the 8 bytes that a timer returns (timerfd_create(2)).
        let read = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut expirations).cast(), size_of::<u64>()) };
        errno_of(libc::c_long::try_from(read).unwrap_or(-1))
    }
}

impl AsFd for Timerfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
