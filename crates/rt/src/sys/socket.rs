//! Options of sockets that the standard library does not have.

use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Closing the socket resets its connection instead of ending it in order, so that its port is free at once: `SO_LINGER`
/// with a time of 0 (socket(7)).
///
/// # Errors
/// What the kernel says.
#[inline]
pub fn reset_when_closed(socket: BorrowedFd<'_>) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let bytes = libc::socklen_t::try_from(size_of::<libc::linger>()).map_err(io::Error::other)?;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_LINGER);
    // SAFETY: `linger` is as long as is said, and outlives the call.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const linger).cast(), bytes) }.into())
        .map(drop)
}
