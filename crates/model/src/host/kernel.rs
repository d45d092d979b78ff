//! Kernel build options and debugging features that cost time.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Facts about the kernel besides its release, version and preemption model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct KernelFacts {
    /// Source file of the configuration; `null`: the configuration is unknown.
    pub config_file: Option<String>,
    /// Values of the options that matter for latency, without `CONFIG_`; unset options are omitted.
    pub options: BTreeMap<String, String>,
    /// Frequency of the timer tick, Hz (`CONFIG_HZ`).
    pub tick_hz: Option<u32>,
    /// Taint flags (Documentation/admin-guide/tainted-kernels.rst).
    pub tainted: Option<u64>,
    /// Tracer in use; `nop` means none.
    pub tracer: Option<String>,
    /// Whether lockdep checks locks at run time (`/proc/lockdep_stats` exists).
    pub lockdep: Option<bool>,
    /// Lockdown mode: `none`, `integrity` or `confidentiality`. The latter two restrict root and close debugfs
    /// (kernel_lockdown(7)).
    pub lockdown: Option<String>,
    /// Whether RCU avoids expedited grace periods.
    pub rcu_normal: Option<bool>,
    /// Whether RCU expedites every grace period.
    pub rcu_expedited: Option<bool>,
    /// Consoles that kernel messages are written to.
    pub consoles: Vec<String>,
    /// Console log level: messages of a lower level go to the consoles, 1 to 15 (syslog(2)).
    pub console_level: Option<u32>,
    /// Whether the machine was booted by EFI.
    pub efi: Option<bool>,
}
