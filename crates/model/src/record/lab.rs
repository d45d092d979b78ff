//! The guest of a measurement.

use crate::LabClock;
use serde::{Deserialize, Serialize};

/// Everything that the result of a guest depends on: with equal values and an equal cell, the result is the same to the
/// bit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabRecord {
    /// Clock of its times.
    pub clock: LabClock,
    /// The kernel: its package or file.
    pub kernel: String,
    /// Hash of that file's contents: 16 hexadecimal digits (FNV-1a, 64 bits).
    pub kernel_hash: String,
    /// The kernel's command line.
    pub command_line: String,
    /// Hash of the initramfs, which holds this program and the cell.
    pub initramfs_hash: String,
    /// Version that QEMU reports.
    pub qemu: String,
    /// The emulated machine and processor.
    pub machine: String,
    /// Memory, MiB.
    pub memory_mib: u32,
    /// Idle time of the guest before the cell, ns.
    pub settled_ns: u64,
}
