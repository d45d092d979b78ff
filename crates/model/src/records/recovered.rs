//! Recovery of settings that a killed process left changed.

use serde::Serialize;
use std::path::PathBuf;

/// Recovery from one journal.
#[derive(Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Recovered {
    /// The process that made the changes; `null` when its journal cannot be read.
    pub pid: Option<u32>,
    /// Settings that were restored, as text.
    pub restored: Vec<String>,
    /// Settings that another program has changed since, and that are left unchanged.
    pub left: Vec<String>,
    /// Settings that could not be restored, with the reason.
    pub failed: Vec<String>,
    /// Whether the machine was rebooted since, which undid all changes.
    pub rebooted: bool,
}

/// The whole recovery: the output of `punctual recover --format json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Recovery {
    /// Recovery from each journal.
    pub recovered: Vec<Recovered>,
    /// Other remains of killed processes that were removed.
    pub removed: Vec<PathBuf>,
}
