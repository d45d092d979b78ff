//! Processors: models, topology, caches and mitigations.

use super::OnCpus;
use crate::CpuSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The processors of a machine. A list is empty when it has no entries or cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Processors {
    /// Vendor, family, model and stepping, or the architecture's equivalent: `GenuineIntel 6-79-1`, `0x41 0xd08 r0p3`.
    pub kinds: Vec<OnCpus<String>>,
    /// Microcode revision.
    pub microcode: Vec<OnCpus<String>>,
    /// Relative capacity of CPUs, 1024 for the strongest, where CPUs may differ (`cpu_capacity`).
    pub capacities: Vec<OnCpus<u64>>,
    /// CPUs that are present but offline.
    pub offline: Option<CpuSet>,
    /// Control of simultaneous multithreading: `on`, `off`, `forceoff`, `notsupported`, `notimplemented`
    /// (`smt/control`).
    pub smt: Option<String>,
    /// Whether any core currently runs several threads.
    pub smt_active: Option<bool>,
    /// CPUs of each core with several online threads.
    pub siblings: Vec<CpuSet>,
    /// Caches of the first online CPU.
    pub caches: Vec<Cache>,
    /// CPUs that share each last-level cache.
    pub last_level_caches: Vec<CpuSet>,
    /// Memory nodes that have CPUs or memory.
    pub nodes: Vec<MemoryNode>,
    /// Vulnerabilities of the CPUs with the mitigation of each; unaffected ones are omitted.
    pub vulnerabilities: BTreeMap<String, String>,
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cache {
    /// Cache level, 1 nearest to the CPU.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: Option<String>,
    /// Size, bytes.
    pub size_bytes: Option<u64>,
    /// CPUs that share it.
    pub cpus: Option<CpuSet>,
}

/// One memory node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MemoryNode {
    /// Node number.
    pub node: u32,
    /// CPUs of the node.
    pub cpus: Option<CpuSet>,
    /// Memory of the node, bytes.
    pub memory_bytes: Option<u64>,
}
