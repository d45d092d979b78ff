//! The protocol between this program and a guest: the job that QEMU hands over, the ports, and the lines of the result.

use model::Cell;
use serde::{Deserialize, Serialize};
use std::io;
use std::time::Duration;

/// How the line with the record begins, that with what the kernel's tracers saw, and one that says why there is none.
pub(super) const RECORD: &str = "record ";
pub(super) const TRACERS: &str = "tracers ";
pub(super) const FAILED: &str = "failed ";
/// How the line begins that says why this kernel cannot be measured as asked.
pub(super) const REFUSED: &str = "refused ";
/// The line of a guest that answers triggers from now on, and how the line begins with what it did.
pub(super) const READY: &str = "ready";
pub(super) const TARGET: &str = "target ";

/// For how long to leave the kernel alone: it does the last of its start in the background. Nothing happens meanwhile, so
/// that it costs next to nothing in virtual time.
pub(super) const SETTLE: Duration = Duration::from_secs(5);

/// The port at which QEMU is told that the guest is at rest; without effect where it is not to be saved.
pub(super) const AT_REST: u16 = 0x505;
/// The port at which QEMU is told to end (isa-debug-exit), with status 2 * the value + 1.
pub(super) const END: u16 = 0x501;

/// The port at which QEMU is told, byte by byte, what came of it (isa-debugcon). No driver stands in between: that of serial ports
/// takes its interrupt for a broken one after some 100 000 bytes under PREEMPT_RT, and turns it off.
pub(super) const RESULT: u16 = 0xe9;

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
pub(super) const JOB_NAME: &str = "opt/punctual/job";

/// The job that QEMU was given for this guest, read from its firmware configuration device (QEMU, docs/specs/fw_cfg.rst):
/// an item is selected by a number at one port and read byte by byte at the next. It needs no driver, and what it holds is
/// no part of a saved state.
#[cfg(target_arch = "x86_64")]
pub(super) fn given_job() -> io::Result<Job> {
    use sys::port;
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
        if name.split(|byte| *byte == 0).next() == Some(JOB_NAME.as_bytes()) {
            port::write_word(SELECT, u16::from_be_bytes([high, low]));
            let json: Vec<u8> = (0..size).map(|_| port::read_byte(DATA)).collect();
            return serde_json::from_slice(&json).map_err(io::Error::other);
        }
    }
    Err(io::Error::other(format!("QEMU gives no file {JOB_NAME}")))
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn given_job() -> io::Result<Job> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
