//! I/O ports of x86, through which a guest reaches devices that it has no driver for.

use crate::check;
use std::arch::asm;
use std::io;

/// Allows the calling thread to use `count` ports from `first` on (ioperm(2)).
///
/// # Errors
/// `EPERM` without `CAP_SYS_RAWIO`, or under kernel lockdown.
pub fn allow(first: u16, count: u16) -> io::Result<()> {
    // SAFETY: the call takes integers only.
    check(unsafe { libc::ioperm(first.into(), count.into(), 1) }.into()).map(drop)
}

/// Writes one byte. The port has to be allowed; otherwise the thread ends by SIGSEGV.
pub fn write_byte(port: u16, value: u8) {
    // SAFETY: the instruction accesses no memory; the effect on the device is the caller's responsibility.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags)) }
}

/// Writes 16 bits. The port has to be allowed; otherwise the thread ends by SIGSEGV.
pub fn write_word(port: u16, value: u16) {
    // SAFETY: the instruction accesses no memory; the effect on the device is the caller's responsibility.
    unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack, preserves_flags)) }
}

/// Reads one byte. The port has to be allowed; otherwise the thread ends by SIGSEGV.
#[must_use]
pub fn read_byte(port: u16) -> u8 {
    let value: u8;
    // SAFETY: the instruction accesses no memory; the effect on the device is the caller's responsibility.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags)) }
    value
}
