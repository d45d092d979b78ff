//! The guest that a cell was measured in.

use crate::LabClock;
use serde::{Deserialize, Serialize};

/// All that the result of a guest depends on: with the same, and the same cell, it is the same to the bit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabRecord {
    /// What its times are.
    pub clock: LabClock,
    /// The kernel: the package or the file it is from.
    pub kernel: String,
    /// Stands for the content of that file: 16 hexadecimal digits (FNV-1a, 64 bits).
    pub kernel_hash: String,
    /// The kernel's command line.
    pub command_line: String,
    /// Stands for the first file system, which holds this program and the cell.
    pub initramfs_hash: String,
    /// The version that QEMU gives itself.
    pub qemu: String,
    /// The machine and the processor that it shows.
    pub machine: String,
    /// Memory, MiB.
    pub memory_mib: u32,
    /// For how long the guest was left alone before the cell, ns.
    pub settled_ns: u64,
}
