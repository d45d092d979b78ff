//! Timers of Cobalt that are read as files.

/// A timer of its monotonic clock.
#[derive(Debug)]
pub struct Timerfd(u64);

impl Timerfd {
    /// A timer that is not armed. The process must be bound ([`super::bind`]).
    ///
    /// # Errors
    /// The errno: `ENOMEM`, `EMFILE`.
    pub fn new() -> Result<Timerfd, i32> {
        file::create().map(Timerfd)
    }

    /// Arms the timer, and waits in primary mode until `due_ns` of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// The errno: `EINTR` after a signal.
    #[inline]
    pub fn wait_until(&self, due_ns: u64) -> Result<(), i32> {
        match file::arm(self.0, due_ns) {
            // It is past already.
            Err(libc::ETIMEDOUT) => Ok(()),
            Err(errno) => Err(errno),
            Ok(()) => file::read(self.0),
        }
    }
}

impl Drop for Timerfd {
    fn drop(&mut self) {
        file::close(self.0);
    }
}

#[cfg(target_arch = "x86_64")]
mod file {
    use super::super::calls::call;

    const CREATE: u64 = 57;
    const SETTIME: u64 = 58;
    const CLOSE: u64 = 79;
    const READ: u64 = 81;

    pub(super) fn create() -> Result<u64, i32> {
        // SAFETY: no pointer is passed.
        let file = unsafe { call(CREATE, [u64::from(libc::CLOCK_MONOTONIC.cast_unsigned()), 0, 0, 0, 0]) }?;
        u64::try_from(file).map_err(|_| libc::EBADF)
    }

    #[inline]
    pub(super) fn arm(file: u64, due_ns: u64) -> Result<(), i32> {
        // `struct itimerspec`: no interval, then the due time.
        let value = [0, 0, due_ns / 1_000_000_000, due_ns % 1_000_000_000];
        let flags = u64::from(libc::TFD_TIMER_ABSTIME.cast_unsigned());
        // SAFETY: the kernel reads four 64-bit numbers, which outlive the call, and writes nothing.
        unsafe { call(SETTIME, [file, flags, value.as_ptr() as u64, 0, 0]) }.map(drop)
    }

    #[inline]
    pub(super) fn read(file: u64) -> Result<(), i32> {
        let mut expirations = 0_u64;
        let count = std::ptr::from_mut(&mut expirations) as u64;
        // SAFETY: the kernel writes one 64-bit number, which outlives the call.
        unsafe { call(READ, [file, count, size_of::<u64>() as u64, 0, 0]) }.map(drop)
    }

    pub(super) fn close(file: u64) {
        // SAFETY: no pointer is passed; the file belongs to the caller's value alone.
        let _ = unsafe { call(CLOSE, [file, 0, 0, 0, 0]) };
    }
}

/// Other machines: Cobalt's calls were tried on x86-64 only.
#[cfg(not(target_arch = "x86_64"))]
mod file {
    pub(super) fn create() -> Result<u64, i32> {
        Err(libc::ENOSYS)
    }

    pub(super) fn arm(_: u64, _: u64) -> Result<(), i32> {
        Err(libc::ENOSYS)
    }

    pub(super) fn read(_: u64) -> Result<(), i32> {
        Err(libc::ENOSYS)
    }

    pub(super) fn close(_: u64) {}
}
