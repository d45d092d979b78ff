//! Calls of PID 1: the loopback device, kernel modules, the restart.

use crate::check;
use std::ffi::CStr;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Brings up the loopback device, which is down when a system starts (netdevice(7)).
///
/// # Errors
/// When there is no such device, or without `CAP_NET_ADMIN`.
pub fn bring_up_loopback() -> io::Result<()> {
    const NAME: &CStr = c"lo";
    // SAFETY: the call takes integers only.
    let socket = check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) }.into())?;
    let socket = i32::try_from(socket).map_err(io::Error::other)?;
    // SAFETY: the descriptor is new and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: all zeroes is a valid ifreq: no name, no flags.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(NAME.to_bytes()) {
        *to = std::ffi::c_char::from_ne_bytes([*from]);
    }
    let flags = libc::IFF_UP | libc::IFF_RUNNING;
    request.ifr_ifru.ifru_flags = i16::try_from(flags).map_err(io::Error::other)?;
    // SAFETY: the socket is open, and `request` is an ifreq that outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) }.into()).map(drop)
}

/// Loads the kernel module in `file` without parameters (init_module(2)).
///
/// # Errors
/// The kernel's error: `EEXIST` when the module is loaded, `ENOENT` when a module that it depends on is missing,
/// `ENOEXEC` when it was built for another kernel.
pub fn load_module(file: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the text ends in 0; both outlive the call.
    check(unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), c"".as_ptr(), 0) }).map(drop)
}

/// Restarts the machine at once (reboot(2)), without a sync of the file systems. A virtual machine that may not restart
/// ends instead.
///
/// # Errors
/// `EPERM` without `CAP_SYS_BOOT`; otherwise it does not return.
pub fn restart() -> io::Result<()> {
    // SAFETY: the call takes an integer only.
    check(unsafe { libc::reboot(libc::RB_AUTOBOOT) }.into()).map(drop)
}
