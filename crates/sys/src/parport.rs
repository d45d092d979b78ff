//! Parallel ports, through the kernel's user-space driver (linux/ppdev.h).

use crate::{check, errno_of};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// linux/ppdev.h: direction, size of the argument, type `p`, number.
const PPWDATA: libc::Ioctl = 0x4001_7086;
const PPCLAIM: libc::Ioctl = 0x708b;
const PPEXCL: libc::Ioctl = 0x708f;
const PPDATADIR: libc::Ioctl = 0x4004_7090;
const PPCLRIRQ: libc::Ioctl = 0x8004_7093;

/// Requests exclusive access to the port while it is claimed. Fails for a file that is not a parallel port. Errors:
/// `ENOTTY` when the file is not a parallel port.
pub fn ask_for_all(port: &File) -> io::Result<()> {
    // SAFETY: the file is open; the request takes nothing.
    check(unsafe { libc::ioctl(port.as_raw_fd(), PPEXCL) }.into()).map(drop)
}

/// Claims the port until the file is closed: its interrupts are counted, and its data lines are driven, all low.
/// Errors: `ENXIO` when another driver or program has claimed the port.
pub fn claim(port: &File) -> io::Result<()> {
    // SAFETY: the file is open; the request takes nothing.
    check(unsafe { libc::ioctl(port.as_raw_fd(), PPCLAIM) }.into())?;
    let is_input: libc::c_int = 0;
    // SAFETY: the file is open; the request reads one int.
    check(unsafe { libc::ioctl(port.as_raw_fd(), PPDATADIR, &raw const is_input) }.into())?;
    set_data(port, 0).map_err(io::Error::from_raw_os_error)
}

/// Sets the eight data lines.
#[inline]
pub fn set_data(port: &File, data: u8) -> Result<(), i32> {
    // SAFETY: the file is open; the request reads one byte.
    errno_of(unsafe { libc::ioctl(port.as_raw_fd(), PPWDATA, &raw const data) }.into())
}

/// Number of interrupts since the previous call.
#[inline]
pub fn take_interrupts(port: &File) -> Result<u64, i32> {
    let mut count: libc::c_int = 0;
    // SAFETY: the file is open; the request writes one int.
    errno_of(unsafe { libc::ioctl(port.as_raw_fd(), PPCLRIRQ, &raw mut count) }.into())?;
    Ok(u64::try_from(count).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_port_is_refused() {
        let null = File::open("/dev/null").unwrap();
        let said = [ask_for_all(&null), claim(&null)].map(|said| said.unwrap_err().raw_os_error());
        assert_eq!(said, [Some(libc::ENOTTY); 2]);
        assert_eq!((set_data(&null, 1), take_interrupts(&null)), (Err(libc::ENOTTY), Err(libc::ENOTTY)));
    }
}
