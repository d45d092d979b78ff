//! Waiting with a time-out, for a file or, as event loops do between two events, for nothing.

use crate::clock::timespec;
use crate::timerfd::Timerfd;
use model::Span;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Waits for `span` in `ppoll(2)` without any file; the signal mask stays.
///
/// # Errors
/// The errno, `EINTR` included.
#[inline]
pub fn wait(span: Span) -> Result<(), i32> {
    let timeout = timespec(span.ns());
    // SAFETY: no file is given, so none is read; `timeout` is a valid timespec that outlives the call; a null signal
    // mask is allowed (ppoll(2)).
    let result = unsafe { libc::ppoll(std::ptr::null_mut(), 0, &raw const timeout, std::ptr::null()) };
    crate::errno_of(result.into())
}

/// What a wait for a file came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// The time is over.
    Nothing,
    /// It can be read without waiting, or is at its end.
    Readable,
    /// It has something in its queue of errors, and nothing else.
    Error,
}

/// Waits until `file` can be read, or has an error, in `ppoll(2)`, `at_most` so long.
///
/// # Errors
/// The errno, `EINTR` included.
#[inline]
pub fn readable(file: BorrowedFd<'_>, at_most: Span) -> Result<Ready, i32> {
    let timeout = timespec(at_most.ns());
    let mut polled = asked(file);
    // SAFETY: `polled` is one valid pollfd, as the count says, and `timeout` a valid timespec; both outlive the call. A null
    // signal mask is allowed (ppoll(2)).
    let result = unsafe { libc::ppoll(&raw mut polled, 1, &raw const timeout, std::ptr::null()) };
    crate::errno_of(result.into())?;
    Ok(ready(&polled))
}

/// The same until `timer` has expired. No timer is started for it and stopped again, which takes a guest some 10 us.
///
/// # Errors
/// The errno, `EINTR` included.
#[inline]
pub fn readable_before(file: BorrowedFd<'_>, timer: &Timerfd) -> Result<Ready, i32> {
    let mut polled = [asked(file), asked(timer.as_fd())];
    // SAFETY: `polled` is two valid pollfds, as the count says, which outlive the call. Without a timeout and a signal mask it
    // waits as long as it takes, and the mask stays (ppoll(2)).
    let result = unsafe { libc::ppoll(polled.as_mut_ptr(), 2, std::ptr::null(), std::ptr::null()) };
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
