//! Frequency scaling and idle states.

use super::OnCpus;
use crate::CpuSet;
use serde::{Deserialize, Serialize};

/// Settings that trade latency for energy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Power {
    /// Frequency scaling; empty when there is none.
    pub frequency: Vec<OnCpus<FrequencyPolicy>>,
    /// Mode of `intel_pstate` or `amd_pstate`: `active`, `guided`, `passive`, `off`.
    pub pstate: Option<String>,
    /// Whether CPUs may run above their nominal frequency.
    pub turbo: Option<bool>,
    /// Idle driver (`cpuidle/current_driver`); `none`: the architecture's default idle loop.
    pub idle_driver: Option<String>,
    /// Idle governor.
    pub idle_governor: Option<String>,
    /// Time, ns, that a guest's CPU polls before it halts (`haltpoll`); `null` with another governor.
    pub halt_poll_ns: Option<u64>,
    /// Idle states, the shallowest first; empty when there is no choice.
    pub idle_states: Vec<IdleState>,
    /// Power management of PCI Express links: `default`, `performance`, `powersave`, `powersupersave`.
    pub pcie_aspm: Option<String>,
    /// Addresses of the PCI devices with a driver that the kernel may suspend while they are idle (`power/control`);
    /// `null` without PCI.
    pub suspendable: Option<Vec<String>>,
}

/// Frequency policy of a CPU (Documentation/admin-guide/pm/cpufreq.rst).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct FrequencyPolicy {
    /// Scaling driver.
    pub driver: Option<String>,
    /// Scaling governor.
    pub governor: Option<String>,
    /// Lower limit of the policy, kHz.
    pub min_khz: Option<u64>,
    /// Upper limit of the policy, kHz.
    pub max_khz: Option<u64>,
    /// Lowest frequency of the hardware, kHz.
    pub hardware_min_khz: Option<u64>,
    /// Highest frequency of the hardware, kHz.
    pub hardware_max_khz: Option<u64>,
    /// Energy preference for frequency selection by hardware: `performance`, `balance_performance`, `power`, ...
    pub energy_preference: Option<String>,
}

/// One idle state (Documentation/admin-guide/pm/cpuidle.rst).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct IdleState {
    /// Name: `POLL`, `C1E`, `C6`.
    pub name: String,
    /// Index on these CPUs, from 0.
    pub index: u32,
    /// Longest exit latency, us.
    pub exit_latency_us: Option<u64>,
    /// CPUs that have the state.
    pub cpus: CpuSet,
    /// CPUs of these on which it is disabled.
    pub disabled: CpuSet,
}
