//! The record of an outside program that measured.

use crate::{CpuSet, Imported, Policy, Span};
use serde::{Deserialize, Serialize};

/// An outside program, or a driver that measures, and its result.
///
/// [`Record::threads`](crate::Record::threads) holds the distribution of each thread, if the result has one, as far as
/// it is known there; counts that no such program makes (early, missed, lost) are 0 and mean nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InstrumentRecord {
    /// Path of the program, or file of the device; `null` if it was gone at the end.
    pub program: Option<String>,
    /// Command line as executed, with the values of the cell; empty for a driver.
    pub command_line: Vec<String>,
    /// Exit status in words: `exit status: 0`; empty for a driver.
    pub status: String,
    /// Time from its start to its end, ns.
    #[serde(rename = "wall_ns")]
    pub wall: Span,
    /// SHA-256 of the bytes that it wrote as its result; of the numbers of a driver's result, 4 bytes each.
    pub result_sha256: String,
    /// Its threads while it ran, with the settings that the kernel reports; those that lived for less than a second
    /// may be missing.
    pub threads: Vec<InstrumentThread>,
    /// The result.
    pub result: Imported,
}

/// A thread of an outside program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InstrumentThread {
    /// Its name.
    pub name: String,
    /// Its policy.
    pub policy: Policy,
    /// CPUs that it may use.
    pub cpus: CpuSet,
}
