//! What the machine did while measuring, second by second.

use crate::Span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the machine did between two readings, about a second apart; `null` where it cannot be read, or only by
/// interrupting a measured CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MachineSecond {
    /// Time since the first measured cycle was due, ns, at the end of this stretch; 0 when before it.
    #[serde(rename = "at_ns")]
    pub at: Span,
    /// Time between this reading and the one before, ns.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Span,
    /// Time all CPUs were idle, ms, summed over the CPUs (proc_stat(5)).
    pub idle_ms: Option<u64>,
    /// Time the hypervisor ran something else, ms, summed over the CPUs.
    pub steal_ms: Option<u64>,
    /// Context switches.
    pub context_switches: Option<u64>,
    /// Interrupts.
    pub interrupts: Option<u64>,
    /// Soft interrupts.
    pub soft_interrupts: Option<u64>,
    /// Processes and threads created.
    pub forks: Option<u64>,
    /// Interrupts of the measured CPUs by kind, those that came: `LOC`, `26:ttyS0` (proc_interrupts(5)).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub interrupts_by_kind: BTreeMap<String, u64>,
    /// Soft interrupts of the measured CPUs by kind, those that came (`/proc/softirqs`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub soft_interrupts_by_kind: BTreeMap<String, u64>,
    /// Page faults of all processes (proc_vmstat(5)).
    pub faults: Option<u64>,
    /// Those of them that took I/O.
    pub major_faults: Option<u64>,
    /// How often measured threads moved to another CPU (`se.nr_migrations` of proc_pid_sched(5)).
    pub migrations: Option<u64>,
    /// How often the control group of this process was kept from the CPU (`nr_throttled`, cgroup-v2.rst).
    pub group_throttlings: Option<u64>,
    /// How often measured CPUs were slowed because of heat (`thermal_throttle/core_throttle_count`).
    pub heat_throttlings: Option<u64>,
    /// System management interrupts.
    pub smis: Option<u64>,
    /// Lowest frequency of a measured CPU at the end of this stretch, kHz.
    pub frequency_khz: Option<u64>,
    /// Highest temperature at the end of this stretch, thousandths of a degree Celsius.
    pub temperature_mc: Option<i64>,
    /// CPU time that it took to read all this, us.
    pub reading_us: Option<u64>,
}
