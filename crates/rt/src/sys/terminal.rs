//! The size of the terminal.

use std::mem::MaybeUninit;

/// Columns of the terminal on stdout, `TIOCGWINSZ(2const)`; `None` when there is none, or it does not say.
#[must_use]
pub fn width() -> Option<usize> {
    let mut size = MaybeUninit::<libc::winsize>::zeroed();
    // SAFETY: TIOCGWINSZ writes a winsize, for which `size` is memory.
    if unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, size.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: all zeroes is a valid winsize, and the kernel has filled it in.
    let size = unsafe { size.assume_init() };
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}
