//! Reading the kernel's clocks and waiting on them.

use crate::errno_of;
use model::{ClockId, ClockTime, MonoTime, Span};

/// The kernel's number of a clock.
#[inline]
pub(crate) fn number(clock: ClockId) -> libc::clockid_t {
    match clock {
        ClockId::Monotonic => libc::CLOCK_MONOTONIC,
        ClockId::Realtime => libc::CLOCK_REALTIME,
        ClockId::Boottime => libc::CLOCK_BOOTTIME,
        ClockId::Tai => libc::CLOCK_TAI,
        ClockId::MonotonicRaw => libc::CLOCK_MONOTONIC_RAW,
    }
}

/// The current instant of `clock`: read through the vDSO, without a system call where the clock source allows it.
#[inline]
#[must_use]
pub fn now(clock: ClockId) -> ClockTime {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is a valid timespec to write to. The call cannot fail for these clocks (clock_gettime(2)).
    unsafe { libc::clock_gettime(number(clock), &raw mut ts) };
    ClockTime(ts.tv_sec.cast_unsigned() * 1_000_000_000 + ts.tv_nsec.cast_unsigned())
}

/// Time that reading `clock` takes: the median of 1001 intervals between readings. Some microseconds in all.
#[must_use]
pub fn reading(clock: ClockId) -> Span {
    const READINGS: usize = 1001;
    let mut between = [0; READINGS];
    for time in &mut between {
        let began = now(clock);
        // A clock that was set back in between counts as no time.
        *time = now(clock).0.saturating_sub(began.0);
    }
    between.sort_unstable();
    Span(between[READINGS / 2])
}

/// Resolution of `clock` as reported by the kernel, clock_getres(2).
#[must_use]
pub fn resolution(clock: ClockId) -> Span {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is a valid timespec to write to. The call cannot fail for these clocks.
    unsafe { libc::clock_getres(number(clock), &raw mut ts) };
    Span(ts.tv_sec.cast_unsigned() * 1_000_000_000 + ts.tv_nsec.cast_unsigned())
}

/// The current instant of `CLOCK_MONOTONIC`.
#[inline]
#[must_use]
pub fn monotonic() -> MonoTime {
    MonoTime(now(ClockId::Monotonic).0)
}

/// An instant or a duration as a `timespec`.
#[inline]
pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000).cast_signed(), tv_nsec: (ns % 1_000_000_000).cast_signed() }
}

/// Sleeps until `due`, `clock_nanosleep(2)`.
///
/// Without the C library's wrapper, which is a cancellation point (pthreads(7)): its work after the call would be part
/// of every latency.
///
/// # Errors
/// The errno, `EINTR` included; the caller handles it.
#[inline]
pub fn sleep_until(clock: ClockId, due: ClockTime) -> Result<(), i32> {
    let ts = timespec(due.0);
    let no_rest = std::ptr::null_mut::<libc::timespec>();
    // SAFETY: `ts` is a valid timespec with the kernel's 64-bit layout and outlives the call; a null `rem` is allowed
    // with TIMER_ABSTIME (clock_nanosleep(2)).
    errno_of(unsafe {
        libc::syscall(libc::SYS_clock_nanosleep, number(clock), libc::TIMER_ABSTIME, &raw const ts, no_rest)
    })
}

/// Sleeps for `span`, `clock_nanosleep(2)`; an interrupting signal does not shorten the sleep.
///
/// # Errors
/// The errno.
#[inline]
pub fn sleep_for(clock: ClockId, span: Span) -> Result<(), i32> {
    let mut left = timespec(span.ns());
    loop {
        let asked = left;
        // SAFETY: both are valid timespecs that outlive the call.
        let errno = unsafe { libc::clock_nanosleep(number(clock), 0, &raw const asked, &raw mut left) };
        match errno {
            0 => return Ok(()),
            libc::EINTR => {}
            errno => return Err(errno),
        }
    }
}

/// Sleeps for `span`, `nanosleep(2)`; an interrupting signal does not shorten the sleep. Called without libc's wrapper,
/// which turns it into a `clock_nanosleep`.
///
/// # Errors
/// The errno.
#[inline]
pub fn nanosleep(span: Span) -> Result<(), i32> {
    let mut left = timespec(span.ns());
    loop {
        let asked = left;
        // SAFETY: both are valid timespecs that outlive the call.
        let result = unsafe { libc::syscall(libc::SYS_nanosleep, &raw const asked, &raw mut left) };
        match errno_of(result) {
            Err(libc::EINTR) => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_never_ends_before_its_due_time() {
        for clock in [ClockId::Monotonic, ClockId::Realtime, ClockId::Boottime, ClockId::Tai] {
            let due = now(clock).plus(Span(2_000_000));
            assert_eq!(sleep_until(clock, due), Ok(()));
            assert!(now(clock) >= due);
        }
    }

    #[test]
    fn a_relative_sleep_is_never_shorter_than_asked() {
        for sleep in [|| sleep_for(ClockId::Monotonic, Span(1_000_000)), || nanosleep(Span(1_000_000))] {
            let began = monotonic();
            assert_eq!(sleep(), Ok(()));
            assert!(monotonic().since(began).0 >= 1_000_000);
        }
    }
}
