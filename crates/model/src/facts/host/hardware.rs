//! Hardware: processors, their topology, caches and mitigations, memory, and the platform below the kernel.

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
    /// Groups of tasks and CPUs that have their own part of the last-level cache; 0: resctrl is not mounted, `null`:
    /// the processor cannot divide it (`cat_l3`).
    pub cache_groups: Option<u64>,
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

/// Facts about the platform.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Platform {
    /// Vendor and product from the firmware.
    pub machine: Option<String>,
    /// Version and date of the firmware.
    pub firmware: Option<String>,
    /// System management interrupts of the first online CPU since reset; `null` where they cannot be counted.
    pub smi_count: Option<u64>,
    /// Steal time since boot, ms, summed over the CPUs.
    pub steal_ms: Option<u64>,
    /// Total CPU time since boot, ms, summed over the CPUs.
    pub cpu_time_ms: Option<u64>,
    /// Number of thermal throttling events of CPUs and packages since boot; `null` where it is not counted.
    pub throttle_events: Option<u64>,
    /// The hottest thermal zone.
    pub hottest: Option<ThermalZone>,
}

/// A thermal zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThermalZone {
    /// Type of the zone: `x86_pkg_temp`, `cpu-thermal`.
    pub kind: Option<String>,
    /// Temperature, thousandths of a degree Celsius.
    pub millicelsius: i64,
    /// Lowest trip point that throttles or shuts down a device, thousandths of a degree Celsius.
    pub limit_millicelsius: Option<i64>,
}

/// Settings of the memory management (Documentation/admin-guide/sysctl/vm.rst, Documentation/admin-guide/mm).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Memory {
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub huge_pages: Option<String>,
    /// Total swap space, bytes.
    pub swap_bytes: Option<u64>,
    /// Whether equal pages are merged in the background (`ksm/run` is 1).
    pub ksm: Option<bool>,
    /// Proactiveness of background compaction, 0 to 100.
    pub compaction_proactiveness: Option<u32>,
    /// Whether compaction may move locked pages.
    pub compacts_locked_pages: Option<bool>,
    /// Seconds between two updates of memory statistics on each CPU.
    pub stat_interval_s: Option<u64>,
}

/// A value with its CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OnCpus<T> {
    /// The CPUs.
    pub cpus: CpuSet,
    /// Their value.
    pub value: T,
}

impl<T: PartialEq> OnCpus<T> {
    /// Collects each distinct value once, in the order of first occurrence.
    pub fn gather(values: impl IntoIterator<Item = (CpuSet, T)>) -> Vec<OnCpus<T>> {
        let mut gathered: Vec<OnCpus<T>> = Vec::new();
        for (cpus, value) in values {
            match gathered.iter_mut().find(|group| group.value == value) {
                Some(group) => group.cpus.extend(cpus.iter()),
                None => gathered.push(OnCpus { cpus, value }),
            }
        }
        gathered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_there_once() {
        let one = |cpu: u32, value| (CpuSet::from_iter([cpu]), value);
        let gathered = OnCpus::gather([one(0, 'a'), one(1, 'b'), one(2, 'a')]);
        let texts: Vec<_> = gathered.iter().map(|group| (group.cpus.to_string(), group.value)).collect();
        assert_eq!(texts, [("0,2".to_owned(), 'a'), ("1".to_owned(), 'b')]);
        assert_eq!(OnCpus::<u8>::gather([]), []);
    }
}
