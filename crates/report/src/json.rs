//! The JSON documents that commands print, with units in their keys; `schema/` holds their schemas.

mod frontier;
mod imported;
mod list;
mod run;

use crate::Results;
use analysis::LoadRate;
use analysis::comparison::Comparison;
use analysis::cost::CostComparison;
use analysis::doctor::{Examined, Severity};
use analysis::facts::Fingerprint;
use analysis::frontier::{Search, SearchParameters};
use model::{Cell, CpuSet, Header, Host, LoadRecord, MachineSecond, Policy, Record};
use serde::Serialize;
use serde_json::Value;

pub use frontier::FrontierDocument;
pub use imported::ImportedDocument;
pub use list::{List, Listed, Unreadable};
pub use run::RunDocument;

/// The document that `punctual show --format json` prints.
#[must_use]
pub fn of_results(results: &Results<'_>) -> Value {
    match results {
        Results::Own(run) => value(&run::document(run.header, run.summary)),
        Results::Imported(run) => value(&imported::document(run.header, run.summary)),
    }
}

/// A comparison of latencies.
#[must_use]
pub fn of_comparison(comparison: &Comparison) -> Value {
    value(&ComparisonDocument { comparison, sentence: comparison.sentence(), remarks: comparison.remarks() })
}

/// A search; `cell` is what every trial was but for its period.
pub(crate) fn of_search(header: &Header, cell: &Cell, asked: &SearchParameters, search: &Search) -> Value {
    value(&frontier::document(header, cell, asked, search))
}

/// The comparison of costs as one document.
#[must_use]
pub fn of_costs(comparison: &CostComparison) -> ComparisonDocument<'_, CostComparison> {
    ComparisonDocument { comparison, sentence: comparison.sentence(), remarks: comparison.remarks() }
}

/// The checks of a machine, by the program of this name and version.
pub(crate) fn of_checks(tool: &str, host: &Host, checks: &[Examined]) -> Value {
    let count = |severity| checks.iter().filter(|check| check.outcome.severity == severity).count();
    let totals = Totals {
        will: count(Severity::Will),
        may: count(Severity::May),
        unknown: count(Severity::Unknown),
        ok: count(Severity::Ok),
        does_not_apply: count(Severity::DoesNotApply),
    };
    value(&DoctorDocument { format: FORMAT, tool, fingerprint: Fingerprint::of(host), totals, checks, host })
}

fn value(document: &impl Serialize) -> Value {
    serde_json::to_value(document).expect("plain fields with text keys always become JSON")
}

/// A comparison with its sentences.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ComparisonDocument"))]
pub struct ComparisonDocument<'a, C> {
    #[serde(flatten)]
    comparison: &'a C,
    /// The answer in words.
    sentence: String,
    /// What has to be known beside it.
    remarks: Vec<String>,
}

/// The version of the document of the checks.
const FORMAT: u32 = 1;

/// The checks of a machine that were asked for.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DoctorDocument<'a> {
    format: u32,
    tool: &'a str,
    fingerprint: Fingerprint,
    totals: Totals,
    checks: &'a [Examined],
    host: &'a Host,
}

/// How many checks said so.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Totals {
    will: usize,
    may: usize,
    unknown: usize,
    ok: usize,
    does_not_apply: usize,
}

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
