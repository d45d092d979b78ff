//! Other programs that affect latency: real-time threads, and daemons that change settings.

use serde::{Deserialize, Serialize};

/// Programs and kernel threads visible to this process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Tasks {
    /// Number of threads examined; `null` when they cannot be listed.
    pub looked_at: Option<u32>,
    /// Whether all threads were examined.
    pub is_complete: bool,
    /// Real-time threads of other programs, equal ones together, highest priority first.
    pub realtime: Vec<RealtimeTask>,
    /// Running daemons that change settings which affect latency, by name.
    pub daemons: Vec<String>,
}

/// Threads of one name, policy and priority.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RealtimeTask {
    /// Thread name; for several kernel threads the part before the `/`: `migration/*`.
    pub name: String,
    /// `fifo`, `rr` or `deadline`.
    pub policy: String,
    /// Priority, 1 to 99; `null` for deadline threads.
    pub priority: Option<u32>,
    /// Whether they are kernel threads.
    pub is_kernel: bool,
    /// Number of threads.
    pub count: u32,
}

impl RealtimeTask {
    /// Whether it runs interrupt handlers: the kernel names these threads `irq/NUMBER-NAME`.
    pub fn is_irq_thread(&self) -> bool {
        self.is_kernel && self.name.starts_with("irq/")
    }
}
