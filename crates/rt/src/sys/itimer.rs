//! The process's one interval timer of real time.

use super::errno_of;
use model::Span;

/// Arms `ITIMER_REAL`: first in `first`, then every `period`, `setitimer(2)`. It takes whole microseconds; what is
/// below is cut off. A `first` of 0 disarms it.
///
/// # Errors
/// The errno.
pub fn arm(first: Span, period: Span) -> Result<(), i32> {
    let timeval = |span: Span| libc::timeval {
        tv_sec: (span.ns() / 1_000_000_000).cast_signed(),
        tv_usec: (span.ns() % 1_000_000_000 / 1000).cast_signed(),
    };
    let value = libc::itimerval { it_interval: timeval(period), it_value: timeval(first) };
    // SAFETY: `value` is a valid itimerval that outlives the call; a null old value is allowed (setitimer(2)). Called
    // without libc's wrapper, whose type for the first argument differs between C libraries.
    let result = unsafe {
        libc::syscall(libc::SYS_setitimer, libc::ITIMER_REAL, &raw const value, std::ptr::null_mut::<libc::itimerval>())
    };
    errno_of(result)
}
