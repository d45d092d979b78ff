//! Processors: which they are, what they share, what they have to guard against.

use super::OnCpus;
use crate::CpuSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The processors of a machine. A list is empty when there is nothing to list or it cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Processors {
    /// Maker, family, model and stepping, or what the architecture has instead: `GenuineIntel 6-79-1`, `0x41 0xd08 r0p3`.
    pub kinds: Vec<OnCpus<String>>,
    /// Microcode revision.
    pub microcode: Vec<OnCpus<String>>,
    /// Computing power beside the strongest CPU's 1024, where CPUs may differ (`cpu_capacity`).
    pub capacities: Vec<OnCpus<u64>>,
    /// CPUs that are there but off line.
    pub offline: Option<CpuSet>,
    /// Simultaneous multithreading as set: `on`, `off`, `forceoff`, `notsupported`, `notimplemented` (`smt/control`).
    pub smt: Option<String>,
    /// Whether any core runs several threads now.
    pub smt_active: Option<bool>,
    /// CPUs of each core that has several on line.
    pub siblings: Vec<CpuSet>,
    /// Caches of the first CPU on line.
    pub caches: Vec<Cache>,
    /// CPUs that share each last-level cache.
    pub last_level_caches: Vec<CpuSet>,
    /// Memory nodes that have CPUs or memory.
    pub nodes: Vec<MemoryNode>,
    /// Vulnerabilities that the CPUs have, and what is done about each; those that they do not have are left out.
    pub vulnerabilities: BTreeMap<String, String>,
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cache {
    /// 1 is nearest to the CPU.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: Option<String>,
    /// Size, bytes.
    pub size_bytes: Option<u64>,
    /// CPUs that share it.
    pub cpus: Option<CpuSet>,
}

/// One memory node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryNode {
    /// Its number.
    pub node: u32,
    /// Its CPUs.
    pub cpus: Option<CpuSet>,
    /// Its memory, bytes.
    pub memory_bytes: Option<u64>,
}
