//! Calls of PID 1: the loopback device, kernel modules, the random generator, the restart; the log of the kernel.

use crate::check;
use std::ffi::CStr;
use std::io;
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;

/// The text of the kernel's log in one call, the oldest message first, at most 16 MiB (syslog(2)). Errors: without the
/// right to read it (`dmesg_restrict`).
pub fn kernel_log() -> io::Result<Vec<u8>> {
    const READ_ALL: i32 = 3;
    const SIZE: i32 = 10;
    // SAFETY: the call takes integers only, and no memory.
    let size = check(unsafe { libc::klogctl(SIZE, null_mut(), 0) }.into())?;
    // Each line is longer in the text, by its priority and time.
    let size = size.saturating_mul(2).clamp(0, 16 << 20);
    let mut text = vec![0; usize::try_from(size).map_err(io::Error::other)?];
    let room = i32::try_from(size).map_err(io::Error::other)?;
    // SAFETY: the call writes at most `room` bytes to `text`, which is as long.
    let n = check(unsafe { libc::klogctl(READ_ALL, text.as_mut_ptr().cast(), room) }.into())?;
    text.truncate(usize::try_from(n).map_err(io::Error::other)?);
    Ok(text)
}

/// Brings up the loopback device, which is down when a system starts (netdevice(7)). Errors: when there is no such
/// device, or without `CAP_NET_ADMIN`.
pub fn bring_up_loopback() -> io::Result<()> {
    bring_up(c"lo")
}

/// Brings up the network device `name` (netdevice(7)). Errors: as [`bring_up_loopback`].
pub fn bring_up(name: &CStr) -> io::Result<()> {
    let flags = i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).map_err(io::Error::other)?;
    configure(name, libc::SIOCSIFFLAGS, |request| request.ifr_ifru.ifru_flags = flags)
}

/// Sets address and network mask of the network device `name` (netdevice(7)). Errors: as [`bring_up_loopback`].
pub fn set_address(name: &CStr, address: Ipv4Addr, mask: Ipv4Addr) -> io::Result<()> {
    for (call, value) in [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, mask)] {
        // SAFETY: all zeroes is a valid sockaddr.
        let mut place: libc::sockaddr = unsafe { zeroed() };
        place.sa_family = libc::sa_family_t::try_from(libc::AF_INET).map_err(io::Error::other)?;
        // A sockaddr_in: two bytes of port, then the address in network order (ip(7)).
        for (to, from) in place.sa_data.iter_mut().skip(2).zip(value.octets()) {
            *to = std::ffi::c_char::from_ne_bytes([from]);
        }
        configure(name, call, |request| request.ifr_ifru.ifru_addr = place)?;
    }
    Ok(())
}

/// Makes a call of netdevice(7) on a network device, with the part of the request that `set` fills in.
pub(crate) fn configure(name: &CStr, call: libc::Ioctl, set: impl FnOnce(&mut libc::ifreq)) -> io::Result<()> {
    // SAFETY: the call takes integers only.
    let socket = check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) }.into())?;
    let socket = i32::try_from(socket).map_err(io::Error::other)?;
    // SAFETY: the descriptor is new and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: all zeroes is a valid ifreq: no name, no flags.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.to_bytes()) {
        *to = std::ffi::c_char::from_ne_bytes([*from]);
    }
    set(&mut request);
    // SAFETY: the socket is open, and `request` is an ifreq that outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), call, &raw const request) }.into()).map(drop)
}

/// Loads the kernel module in `file` without parameters (init_module(2)). Errors: the kernel's error: `EEXIST` when the
/// module is loaded, `ENOENT` when a module that it depends on is missing, `ENOEXEC` when it was built for another
/// kernel.
pub fn load_module(file: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the text ends in 0; both outlive the call.
    check(unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), c"".as_ptr(), 0) }).map(drop)
}

/// Number of bytes that make the kernel's random generator ready (POOL_READY_BITS in drivers/char/random.c).
pub const SEED_BYTES: usize = 32;

