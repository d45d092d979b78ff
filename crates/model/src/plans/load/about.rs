//! Descriptions of loads: an entry of the list that `punctual load --format json` prints.

use serde::Serialize;

/// Description of one load.
#[derive(Debug, Clone, Copy, Serialize, schemars::JsonSchema)]
pub struct AboutLoad {
    /// The typed form; options in brackets.
    pub load: &'static str,
    /// The work that it does.
    pub does: &'static str,
    /// Known effects on other threads.
    pub disturbs: &'static str,
    /// Resources that it uses: processes, memory, disk.
    pub costs: &'static str,
}
