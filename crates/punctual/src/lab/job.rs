//! What a guest is asked to do, on its way from QEMU into the guest.

use model::Cell;
use serde::{Deserialize, Serialize};
use std::io;

/// One measurement for a guest that has already started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    /// What to measure.
    pub(super) cell: Cell,
    /// For how long to do nothing before it, ns.
    pub(super) wait_ns: u64,
    /// After how long without a record to give up, ns of the guest's time.
    pub(super) limit_ns: u64,
    /// Whether to answer the triggers of another guest, which measures the cell.
    #[serde(default)]
    pub(super) is_target: bool,
}

/// What the file is called among those that QEMU hands to its guest.
pub(super) const NAME: &str = "opt/punctual/job";

/// The job that QEMU was given for this guest, read from its firmware configuration device (QEMU, docs/specs/fw_cfg.rst):
/// an item is selected by a number at one port and read byte by byte at the next. It needs no driver, and what it holds is
/// no part of a saved state.
#[cfg(target_arch = "x86_64")]
pub(super) fn given() -> io::Result<Job> {
    use rt::sys::port;
    const SELECT: u16 = 0x510;
    const DATA: u16 = 0x511;
    const DIRECTORY: u16 = 0x19;
    port::allow(SELECT, 2)?;
    let number = || u32::from_be_bytes([(); 4].map(|()| port::read_byte(DATA)));
    port::write_word(SELECT, DIRECTORY);
    for _ in 0..number() {
        let size = number();
        let [high, low, ..] = number().to_be_bytes();
        let name = [(); 56].map(|()| port::read_byte(DATA));
        if name.split(|byte| *byte == 0).next() == Some(NAME.as_bytes()) {
            port::write_word(SELECT, u16::from_be_bytes([high, low]));
            let json: Vec<u8> = (0..size).map(|_| port::read_byte(DATA)).collect();
            return serde_json::from_slice(&json).map_err(io::Error::other);
        }
    }
    Err(io::Error::other(format!("QEMU gives no file {NAME}")))
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn given() -> io::Result<Job> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