/// Argument of `RNDADDENTROPY` (`struct rand_pool_info`, linux/random.h).
#[repr(C)]
struct Seed {
    entropy_bits: libc::c_int,
    bytes: libc::c_int,
    content: [u8; SEED_BYTES],
}

/// Adds `seed` to the kernel's random generator, counted as random, which makes the generator ready (random(4)); `file`
/// is `/dev/random`. Errors: `EPERM` without `CAP_SYS_ADMIN`.
pub fn seed_random(file: &impl AsRawFd, seed: [u8; SEED_BYTES]) -> io::Result<()> {
    /// `_IOW('R', 3, int[2])` (linux/random.h), the same on all architectures of Linux with generic ioctl numbers.
    const RNDADDENTROPY: libc::Ioctl = 0x4008_5203;
    let bytes = libc::c_int::try_from(SEED_BYTES).map_err(io::Error::other)?;
    let seed = Seed { entropy_bits: bytes * 8, bytes, content: seed };
    // SAFETY: the descriptor is open, and `seed` has the layout of the call's argument and outlives it.
    check(unsafe { libc::ioctl(file.as_raw_fd(), RNDADDENTROPY, &raw const seed) }.into()).map(drop)
}

// Not in libc for this architecture (asm-generic/unistd.h).
#[cfg(target_arch = "riscv64")]
const LOAD_KERNEL: libc::c_long = 294;
#[cfg(not(target_arch = "riscv64"))]
const LOAD_KERNEL: libc::c_long = libc::SYS_kexec_file_load;

/// Unloads the kernel of [`load_next_kernel`]. Errors: `EPERM` without `CAP_SYS_BOOT`.
pub fn unload_next_kernel() -> io::Result<()> {
    /// `KEXEC_FILE_UNLOAD` (linux/kexec.h).
    const UNLOAD: libc::c_ulong = 1;
    let (none, no_line) = (-1, null_mut::<libc::c_char>());
    // SAFETY: with this flag the call reads neither descriptors nor a text.
    check(unsafe { libc::syscall(LOAD_KERNEL, none, none, 0_usize, no_line, UNLOAD) }).map(drop)
}

/// Loads the kernel that restarting by kexec boots (kexec_file_load(2)). Errors: the kernel's error: `EPERM` without
/// `CAP_SYS_BOOT`, `ENOSYS` in a kernel without the call, `EKEYREJECTED` when it takes signed kernels only, `ENOEXEC`
/// when `image` is none.
pub fn load_next_kernel(image: &impl AsRawFd, initrd: Option<&impl AsRawFd>, command_line: &str) -> io::Result<()> {
    /// `KEXEC_FILE_NO_INITRAMFS` (linux/kexec.h).
    const NO_INITRD: libc::c_ulong = 4;
    let line = std::ffi::CString::new(command_line).map_err(io::Error::other)?;
    let flags = if initrd.is_some() { 0 } else { NO_INITRD };
    let initrd = initrd.map_or(-1, AsRawFd::as_raw_fd);
    let length = line.as_bytes_with_nul().len();
    // SAFETY: the descriptors are open, or none is asked for; the text is as long as said, with its 0.
    let call = unsafe { libc::syscall(LOAD_KERNEL, image.as_raw_fd(), initrd, length, line.as_ptr(), flags) };
    check(call).map(drop)
}

/// Restarts the machine at once (reboot(2)), without a sync of the file systems. A virtual machine that may not restart
/// ends instead. Errors: `EPERM` without `CAP_SYS_BOOT`; otherwise it does not return.
pub fn restart() -> io::Result<()> {
    // SAFETY: the call takes an integer only.
    check(unsafe { libc::reboot(libc::RB_AUTOBOOT) }.into()).map(drop)
}

/// Powers the machine off (reboot(2)), without a sync of the file systems. Errors: as [`restart`].
pub fn power_off() -> io::Result<()> {
    // SAFETY: the call takes an integer only.
    check(unsafe { libc::reboot(libc::RB_POWER_OFF) }.into()).map(drop)
}
