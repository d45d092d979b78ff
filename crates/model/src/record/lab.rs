//! The guest of a measurement.

use crate::{CpuSet, GuestThreadKind, LabClock};
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
    /// Threads of QEMU whose scheduling the plan sets, as read back before the guest started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<GuestThread>,
}

/// A thread of a guest on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestThread {
    /// Its kind.
    pub kind: GuestThreadKind,
    /// Its name: `CPU 0/TCG`.
    pub name: String,
    /// Its scheduling policy in its typed form, as the kernel reports it: `fifo:50`.
    pub policy: String,
    /// The CPUs that it may use.
    pub cpus: CpuSet,
}
