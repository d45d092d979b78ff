//! What a measured thread answers by: made outside, where devices and addresses are looked up.

#[cfg(target_arch = "x86_64")]
use crate::sys::registers::Registers;
use std::fs::File;
#[cfg(target_arch = "x86_64")]
use std::io;

/// One end of a link.
#[derive(Debug)]
pub enum LinkEnd {
    /// Devices of the lab, each of which interrupts a while after it was started.
    #[cfg(target_arch = "x86_64")]
    Timers(Vec<DmaTimer>),
}

/// A PCI device whose DMA takes a known time and ends with an interrupt: `edu` of QEMU (docs/specs/edu.rst).
#[cfg(target_arch = "x86_64")]
#[derive(Debug)]
pub struct DmaTimer {
    pub(crate) registers: Registers,
    /// `/dev/uioN`: a read waits for the next interrupt.
    pub(crate) interrupts: File,
    /// `config` of the PCI device.
    pub(crate) config: File,
}

#[cfg(target_arch = "x86_64")]
impl DmaTimer {
    /// The registers that are used, bytes.
    const BYTES: usize = 4096;

    /// Of the device with these files: its first memory, its interrupts and its configuration.
    ///
    /// # Errors
    /// When its registers cannot be mapped.
    pub fn new(memory: &File, interrupts: File, config: File) -> io::Result<DmaTimer> {
        Ok(DmaTimer { registers: Registers::map(memory, Self::BYTES)?, interrupts, config })
    }
}
