//! The size of a terminal.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

/// The size of a terminal; neither dimension is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Characters in a row.
    pub columns: usize,
    /// Rows.
    pub rows: usize,
}

/// The size of the terminal behind `stream`, `TIOCGWINSZ(2const)`; `None` when it is not a terminal or has no size.
pub fn size(stream: &impl AsFd) -> Option<Size> {
    let fd = stream.as_fd();
    let mut size = MaybeUninit::<libc::winsize>::zeroed();
    // SAFETY: `fd` is open as long as it is borrowed; TIOCGWINSZ writes a winsize, for which `size` is memory.
    if unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCGWINSZ, size.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: all zeroes is a valid winsize, and the kernel has filled it in.
    let size = unsafe { size.assume_init() };
    let size = Size { columns: usize::from(size.ws_col), rows: usize::from(size.ws_row) };
    (size.columns > 0 && size.rows > 0).then_some(size)
}

/// Columns of the terminal on stdout; `None` when stdout is not a terminal or has no size.
pub fn width() -> Option<usize> {
    size(&io::stdout()).map(|size| size.columns)
}
