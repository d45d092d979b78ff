//! The protocol between the lab and a guest: the job that QEMU passes on, the channels, and the result lines.

use punctual_model::Cell;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::time::Duration;

/// Prefixes of the result lines: the record, and the reason of a failure.
pub(super) const RECORD: &str = "record ";
pub(super) const FAILED: &str = "failed ";
/// Prefix of the line with the reason why this kernel cannot be measured as requested.
pub(super) const REFUSED: &str = "refused ";
/// Line of a responder guest that is ready, and prefix of the line with its record.
pub(super) const READY: &str = "ready";
pub(super) const TARGET: &str = "target ";

/// Prefix of each line with a function of the kernel.
pub(super) const SYMBOL: &str = "symbol ";
/// Prefix of the line with the time by `CLOCK_MONOTONIC`, ns, just before the guest pauses.
pub(super) const CLOCK: &str = "clock ";

/// Settling time of the kernel, which finishes its start in the background. The guest is idle meanwhile, so it costs
/// next to nothing in virtual time.
pub(super) const SETTLE_TIME: Duration = Duration::from_secs(5);
/// The same in machine time, where each guest takes it: the kernel chooses its clock within about 2 s.
pub(super) const MACHINE_SETTLE_TIME: Duration = Duration::from_secs(3);
/// Environment variable of guests in machine time, from their command line, as [`punctual_host::GUEST_VARIABLE`].
pub(super) const MACHINE_TIME_VARIABLE: &str = "PUNCTUAL_MACHINE_TIME";

/// Size of the memory that a guest without I/O ports shares with the lab: a file with holes. It begins with the length
/// of the job, 8 bytes little-endian, and the job; the result follows at [`SHARED_RESULT`], up to the first zero byte.
pub(super) const SHARED_MIB: u32 = 64;
/// Offset of the result in the shared memory.
pub(super) const SHARED_RESULT: usize = 1 << 20;
/// Offset of the clock marks, the end of the job; guests with I/O ports share memory up to the result for them alone.
pub(super) const SHARED_MARKS: usize = SHARED_RESULT - 4096;
/// Vendor and device number of ivshmem (QEMU, docs/specs/ivshmem-spec.rst), and the number of its memory.
pub(super) const SHARED_DEVICE: ([&str; 2], usize) = (["0x1af4", "0x1110"], 2);

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
    /// Whether the lab reads the guest's clock before and after the cell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) has_marks: bool,
    /// Whether the guest has a disk.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) has_disk: bool,
    /// Its address in the network of two guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) address: Option<Ipv4Addr>,
    /// The cycle whose due time can be moved (`movable` of the settings in `rt`), 12 digits: the work of reading it is
    /// the same for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) movable: Option<String>,
    /// Whether the guest reports the functions of its kernel, and measures nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) lists_symbols: bool,
}

/// Name of the job among the firmware configuration files of QEMU.
pub(super) const JOB_NAME: &str = "opt/punctual/job";
