//! Signals that a thread waits for instead of handling them.

use crate::errno_of;
use crate::time::{self, timespec_of};
use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

/// The signal of `ITIMER_REAL`, setitimer(2).
pub const ALARM: i32 = libc::SIGALRM;

/// Signals to wait for.
#[derive(Clone, Copy)]
pub struct SignalSet(libc::sigset_t);

impl std::fmt::Debug for SignalSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignalSet").finish_non_exhaustive()
    }
}

/// The signal of our timers: a real-time signal that the C library does not use.
pub fn of_timers() -> i32 {
    libc::SIGRTMIN()
}

/// Sends `signal` to a thread of this process, `tgkill(2)`. Errors: the errno; `EAGAIN` when the kernel queues no more
/// real-time signals (`RLIMIT_SIGPENDING`).
#[inline]
pub fn send_to(thread: u32, signal: i32) -> Result<(), i32> {
    // SAFETY: the call takes integers only.
    errno_of(unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread, signal) })
}

/// Blocks no signal for the calling thread.
pub fn block_none() {
    let none = SignalSet::any(&[]);
    // SAFETY: the set is initialized; a null old set is allowed; the call fails only for an invalid `how`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none.0, std::ptr::null_mut()) };
}

/// Whether `signal` is ignored, as SIGHUP under `nohup` (sigaction(2)).
pub fn is_ignored(signal: i32) -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: `now` is memory for a sigaction; a null new action changes nothing.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) };
    // SAFETY: all zeroes is a valid sigaction, and the kernel has filled it in if the call succeeded.
    let now = unsafe { now.assume_init() };
    result == 0 && now.sa_sigaction == libc::SIG_IGN
}

/// Restores the default disposition of `signal`, whatever the parent process has set.
pub fn take_by_default(signal: i32) {
    // SAFETY: SIG_DFL is a valid disposition; an invalid signal is only refused.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

impl SignalSet {
    /// The set of `signal` alone.
    pub fn new(signal: i32) -> SignalSet {
        SignalSet::any(&[signal])
    }

    /// The set of `signals`.
    pub fn any(signals: &[i32]) -> SignalSet {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `set` is memory for a signal set; the call initializes it and cannot fail (sigsetops(3)).
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: the call above initialized `set`.
        let mut set = unsafe { set.assume_init() };
        for signal in signals {
            // SAFETY: `set` is an initialized signal set; an invalid signal is only refused.
            unsafe { libc::sigaddset(&raw mut set, *signal) };
        }
        SignalSet(set)
    }

    /// Blocks the signals for the calling thread and its children, so that they stay pending until a wait.
    pub fn block(&self) -> io::Result<()> {
        // SAFETY: the set is initialized; a null old set is allowed (pthread_sigmask(3)).
        let errno = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const self.0, std::ptr::null_mut()) };
        if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
    }

    /// Unblocks the signals for the calling thread.
    pub(crate) fn unblock(&self) {
        // SAFETY: the set is initialized; a null old set is allowed; the call fails only for an invalid `how`.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const self.0, std::ptr::null_mut()) };
    }

    /// Waits until a signal of the set is pending, consumes it, and returns its number, `sigwaitinfo(2)`.
    #[inline]
    pub fn wait(&self) -> Result<i32, i32> {
        // SAFETY: the set is initialized and outlives the call; a null info is allowed (sigwaitinfo(2)).
        let signal = unsafe { libc::sigwaitinfo(&raw const self.0, std::ptr::null_mut()) };
        errno_of(signal.into()).map(|()| signal)
    }

    /// As [`SignalSet::wait`], for `longest` at most, `sigtimedwait(2)`. Errors: the errno: `EAGAIN` at the timeout,
    /// `EINTR` included.
    pub fn wait_at_most(&self, longest: Duration) -> Result<i32, i32> {
        let timeout = timespec_of(u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX));
        // SAFETY: set and time are initialized and outlive the call; a null info is allowed (sigtimedwait(2)).
        let signal = unsafe { time::sigtimedwait(&raw const self.0, std::ptr::null_mut(), &raw const timeout) };
        errno_of(signal.into()).map(|()| signal)
    }
}
