//! The guest of a measurement.

use super::LoadRecord;
use crate::{ClockTie, ConfigSummary, CpuSet, GuestStop, GuestThreadKind, LabClock};
use serde::{Deserialize, Serialize};

/// Everything that the result of a guest depends on: with equal values and an equal cell, the result is the same to the
/// bit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LabRecord {
    /// Clock of its times.
    pub clock: LabClock,
    /// The kernel: its package or file.
    pub kernel: String,
    /// Hash of that file's contents: 16 hexadecimal digits (FNV-1a, 64 bits).
    pub kernel_hash: String,
    /// The kernel's build configuration; `null`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<ConfigSummary>,
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
    /// This machine while the guest measured; `null` unless it ran a load or was traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostSideRecord>,
}

/// The machine of a guest while it measured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HostSideRecord {
    /// Activity of each part of its load; empty without a load.
    pub loads: Vec<LoadRecord>,
    /// How the guest's clock followed this machine's; `null` when late wake-ups are not explained on both.
    pub tie: Option<ClockTie>,
    /// Reason why late wake-ups are explained by the guest alone; `null` when they are not, or not explained at all.
    pub not_joined: Option<String>,
    /// Times for which QEMU had stopped the guest on request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<GuestStop>,
}

/// A thread of a guest on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
