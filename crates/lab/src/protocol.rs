//! The protocol between the lab and a guest: the job that QEMU passes on, the I/O ports, and the result lines.

use model::Cell;
use serde::{Deserialize, Serialize};
use std::io;
use std::time::Duration;

/// Prefixes of the result lines: the record, the output of the kernel's tracers, and the reason of a failure.
pub(super) const RECORD: &str = "record ";
pub(super) const TRACERS: &str = "tracers ";
pub(super) const FAILED: &str = "failed ";
/// Prefix of the line with the reason why this kernel cannot be measured as requested.
pub(super) const REFUSED: &str = "refused ";
/// Line of a responder guest that is ready, and prefix of the line with its record.
pub(super) const READY: &str = "ready";
pub(super) const TARGET: &str = "target ";

/// Settling time of the kernel, which finishes its start in the background. The guest is idle meanwhile, so it costs
/// next to nothing in virtual time.
pub(super) const SETTLE_TIME: Duration = Duration::from_secs(5);

/// I/O port that signals to QEMU that the guest is at rest; without effect unless a snapshot is taken.
pub(super) const AT_REST: u16 = 0x505;
/// I/O port that ends QEMU (isa-debug-exit), with status 2 * value + 1.
pub(super) const END: u16 = 0x501;

/// I/O port for the result, byte by byte (isa-debugcon). It needs no driver: that of serial ports treats its interrupt
/// as stuck after some 100 000 bytes under PREEMPT_RT, and disables it.
pub(super) const RESULT: u16 = 0xe9;

/// One measurement for a guest that has already booted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    /// The cell to measure.
    pub(super) cell: Cell,
    /// Delay before the start, ns.
    pub(super) wait_ns: u64,
    /// Timeout without a record, ns of the guest's time.
    pub(super) limit_ns: u64,
    /// Whether to respond to the triggers of another guest, which measures the cell.
    #[serde(default)]
    pub(super) is_target: bool,
}

/// Name of the job among the firmware configuration files of QEMU.
pub(super) const JOB_NAME: &str = "opt/punctual/job";

/// The job of this guest, read from QEMU's firmware configuration device (QEMU, docs/specs/fw_cfg.rst): an item is
/// selected by a number at one port and read byte by byte at the next. It needs no driver, and its content is not part
/// of a snapshot.
#[cfg(target_arch = "x86_64")]
pub(super) fn read_job() -> io::Result<Job> {
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
    Err(io::Error::other(format!("no file {JOB_NAME} from QEMU")))
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn read_job() -> io::Result<Job> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
