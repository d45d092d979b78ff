//! What stands below the kernel: machine, firmware, temperature, and what a hypervisor took.

use serde::{Deserialize, Serialize};

/// The ground that the kernel stands on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Platform {
    /// Maker and product, as the firmware names them.
    pub machine: Option<String>,
    /// Version and date of the firmware.
    pub firmware: Option<String>,
    /// System management interrupts of the first CPU on line since reset; `null` where they cannot be counted.
    pub smi_count: Option<u64>,
    /// Time since boot, ms, that the hypervisor ran something else, summed over the CPUs.
    pub steal_ms: Option<u64>,
    /// Time since boot, ms, summed over the CPUs.
    pub cpu_time_ms: Option<u64>,
    /// How often a CPU or package was slowed down because of heat since boot; `null` where it is not counted.
    pub throttle_events: Option<u64>,
    /// The hottest thermal zone.
    pub hottest: Option<ThermalZone>,
}

/// A place whose temperature is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThermalZone {
    /// What it is: `x86_pkg_temp`, `cpu-thermal`.
    pub kind: Option<String>,
    /// Its temperature, thousandths of a degree Celsius.
    pub millicelsius: i64,
    /// The lowest temperature at which something is slowed down or switched off, thousandths of a degree Celsius.
    pub limit_millicelsius: Option<i64>,
}
