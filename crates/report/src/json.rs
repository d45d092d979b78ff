//! The JSON documents of commands, with units in their keys; `schema/` holds their schemas.

mod configs;
mod frontier;
mod imported;
mod list;
mod plan;
mod run;

use crate::Results;
use punctual_analysis::comparison::Comparison;
use punctual_analysis::cost::CostComparison;
use punctual_analysis::doctor::{Examined, Severity};
use punctual_analysis::facts::Fingerprint;
use punctual_analysis::frontier::{Search, SearchParameters};
use punctual_analysis::{Answer, LoadRate};
use punctual_model::{Cell, CpuSet, Header, Host, LoadRecord, MachineSecond, Policy, Record};
use serde::Serialize;
use serde_json::Value;

pub(crate) use configs::of_config_check;
pub use configs::{ComparedKernel, ConfigCheckDocument};
pub use frontier::FrontierDocument;
pub use imported::ImportedDocument;
pub use list::{List, Listed, Unreadable};
pub use plan::{DryRun, PlannedCell, ReadyPlan, ReadyPlans};
pub use run::RunDocument;

/// The document of `punctual show --format json`.
pub fn of_results(results: &Results<'_>) -> Value {
    match results {
        Results::Own(run) => value(&run::document(run.header, run.summary)),
        Results::Imported(run) => value(&imported::document(run.header, run.summary)),
    }
}

/// The comparison of latencies as a JSON document.
pub fn of_comparison(comparison: &Comparison) -> Value {
    value(&ComparisonDocument { comparison, answer: comparison.answer(), remarks: comparison.remarks() })
}

/// A search as a JSON document; `cell` is the cell of every trial, except for its period.
pub(crate) fn of_search(header: &Header, cell: &Cell, asked: &SearchParameters, search: &Search) -> Value {
    value(&frontier::document(header, cell, asked, search))
}

/// The comparison of costs as one document.
pub fn of_costs(comparison: &CostComparison) -> ComparisonDocument<'_, CostComparison> {
    ComparisonDocument { comparison, answer: comparison.answer(), remarks: comparison.remarks() }
}

/// The checks of a machine as a JSON document; `tool` is the name and version of the program.
pub(crate) fn of_checks(answer: Answer, tool: &str, host: &Host, checks: &[Examined]) -> Value {
    let count = |severity| checks.iter().filter(|check| check.outcome.severity == severity).count();
    let totals = Totals {
        will: count(Severity::Will),
        may: count(Severity::May),
        unknown: count(Severity::Unknown),
        ok: count(Severity::Ok),
        not_applicable: count(Severity::NotApplicable),
    };
    value(&DoctorDocument { format: FORMAT, answer, tool, fingerprint: Fingerprint::of(host), totals, checks, host })
}

pub(crate) fn value(document: &impl Serialize) -> Value {
    serde_json::to_value(document).expect("plain fields with text keys always become JSON")
}

/// A comparison with its sentences.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ComparisonDocument")]
pub struct ComparisonDocument<'a, C> {
    #[serde(flatten)]
    comparison: &'a C,
    /// The answer in one sentence.
    answer: Answer,
    /// Conditions and limits of the answer.
    remarks: Vec<String>,
}

/// Format version of the document of the checks.
const FORMAT: u32 = 2;

/// The requested checks of a machine.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct DoctorDocument<'a> {
    format: u32,
    /// The answer in one sentence.
    answer: Answer,
    tool: &'a str,
    fingerprint: Fingerprint,
    totals: Totals,
    checks: &'a [Examined],
    host: &'a Host,
}

/// Number of checks per result.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Totals {
    will: usize,
    may: usize,
    unknown: usize,
    ok: usize,
    not_applicable: usize,
}

/// Work of a load without a measurement.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct LoadDocument<'a> {
    /// CPUs of the load.
    pub cpus: &'a CpuSet,
    /// Scheduling policy of the load.
    pub policy: Policy,
    /// Rate of each part.
    pub summary: Vec<LoadRate>,
    /// Time to stop the load, ns.
    pub stopping_ns: u64,
    /// Work of each part, second by second.
    pub loads: &'a [LoadRecord],
    /// Activity of the machine, second by second.
    pub machine: &'a [MachineSecond],
}

/// A cell measured twice in virtual time, alone and beside a load. `V` is a value of JSON.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct LabCheckDocument<'a, V> {
    /// The kernel as requested.
    pub kernel: String,
    /// Whether the records are equal.
    pub identical: bool,
    /// All differences.
    pub differences: &'a [RecordDifference<V>],
    /// The record measured without another load on the host.
    pub alone: &'a Record,
    /// The record measured beside a load on the host.
    pub loaded: &'a Record,
}

/// A field with different values in two records.
#[derive(Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RecordDifference<V> {
    /// Path of names and indexes: `threads.0.recorded`.
    pub path: String,
    /// Value in the record `alone`; `null` if absent.
    pub alone: V,
    /// Value in the record `loaded`.
    pub loaded: V,
}
