//! Memory management settings.

use serde::{Deserialize, Serialize};

/// Settings of the memory management (Documentation/admin-guide/sysctl/vm.rst, Documentation/admin-guide/mm).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Memory {
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub huge_pages: Option<String>,
    /// Total swap space, bytes.
    pub swap_bytes: Option<u64>,
    /// Whether equal pages are merged in the background (`ksm/run` is 1).
    pub ksm: Option<bool>,
    /// Proactiveness of background compaction, 0 to 100.
    pub compaction_proactiveness: Option<u32>,
    /// Whether compaction may move locked pages.
    pub compacts_locked_pages: Option<bool>,
    /// Seconds between two updates of memory statistics on each CPU.
    pub stat_interval_s: Option<u64>,
}
