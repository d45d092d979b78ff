//! The calling thread: identity, timer slack, signal mask.

use crate::check;
use punctual_model::Span;
use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;

/// The kernel's id of the calling thread, `gettid(2)`.
pub fn id() -> u32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::gettid() }.cast_unsigned()
}

/// Names the calling thread; the kernel keeps 15 bytes (`PR_SET_NAME(2const)`). Its children inherit the name. Errors:
/// when `name` contains a zero byte.
pub fn set_name(name: &str) -> io::Result<()> {
    let name = CString::new(name)?;
    // SAFETY: PR_SET_NAME reads text that ends in 0, which outlives the call.
    check(unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) }.into()).map(drop)
}

/// Sets the timer slack of the calling thread, `PR_SET_TIMERSLACK(2const)`. The kernel takes 0 as "the default" and
/// keeps none for a real-time thread.
pub fn set_timer_slack(slack: Span) -> io::Result<()> {
    // A word: of 32 bits, 4.29 s, on some machines.
    let slack_ns = libc::c_ulong::try_from(slack.ns()).map_err(io::Error::other)?;
    // SAFETY: PR_SET_TIMERSLACK takes an integer and no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns) }.into()).map(drop)
}

/// The timer slack of the calling thread, `PR_GET_TIMERSLACK(2const)`; 0 for real-time threads since Linux 6.12.
pub fn timer_slack() -> io::Result<Span> {
    // SAFETY: PR_GET_TIMERSLACK takes no further arguments and returns the value itself. Called without libc's wrapper,
    // which returns an int and truncates larger values.
    let ns = check(unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_TIMERSLACK) })?;
    Ok(Span(u64::try_from(ns).map_err(io::Error::other)?))
}

/// Blocks every signal that can be blocked, so that none is delivered to the calling thread.
pub fn block_signals() -> io::Result<()> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `all` is memory for a signal set; the call initializes it and cannot fail (sigsetops(3)).
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: `all` was initialized above; a null old set is allowed (pthread_sigmask(3)).
    let errno = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut()) };
    if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
}
