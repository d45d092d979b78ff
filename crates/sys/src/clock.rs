//! Reading the kernel's clocks and waiting on them.

use crate::errno_of;
use crate::time::{self, ns_of, timespec_of};
use punctual_model::{ClockId, ClockTime, MonoTime, Span};

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
pub fn now(clock: ClockId) -> ClockTime {
    let mut now = timespec_of(0);
    // SAFETY: `now` is a valid timespec to write to. The call cannot fail for these clocks (clock_gettime(2)).
    unsafe { time::clock_gettime(number(clock), &raw mut now) };
    ClockTime(ns_of(&now))
}

/// Time that reading `clock` takes: the median of 1001 intervals between readings. Some microseconds in all.
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
pub fn resolution(clock: ClockId) -> Span {
    let mut resolution = timespec_of(0);
    // SAFETY: `resolution` is a valid timespec to write to. The call cannot fail for these clocks.
    unsafe { time::clock_getres(number(clock), &raw mut resolution) };
    Span(ns_of(&resolution))
}

/// Rate of the processor's counter, Hz, where a register names it: `CNTFRQ_EL0` of 64-bit Arm, which Linux lets
/// programs read or reads for them (arch/arm64/kernel/traps.c).
pub fn counter_hz() -> Option<u64> {
    #[cfg(target_arch = "aarch64")]
    {
        let hz: u64;
        // SAFETY: the instruction reads a register, and has no other effect.
        unsafe { std::arch::asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags)) };
        // Firmware that forgot to set it leaves 0.
        (hz > 0).then_some(hz)
    }
    #[cfg(not(target_arch = "aarch64"))]
    None
}

/// The current instant of `CLOCK_MONOTONIC`.
#[inline]
pub fn monotonic() -> MonoTime {
    MonoTime(now(ClockId::Monotonic).0)
}

/// Sleeps until `due`, `clock_nanosleep(2)`.
///
/// Without the C library's wrapper, which is a cancellation point (pthreads(7)): its work after the call would be part
/// of every latency. Errors: the errno, `EINTR` included; the caller handles it.
#[inline]
pub fn sleep_until(clock: ClockId, due: ClockTime) -> Result<(), i32> {
    let due = timespec_of(due.0);
    let no_rest = std::ptr::null_mut::<time::timespec>();
    // SAFETY: `due` is a valid timespec with the kernel's 64-bit layout and outlives the call; a null `rem` is allowed
    // with TIMER_ABSTIME (clock_nanosleep(2)).
    errno_of(unsafe {
        libc::syscall(time::SYS_clock_nanosleep, number(clock), libc::TIMER_ABSTIME, &raw const due, no_rest)
    })
}

/// Sleeps for `span`, `clock_nanosleep(2)`; an interrupting signal does not shorten the sleep.
#[inline]
pub fn sleep_for(clock: ClockId, span: Span) -> Result<(), i32> {
    let mut left = timespec_of(span.ns());
    loop {
        let request = left;
        // SAFETY: both are valid timespecs that outlive the call.
        let errno = unsafe { time::clock_nanosleep(number(clock), 0, &raw const request, &raw mut left) };
        match errno {
            0 => return Ok(()),
            libc::EINTR => {}
            errno => return Err(errno),
        }
    }
}

/// Sleeps for `span`, `nanosleep(2)`; an interrupting signal does not shorten the sleep. Called without libc's wrapper,
/// which turns it into a `clock_nanosleep`. The call's times are words, also where these have 32 bits.
#[inline]
pub fn nanosleep(span: Span) -> Result<(), i32> {
    let word = |part: u64| libc::c_long::try_from(part).map_err(|_| libc::EINVAL);
    let mut left = [word(span.ns() / 1_000_000_000)?, word(span.ns() % 1_000_000_000)?];
    loop {
        let request = left;
        // SAFETY: both have the layout of a timespec of words and outlive the call.
        let result = unsafe { libc::syscall(libc::SYS_nanosleep, request.as_ptr(), left.as_mut_ptr()) };
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
        for wait in [|| sleep_for(ClockId::Monotonic, Span(1_000_000)), || nanosleep(Span(1_000_000))] {
            let began = monotonic();
            assert_eq!(wait(), Ok(()));
            assert!(monotonic().since(began).0 >= 1_000_000);
        }
    }
}
