//! Timers of Cobalt that are read as files.

use super::rtdm::File;

/// A timer of its monotonic clock.
#[derive(Debug)]
pub struct Timerfd(File);

impl Timerfd {
    /// A timer that is not armed. The process must be bound ([`super::bind`]). Errors: the errno: `ENOMEM`, `EMFILE`.
    pub fn new() -> Result<Timerfd, i32> {
        calls::create().and_then(File::of).map(Timerfd)
    }

    /// Arms the timer, and waits in primary mode until `due_ns` of `CLOCK_MONOTONIC`. Errors: the errno: `EINTR` after
    /// a signal.
    #[inline]
    pub fn wait_until(&self, due_ns: u64) -> Result<(), i32> {
        match calls::arm(self.0.descriptor(), due_ns) {
            // It is past already.
            Err(libc::ETIMEDOUT) => Ok(()),
            Err(errno) => Err(errno),
            Ok(()) => self.0.read::<8>().map(drop),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod calls {
    use super::super::calls::call;

    const CREATE: u64 = 57;
    const SETTIME: u64 = 58;

    pub(super) fn create() -> Result<i64, i32> {
        // SAFETY: no pointer is passed.
        unsafe { call(CREATE, [u64::from(libc::CLOCK_MONOTONIC.cast_unsigned()), 0, 0, 0, 0]) }
    }

    #[inline]
    pub(super) fn arm(file: u64, due_ns: u64) -> Result<(), i32> {
        // `struct itimerspec`: no interval, then the due time.
        let value = [0, 0, due_ns / 1_000_000_000, due_ns % 1_000_000_000];
        let flags = u64::from(libc::TFD_TIMER_ABSTIME.cast_unsigned());
        // SAFETY: the kernel reads four 64-bit numbers, which outlive the call, and writes nothing.
        unsafe { call(SETTIME, [file, flags, value.as_ptr() as u64, 0, 0]) }.map(drop)
    }
}

/// Other machines: Cobalt's calls were tried on x86-64 only.
#[cfg(not(target_arch = "x86_64"))]
mod calls {
    pub(super) fn create() -> Result<i64, i32> {
        Err(libc::ENOSYS)
    }

    pub(super) fn arm(_: u64, _: u64) -> Result<(), i32> {
        Err(libc::ENOSYS)
    }
}
