//! Results of calls: what -1 means, and numbers of C.

use std::io;

/// The result of a call that returns -1 and sets errno on failure.
pub(crate) fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A count or an amount that is never negative, from a word of C, whose size differs between machines.
pub(crate) fn unsigned(word: impl TryInto<u64>) -> u64 {
    word.try_into().unwrap_or(0)
}

/// The errno of an error that the kernel returned, for the measured thread.
#[expect(clippy::needless_pass_by_value, reason = "it stands where an error is mapped")]
#[inline]
pub fn errno(err: io::Error) -> i32 {
    err.raw_os_error().unwrap_or(libc::EIO)
}

/// The errno of a call that returned -1, for the measured thread: nothing is allocated.
#[inline]
pub(crate) fn errno_of(result: libc::c_long) -> Result<(), i32> {
    if result == -1 { Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)) } else { Ok(()) }
}
