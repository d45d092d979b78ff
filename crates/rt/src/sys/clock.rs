//! Reading `CLOCK_MONOTONIC` and waiting on it.

use model::MonoTime;

/// The current instant of `CLOCK_MONOTONIC`. A read of the vDSO: no system call where the clock source allows it.
#[inline]
#[must_use]
pub fn monotonic() -> MonoTime {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is a valid timespec to write to. The call cannot fail for CLOCK_MONOTONIC (clock_gettime(2)).
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut ts) };
    MonoTime(ts.tv_sec.cast_unsigned() * 1_000_000_000 + ts.tv_nsec.cast_unsigned())
}

/// An instant as the kernel takes it.
#[inline]
pub(super) fn timespec(instant: MonoTime) -> libc::timespec {
    libc::timespec {
        tv_sec: (instant.0 / 1_000_000_000).cast_signed(),
        tv_nsec: (instant.0 % 1_000_000_000).cast_signed(),
    }
}

/// Sleeps until `due`.
///
/// # Errors
/// The errno, `EINTR` included: the caller decides.
#[inline]
pub fn sleep_until(due: MonoTime) -> Result<(), i32> {
    let ts = timespec(due);
    // SAFETY: `ts` is a valid timespec that outlives the call; a null `rem` is allowed with TIMER_ABSTIME
    // (clock_nanosleep(2)).
    let errno = unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const ts, std::ptr::null_mut())
    };
    if errno == 0 { Ok(()) } else { Err(errno) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_never_ends_before_its_due_time() {
        let due = MonoTime(monotonic().0 + 2_000_000);
        assert_eq!(sleep_until(due), Ok(()));
        assert!(monotonic() >= due);
    }
}
