//! One JSON document for a check of virtual time: what `punctual lab check --format json` prints.

use model::Record;
use serde::Serialize;

/// A cell measured twice in virtual time, alone and beside a load. `V` is a value of JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LabCheckDocument<'a, V> {
    /// The kernel, as it was asked for.
    pub kernel: String,
    /// Whether nothing differs.
    pub identical: bool,
    /// All that does.
    pub differences: &'a [RecordDifference<V>],
    /// Measured alone.
    pub alone: &'a Record,
    /// Measured beside a load.
    pub loaded: &'a Record,
}

/// A place of two records that holds different values.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordDifference<V> {
    /// Names and indexes on the way to it: `threads.0.recorded`.
    pub path: String,
    /// Measured alone; `null` where nothing stands.
    pub alone: V,
    /// Measured beside a load.
    pub loaded: V,
}
