//! Ports of x86: how a guest talks to devices for which it has no driver.

use crate::check;
use std::arch::asm;
use std::io;

/// Lets the calling thread use `count` ports from `first` on (ioperm(2)).
///
/// # Errors
/// `EPERM` without `CAP_SYS_RAWIO`, or where the kernel is locked down.
pub fn allow(first: u16, count: u16) -> io::Result<()> {
    // SAFETY: the call takes integers only.
    check(unsafe { libc::ioperm(first.into(), count.into(), 1) }.into()).map(drop)
}

/// Writes one byte. The port has to be allowed: the thread otherwise ends by SIGSEGV.
pub fn write_byte(port: u16, value: u8) {
    // SAFETY: it reads no memory and writes none; what a device does with it is the caller's business.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags)) }
}

/// Writes 16 bits. The port has to be allowed: the thread otherwise ends by SIGSEGV.
pub fn write_word(port: u16, value: u16) {
    // SAFETY: it reads no memory and writes none; what a device does with it is the caller's business.
    unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack, preserves_flags)) }
}

/// Reads one byte. The port has to be allowed: the thread otherwise ends by SIGSEGV.
#[must_use]
pub fn read_byte(port: u16) -> u8 {
    let value: u8;
    // SAFETY: it reads no memory and writes none; what a device does with it is the caller's business.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags)) }
    value
}
