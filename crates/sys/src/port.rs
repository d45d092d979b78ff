//! I/O ports of x86, through which a guest reaches devices of QEMU that it has no driver for.

use crate::check;
use crate::guest_ports::{END, PAUSE, RESULT};
use std::arch::asm;
use std::io;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

/// Ports of the firmware configuration (QEMU, docs/specs/fw_cfg.rst): an item is selected by a number at the first one
/// and read byte by byte at the second. It needs no driver, and its content is not part of a snapshot.
pub const FIRMWARE: RangeInclusive<u16> = SELECT..=DATA;
const SELECT: u16 = 0x510;
const DATA: u16 = 0x511;

/// Ports of devices that access no memory: debug console, exit, panic, and the firmware configuration with its selector
/// and its data, but not its DMA (QEMU, docs/specs/fw_cfg.rst).
const WITHOUT_DMA: [RangeInclusive<u16>; 4] = [RESULT..=RESULT, END..=END, PAUSE..=PAUSE, FIRMWARE];

/// Adjacent ports that the calling thread may use; the permission is its own.
#[derive(Debug)]
pub struct Ports {
    ports: RangeInclusive<u16>,
    _not_send: PhantomData<*const ()>,
}

impl Ports {
    /// Allows the calling thread to use these ports (ioperm(2)). Errors: `EINVAL` for ports of other devices, which
    /// could change any memory; `EPERM` without `CAP_SYS_RAWIO`, or under kernel lockdown.
    pub fn allow(ports: RangeInclusive<u16>) -> io::Result<Ports> {
        let is_within = |known: &RangeInclusive<u16>| known.contains(ports.start()) && known.contains(ports.end());
        if !WITHOUT_DMA.iter().any(is_within) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let (first, count) = (*ports.start(), ports.clone().count());
        // SAFETY: the call takes integers only.
        check(unsafe { libc::ioperm(first.into(), count as libc::c_ulong, 1) }.into())?;
        Ok(Ports { ports, _not_send: PhantomData })
    }

    /// Writes one byte; ignored for a port that is not allowed.
    pub fn write_byte(&self, port: u16, value: u8) {
        if self.ports.contains(&port) {
            // SAFETY: this thread may use the port, and its device accesses no memory.
            unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack, preserves_flags)) }
        }
    }

    /// Writes 16 bits; ignored for a port that is not allowed.
    pub fn write_word(&self, port: u16, value: u16) {
        if self.ports.contains(&port) {
            // SAFETY: as in `write_byte`.
            unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nostack, preserves_flags)) }
        }
    }

    /// Reads one byte; all ones, as without a device, from a port that is not allowed.
    pub fn read_byte(&self, port: u16) -> u8 {
        let mut value = u8::MAX;
        if self.ports.contains(&port) {
            // SAFETY: as in `write_byte`.
            unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nostack, preserves_flags)) }
        }
        value
    }

    /// Selector and size, bytes, of the file `name` of the firmware configuration, where [`FIRMWARE`] is allowed;
    /// `None` if there is none.
    pub fn firmware_file(&self, name: &str) -> Option<(u16, u32)> {
        const DIRECTORY: u16 = 0x19;
        let number = || u32::from_be_bytes([(); 4].map(|()| self.read_byte(DATA)));
        self.write_word(SELECT, DIRECTORY);
        (0..number()).find_map(|_| {
            let size = number();
            let [high, low, ..] = number().to_be_bytes();
            let found = [(); 56].map(|()| self.read_byte(DATA));
            let is_it = found.split(|byte| *byte == 0).next() == Some(name.as_bytes());
            is_it.then(|| (u16::from_be_bytes([high, low]), size))
        })
    }

    /// Goes to the beginning of a file of the firmware configuration.
    pub fn select_firmware_file(&self, selector: u16) {
        self.write_word(SELECT, selector);
    }

    /// The next byte of the selected file.
    pub fn next_firmware_byte(&self) -> u8 {
        self.read_byte(DATA)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_other_devices_are_refused() {
        for ports in [0..=0, 0xe8..=0xe9, 0x510..=0x514, 0xcf8..=0xcff, 0..=u16::MAX] {
            let refused = Ports::allow(ports.clone()).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EINVAL), "{ports:?}");
        }
    }
}
