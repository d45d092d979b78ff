//! Activity of the machine during the measurement, second by second.

use crate::Span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Activity of the machine between two readings, about a second apart; `null` where it cannot be read, or only by
/// interrupting a measured CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct MachineSecond {
    /// Time since the first measured due time, ns, at the end of this interval; 0 when before it.
    #[serde(rename = "at_ns")]
    pub at: Span,
    /// Time since the previous reading, ns.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Span,
    /// Idle time, ms, summed over the CPUs (proc_stat(5)).
    pub idle_ms: Option<u64>,
    /// Steal time, ms, summed over the CPUs.
    pub steal_ms: Option<u64>,
    /// Context switches.
    pub context_switches: Option<u64>,
    /// Interrupts.
    pub interrupts: Option<u64>,
    /// Soft interrupts.
    pub soft_interrupts: Option<u64>,
    /// Processes and threads created.
    pub forks: Option<u64>,
    /// Interrupts of the measured CPUs by kind, without kinds that did not occur: `LOC`, `26:ttyS0`
    /// (proc_interrupts(5)).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub interrupts_by_kind: BTreeMap<String, u64>,
    /// Soft interrupts of the measured CPUs by kind, without kinds that did not occur (`/proc/softirqs`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub soft_interrupts_by_kind: BTreeMap<String, u64>,
    /// Page faults of all processes (proc_vmstat(5)).
    pub faults: Option<u64>,
    /// Major page faults: those with I/O.
    pub major_faults: Option<u64>,
    /// Migrations of measured threads to another CPU (`se.nr_migrations` of proc_pid_sched(5)).
    pub migrations: Option<u64>,
    /// Throttled periods of the control group of this process (`nr_throttled`, cgroup-v2.rst).
    pub group_throttlings: Option<u64>,
    /// Thermal throttling events of measured CPUs (`thermal_throttle/core_throttle_count`).
    pub heat_throttlings: Option<u64>,
    /// System management interrupts.
    pub smis: Option<u64>,
    /// Lowest frequency of a measured CPU at the end of this interval, kHz.
    pub frequency_khz: Option<u64>,
    /// Highest temperature at the end of this interval, thousandths of a degree Celsius.
    pub temperature_mc: Option<i64>,
    /// Electrical power in this interval, mW: the mean of the processor packages (powercap), or the reading of the
    /// meters of the machine (hwmon) or of a discharging battery at the end of this interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_mw: Option<u64>,
    /// CPU time of this reading itself, us.
    pub reading_us: Option<u64>,
}
