//! How the kernel was built, and what of it costs time.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Facts about the kernel beside its release, version and preemption model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct KernelFacts {
    /// File that the configuration was read from; `null`: the configuration is not known.
    pub config_file: Option<String>,
    /// Values of the options that matter for latency, without `CONFIG_`; those that are not set are left out.
    pub options: BTreeMap<String, String>,
    /// Timer interrupts a second that the kernel counts time in (`CONFIG_HZ`).
    pub tick_hz: Option<u32>,
    /// Why the kernel says it is tainted, as bits (Documentation/admin-guide/tainted-kernels.rst).
    pub tainted: Option<u64>,
    /// The tracer in use; `nop` is none.
    pub tracer: Option<String>,
    /// Whether locks are checked at run time (`/proc/lockdep_stats` is there).
    pub lockdep: Option<bool>,
    /// What even root may not do: `none` (it may all), `integrity` or `confidentiality`, which keep debugfs closed
    /// (kernel_lockdown(7)).
    pub lockdown: Option<String>,
    /// Whether RCU is asked to do without expedited grace periods.
    pub rcu_normal: Option<bool>,
    /// Whether RCU is asked to expedite every grace period.
    pub rcu_expedited: Option<bool>,
    /// Consoles that kernel messages are written to.
    pub consoles: Vec<String>,
    /// Messages of a lower level than this go to the consoles, 1 to 15 (syslog(2)).
    pub console_level: Option<u32>,
    /// Whether the machine was started by EFI.
    pub efi: Option<bool>,
}
