//! One JSON document for a load alone: what `punctual load LOAD --format json` prints.

use crate::LoadRate;
use model::{CpuSet, LoadRecord, MachineSecond, Policy};
use serde::Serialize;

/// What a load did without any measurement.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadDocument<'a> {
    /// CPUs it ran on.
    pub cpus: &'a CpuSet,
    /// How it was scheduled.
    pub policy: Policy,
    /// What each part achieved.
    pub summary: Vec<LoadRate>,
    /// How long it took to end it, ns.
    pub stopping_ns: u64,
    /// What each part did, second by second.
    pub loads: &'a [LoadRecord],
    /// What the machine did meanwhile.
    pub machine: &'a [MachineSecond],
}
