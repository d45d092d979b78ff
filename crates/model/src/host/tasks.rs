//! Other programs that matter: those that run in real time, and those that change settings.

use serde::{Deserialize, Serialize};

/// Programs and kernel threads, as far as this process sees them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Tasks {
    /// Threads looked at; `null` when they cannot be listed.
    pub looked_at: Option<u32>,
    /// Whether that were all.
    pub is_complete: bool,
    /// Threads with a real-time policy that are not this program's, alike ones together, highest priority first.
    pub realtime: Vec<RealtimeTask>,
    /// Programs found running that change settings which matter, by name.
    pub daemons: Vec<String>,
}

/// Threads of one name, policy and priority.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RealtimeTask {
    /// Their name; of several kernel threads what stands before the `/`: `migration/*`.
    pub name: String,
    /// `fifo`, `rr` or `deadline`.
    pub policy: String,
    /// Priority, 1 to 99; `null` for deadline threads.
    pub priority: Option<u32>,
    /// Whether they belong to the kernel.
    pub is_kernel: bool,
    /// How many.
    pub count: u32,
}

impl RealtimeTask {
    /// Whether it carries out interrupt handlers: the kernel names these threads `irq/NUMBER-NAME`.
    #[must_use]
    pub fn is_irq_thread(&self) -> bool {
        self.is_kernel && self.name.starts_with("irq/")
    }
}
