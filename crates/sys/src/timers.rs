//! Timers that send signals: the interval timer of the process, and POSIX timers.

use crate::clock::number;
use crate::time::{self, timespec_of};
use crate::{check, errno_of, signal};
use punctual_model::{ClockId, ClockTime, Span};
use std::io;
use std::mem::MaybeUninit;

/// Arms `ITIMER_REAL`: first after `first`, then every `period`, `setitimer(2)`. Both are truncated to whole
/// microseconds. A `first` of 0 disarms it.
pub fn arm_itimer(first: Span, period: Span) -> Result<(), i32> {
    let word = |part: u64| libc::c_long::try_from(part).map_err(|_| libc::EINVAL);
    let [period_us, first_us] = [period, first].map(|span| span.ns() / 1000);
    let value = [
        word(period_us / 1_000_000)?,
        word(period_us % 1_000_000)?,
        word(first_us / 1_000_000)?,
        word(first_us % 1_000_000)?,
    ];
    // SAFETY: `value` has the layout of an itimerval, four words, and outlives the call; a null old value is allowed
    // (setitimer(2)). Called without libc's wrapper, whose types differ between C libraries.
    let result = unsafe {
        libc::syscall(libc::SYS_setitimer, libc::ITIMER_REAL, value.as_ptr(), std::ptr::null_mut::<libc::c_void>())
    };
    errno_of(result)
}

/// A timer that sends [`signal::of_timers`] to the thread that created it, `timer_create(2)` with `SIGEV_THREAD_ID`.
#[derive(Debug)]
pub struct PosixTimer(libc::timer_t);

// SAFETY: the id of a timer is valid in the whole process (timer_create(2)).
unsafe impl Send for PosixTimer {}

impl PosixTimer {
    /// A disarmed timer on `clock`. Errors: `EAGAIN` when the kernel cannot allocate another timer.
    pub fn for_this_thread(clock: ClockId) -> io::Result<PosixTimer> {
        // SAFETY: all fields of a sigevent are integers and pointers, for which zeros are valid.
        let mut event = unsafe { MaybeUninit::<libc::sigevent>::zeroed().assume_init() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal::of_timers();
        event.sigev_notify_thread_id = crate::thread::id().cast_signed();
        let mut id: libc::timer_t = std::ptr::null_mut();
        // SAFETY: `event` is a valid sigevent and `id` memory for a timer id; both outlive the call.
        check(unsafe { libc::timer_create(number(clock), &raw mut event, &raw mut id) }.into())?;
        Ok(PosixTimer(id))
    }

    /// Arms it: first at `due`, then every `period`.
    pub fn arm(&self, due: ClockTime, period: Span) -> Result<(), i32> {
        // An instant of 0 would disarm it (timer_settime(2)).
        let value = time::itimerspec { it_interval: timespec_of(period.ns()), it_value: timespec_of(due.0.max(1)) };
        // SAFETY: the timer exists as long as `self`; `value` is a valid itimerspec that outlives the call; a null old
        // value is allowed.
        let result =
            unsafe { time::timer_settime(self.0, libc::TIMER_ABSTIME, &raw const value, std::ptr::null_mut()) };
        errno_of(result.into())
    }

    /// Expirations between the last generation of the signal and its delivery, `timer_getoverrun(2)`.
    #[inline]
    pub fn overruns(&self) -> u64 {
        // SAFETY: the timer exists as long as `self`.
        u64::try_from(unsafe { libc::timer_getoverrun(self.0) }).unwrap_or(0)
    }
}

impl Drop for PosixTimer {
    fn drop(&mut self) {
        // SAFETY: the timer exists, and its id is not used after this.
        unsafe { libc::timer_delete(self.0) };
    }
}
