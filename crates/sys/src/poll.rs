//! Waiting with a timeout: for a file or, as event loops do between two events, without one.

use crate::time::{self, timespec_of};
use crate::timerfd::Timerfd;
use punctual_model::Span;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Waits for `span` in `ppoll(2)` without any file; the signal mask stays.
#[inline]
pub fn wait(span: Span) -> Result<(), i32> {
    let timeout = timespec_of(span.ns());
    // SAFETY: no file is given, so none is read; `timeout` is a valid timespec that outlives the call; a null signal
    // mask is allowed (ppoll(2)).
    let result = unsafe { time::ppoll(std::ptr::null_mut(), 0, &raw const timeout, std::ptr::null()) };
    crate::errno_of(result.into())
}

/// The outcome of a wait for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// Timeout.
    Nothing,
    /// The file can be read without blocking, or is at its end.
    Readable,
    /// The file has an entry in its error queue, and nothing else.
    Error,
}

/// Waits in `ppoll(2)`, at most `at_most`, until `file` can be read or has an error.
#[inline]
pub fn readable(file: BorrowedFd<'_>, at_most: Span) -> Result<Ready, i32> {
    let timeout = timespec_of(at_most.ns());
    let mut polled = asked(file);
    // SAFETY: `polled` is one valid pollfd, matching the count, and `timeout` a valid timespec; both outlive the call.
    // A null signal mask is allowed (ppoll(2)).
    let result = unsafe { time::ppoll(&raw mut polled, 1, &raw const timeout, std::ptr::null()) };
    crate::errno_of(result.into())?;
    Ok(ready(&polled))
}

/// As [`readable`], until `timer` has expired. It starts and stops no kernel timer, which takes a guest some 10 us.
#[inline]
pub fn readable_before(file: BorrowedFd<'_>, timer: &Timerfd) -> Result<Ready, i32> {
    let mut polled = [asked(file), asked(timer.as_fd())];
    // SAFETY: `polled` is two valid pollfds, matching the count, and outlives the call. A null timeout waits without
    // limit, and a null signal mask leaves the mask unchanged (ppoll(2)).
    let result = unsafe { time::ppoll(polled.as_mut_ptr(), 2, std::ptr::null(), std::ptr::null()) };
    crate::errno_of(result.into())?;
    let [file, _] = polled;
    Ok(ready(&file))
}

fn asked(file: BorrowedFd<'_>) -> libc::pollfd {
    libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}

fn ready(polled: &libc::pollfd) -> Ready {
    match polled.revents {
        0 => Ready::Nothing,
        libc::POLLERR => Ready::Error,
        _ => Ready::Readable,
    }
}
