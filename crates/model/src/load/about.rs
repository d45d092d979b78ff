//! A load in words: an entry of what `punctual load --format json` lists.

use serde::Serialize;

/// One load in words.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AboutLoad {
    /// As it is typed; options in brackets.
    pub load: &'static str,
    /// What it does.
    pub does: &'static str,
    /// What it is known to disturb.
    pub disturbs: &'static str,
    /// Processes, memory, disk.
    pub costs: &'static str,
}
