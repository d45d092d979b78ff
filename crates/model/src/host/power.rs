//! Frequency and idle states: what a CPU may do when there is little to do.

use super::OnCpus;
use crate::CpuSet;
use serde::{Deserialize, Serialize};

/// Settings that trade latency for energy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Power {
    /// Frequency scaling; empty when there is none.
    pub frequency: Vec<OnCpus<FrequencyPolicy>>,
    /// Mode of `intel_pstate` or `amd_pstate`: `active`, `guided`, `passive`, `off`.
    pub pstate: Option<String>,
    /// Whether CPUs may run above their nominal frequency.
    pub turbo: Option<bool>,
    /// What puts idle CPUs to sleep (`cpuidle/current_driver`); `none` leaves it to the architecture.
    pub idle_driver: Option<String>,
    /// What chooses among the idle states.
    pub idle_governor: Option<String>,
    /// How long a guest's CPU waits awake before it halts, ns (`haltpoll`); `null` where it is another governor's.
    pub halt_poll_ns: Option<u64>,
    /// Idle states, the shallowest first; empty when there are none to choose from.
    pub idle_states: Vec<IdleState>,
    /// Power management of PCI Express links: `default`, `performance`, `powersave`, `powersupersave`.
    pub pcie_aspm: Option<String>,
}

/// How the frequency of a CPU is chosen (Documentation/admin-guide/pm/cpufreq.rst).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FrequencyPolicy {
    /// Driver.
    pub driver: Option<String>,
    /// Governor.
    pub governor: Option<String>,
    /// Lowest frequency asked for, kHz.
    pub min_khz: Option<u64>,
    /// Highest frequency asked for, kHz.
    pub max_khz: Option<u64>,
    /// Lowest frequency of the hardware, kHz.
    pub hardware_min_khz: Option<u64>,
    /// Highest frequency of the hardware, kHz.
    pub hardware_max_khz: Option<u64>,
    /// What the hardware is to prefer where it chooses: `performance`, `balance_performance`, `power`, ...
    pub energy_preference: Option<String>,
}

/// One idle state (Documentation/admin-guide/pm/cpuidle.rst).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IdleState {
    /// Its name: `POLL`, `C1E`, `C6`.
    pub name: String,
    /// Its number on these CPUs, from 0.
    pub index: u32,
    /// Longest time to leave it, us.
    pub exit_latency_us: Option<u64>,
    /// CPUs that have it.
    pub cpus: CpuSet,
    /// Those of them on which it is switched off.
    pub disabled: CpuSet,
}
