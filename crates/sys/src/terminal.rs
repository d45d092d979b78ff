//! The size of a terminal, and pseudoterminals.

use crate::check;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

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

/// Makes a pseudoterminal of this size: its master, and the terminal that a program gets (pty(7)). Errors: without a
/// mounted devpts, or when there are too many.
pub fn pair(size: Size) -> io::Result<(File, File)> {
    let master = File::options().read(true).write(true).open("/dev/ptmx")?;
    let mut number: libc::c_int = 0;
    // SAFETY: the file is open; the request writes one int.
    check(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCGPTN, &raw mut number) }.into())?;
    let unlock: libc::c_int = 0;
    // SAFETY: the file is open; the request reads one int.
    check(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlock) }.into())?;
    let slave = crate::serial::open(&Path::new("/dev/pts").join(number.to_string()))?;
    let [columns, rows] = [size.columns, size.rows].map(|number| u16::try_from(number).unwrap_or(u16::MAX));
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the file is open; the request reads a winsize, which outlives the call.
    check(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) }.into())?;
    Ok((master, slave))
}
