//! Waiting for nothing with a time-out, as event loops do between two events.

use super::clock::timespec;
use model::Span;

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
    super::errno_of(result.into())
}
