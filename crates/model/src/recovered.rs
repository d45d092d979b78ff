//! What was done about settings that a killed process has left changed.

use serde::Serialize;
use std::path::PathBuf;

/// What was done about one journal.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recovered {
    /// The process that made the changes; `null` when its journal cannot be read.
    pub pid: Option<u32>,
    /// What was put back, in words.
    pub restored: Vec<String>,
    /// What something else has changed since, so that it is left alone.
    pub left: Vec<String>,
    /// What could not be put back, and why.
    pub failed: Vec<String>,
    /// Whether the machine was started anew since, which undid everything.
    pub rebooted: bool,
}

/// All that was done: what `punctual recover --format json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recovery {
    /// What was done about each journal.
    pub recovered: Vec<Recovered>,
    /// What a killed process had left behind, and is gone now.
    pub removed: Vec<PathBuf>,
}
