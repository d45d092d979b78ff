//! Waiting for files to be readable, and the size of pipes.

use crate::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Waits until `file` can be read without blocking or is at its end (`poll(2)`). Returns `false` after `timeout`.
/// Errors: `EINTR` after a signal, or another error of the kernel.
pub fn wait_readable(file: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    let mut polled = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: `polled` is one valid pollfd, matching the count, and outlives the call.
    check(unsafe { libc::poll(&raw mut polled, 1, timeout_ms) }.into()).map(|n_ready| n_ready > 0)
}

/// Waits until no process can write to the pipe `file` any more (`POLLHUP`, `poll(2)`); what is written meanwhile does
/// not wake the caller. Returns `false` after `timeout`. Errors: `EINTR` after a signal, or another error of the
/// kernel.
pub fn wait_closed(file: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    let mut polled = libc::pollfd { fd: file.as_raw_fd(), events: 0, revents: 0 };
    let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: `polled` is one valid pollfd, matching the count, and outlives the call.
    check(unsafe { libc::poll(&raw mut polled, 1, timeout_ms) }.into()).map(|n_ready| n_ready > 0)
}

/// Makes the pipe `file` hold `bytes`, `F_SETPIPE_SZ`, fcntl(2). Errors: when the kernel refuses, like beyond
/// /proc/sys/fs/pipe-max-size without privilege.
pub fn resize(file: BorrowedFd<'_>, bytes: i32) -> io::Result<()> {
    // SAFETY: the call takes integers only.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETPIPE_SZ, bytes) }.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn a_pipe_is_closed_when_no_writer_is_left() {
        let (reader, mut writer) = io::pipe().unwrap();
        resize(reader.as_fd(), 1 << 17).unwrap();
        writer.write_all(&[0; 1 << 17]).unwrap();
        assert!(!wait_closed(reader.as_fd(), Duration::ZERO).unwrap(), "it holds something");
        drop(writer);
        assert!(wait_closed(reader.as_fd(), Duration::MAX).unwrap());
    }

    #[test]
    fn a_pipe_is_readable_with_something_in_it_and_at_its_end() {
        let (reader, mut writer) = io::pipe().unwrap();
        assert!(!wait_readable(reader.as_fd(), Duration::ZERO).unwrap());
        writer.write_all(b"x").unwrap();
        assert!(wait_readable(reader.as_fd(), Duration::ZERO).unwrap());
        let (reader, writer) = io::pipe().unwrap();
        drop(writer);
        assert!(wait_readable(reader.as_fd(), Duration::MAX).unwrap());
    }
}
