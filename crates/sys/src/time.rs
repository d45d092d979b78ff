//! The kernel's times of 64 bits, and the calls that take them.
//!
//! Where words have 32 bits, the plain names of the C library take seconds that end in 2038 (time_t(3type)), and so do
//! the system calls behind them. There the calls have second names: glibc's of `_TIME_BITS=64` (feature_test_macros(7))
//! and the kernel's of Linux 5.1 (arch/arm/tools/syscall.tbl).

#[cfg(target_pointer_width = "64")]
pub(crate) use libc::{
    SYS_clock_nanosleep, SYS_futex, clock_getres, clock_gettime, clock_nanosleep, itimerspec, ppoll, sigtimedwait,
    timer_settime, timerfd_settime, timespec,
};
#[cfg(target_pointer_width = "32")]
pub(crate) use narrow::*;

/// `ns` of an instant or a duration as a `timespec`.
#[inline]
pub(crate) fn timespec_of(ns: u64) -> timespec {
    timespec { tv_sec: (ns / 1_000_000_000).cast_signed(), tv_nsec: (ns % 1_000_000_000).cast_signed() }
}

/// The instant or the duration of `time`, ns, which is never negative.
#[inline]
pub(crate) fn ns_of(time: &timespec) -> u64 {
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[cfg(target_pointer_width = "32")]
#[allow(non_camel_case_types, non_upper_case_globals, reason = "the names of libc, which stand for these elsewhere")]
mod narrow {
    use libc::{c_int, c_long, clockid_t, nfds_t, pollfd, siginfo_t, sigset_t, timer_t};

    /// `struct __kernel_timespec` of include/uapi/linux/time_types.h.
    #[repr(C)]
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct timespec {
        pub(crate) tv_sec: i64,
        pub(crate) tv_nsec: i64,
    }

    /// `struct __kernel_itimerspec` of include/uapi/linux/time_types.h.
    #[repr(C)]
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct itimerspec {
        pub(crate) it_interval: timespec,
        pub(crate) it_value: timespec,
    }

    /// `clock_nanosleep_time64`: the same number on all 32-bit machines.
    pub(crate) const SYS_clock_nanosleep: c_long = 407;
    /// `futex_time64`.
    pub(crate) const SYS_futex: c_long = 422;

    unsafe extern "C" {
        #[link_name = "__clock_gettime64"]
        pub(crate) fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int;
        #[link_name = "__clock_getres64"]
        pub(crate) fn clock_getres(clock: clockid_t, time: *mut timespec) -> c_int;
        #[link_name = "__clock_nanosleep_time64"]
        pub(crate) fn clock_nanosleep(
            clock: clockid_t,
            flags: c_int,
            request: *const timespec,
            remaining: *mut timespec,
        ) -> c_int;
        #[link_name = "__ppoll64"]
        pub(crate) fn ppoll(
            polled: *mut pollfd,
            count: nfds_t,
            timeout: *const timespec,
            mask: *const sigset_t,
        ) -> c_int;
        #[link_name = "__sigtimedwait64"]
        pub(crate) fn sigtimedwait(set: *const sigset_t, info: *mut siginfo_t, timeout: *const timespec) -> c_int;
        #[link_name = "__timer_settime64"]
        pub(crate) fn timer_settime(
            timer: timer_t,
            flags: c_int,
            value: *const itimerspec,
            old: *mut itimerspec,
        ) -> c_int;
        #[link_name = "__timerfd_settime64"]
        pub(crate) fn timerfd_settime(fd: c_int, flags: c_int, value: *const itimerspec, old: *mut itimerspec)
        -> c_int;
    }
}
