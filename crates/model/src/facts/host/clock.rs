//! Clock sources and timers.

use super::OnCpus;
use serde::{Deserialize, Serialize};

/// Facts about clocks besides the clock source in use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Clocks {
    /// Available clock sources.
    pub available: Vec<String>,
    /// Whether the time stamp counter runs at a constant rate in every state; `null` on machines without one.
    pub tsc_is_invariant: Option<bool>,
    /// Rate of the counter that the kernel's clock reads on Arm and RISC-V, Hz: times come in steps of one count.
    /// `null` on x86, and where nothing names it.
    pub counter_hz: Option<u64>,
    /// Timer device of each CPU (`current_device` of clockevents).
    pub timer_devices: Vec<OnCpus<String>>,
}
