//! Clock sources and timers.

use super::OnCpus;
use serde::{Deserialize, Serialize};

/// Facts about clocks beside the clock source in use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Clocks {
    /// Clock sources that there are.
    pub available: Vec<String>,
    /// Whether the time stamp counter runs at one rate in every state; `null` on machines without one.
    pub tsc_is_invariant: Option<bool>,
    /// What interrupts each CPU when a timer expires (`current_device` of clockevents).
    pub timer_devices: Vec<OnCpus<String>>,
}
