//! The platform below the kernel: machine, firmware, temperature and steal time.

use serde::{Deserialize, Serialize};

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
