//! Tables of a published study with the values of runs beside the published ones, and its conclusions judged.

mod axes;
mod fill;
mod output;

use crate::OwnRun;
use analysis::study::{self, StudyJudgment};
use fill::filled;
use model::{Study, StudyBeyond, plain};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// A study with the values of runs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyReport {
    /// Name of the study.
    pub study: String,
    /// Its title.
    pub title: String,
    /// Its authors and place of publication.
    pub source: String,
    /// Plans that repeat it.
    pub ways: Vec<WayReport>,
    /// Parts that no plan repeats everywhere, and the hardware or software that they take.
    pub beyond: &'static [StudyBeyond],
    /// Its tables.
    pub tables: Vec<FilledTable>,
    /// Its conclusions, judged by these runs together.
    pub conclusions: Vec<StudyJudgment>,
    /// Whether a value was measured in virtual time.
    pub has_virtual_time: bool,
}

/// A plan that repeats a study, on this machine.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WayReport {
    /// Name for `--way`.
    pub name: &'static str,
    /// Name of the ready plan.
    pub plan: &'static str,
    /// What it measures.
    pub what: &'static str,
    /// What the user must provide; `null` for a way that `study run` includes by itself.
    pub needs: Option<&'static str>,
    /// Number of measurements on this machine; `null` if the plan cannot run here as it is.
    pub measurements: Option<usize>,
    /// Expected duration of all of them; `null` as above.
    pub expected_ns: Option<u64>,
    /// Reasons why cells of it are not measured here, with the remedy.
    pub missing: Vec<String>,
}

/// A table of a study: rows of the study, each with a line for what was published and one for each run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilledTable {
    /// Title.
    pub title: String,
    /// Axes of the rows.
    pub axes: Vec<&'static str>,
    /// Heads of the columns, with their units.
    pub columns: Vec<String>,
    /// Rows, in the order of the study.
    pub rows: Vec<FilledRow>,
}

/// A row of a table of a study.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilledRow {
    /// Values of the axes.
    pub keys: Vec<String>,
    /// Published values with the published digits, one for each column; `null`: not published.
    pub published: Vec<Option<String>>,
    /// Number of loops of which each published value is, as published; `null`: not published.
    pub published_loops: Vec<Option<String>>,
    /// Values of each run that has any.
    pub runs: Vec<FilledLine>,
}

/// The values of a run in a row of a table.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilledLine {
    /// Name of the run.
    pub run: String,
    /// One for each column; `null`: not measured.
    pub fields: Vec<Option<FilledField>>,
}

/// A value of a run, in the unit of its column.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilledField {
    /// Over all blocks, as a decimal number; after `>` a lower bound, `never woke` if no wait ended.
    pub value: String,
    /// Smallest and largest value of a block; `null` with one block.
    pub blocks: Option<(String, String)>,
    /// The single latencies, if they are few; else empty.
    pub singles: Vec<String>,
    /// Number of loops of which it is, missed ones included; `null` for costs.
    pub loops: Option<u64>,
}

/// The studies that this program knows.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyList {
    /// Those that a plan repeats first, then those of which only numbers are known.
    pub studies: Vec<ListedStudy>,
}

/// A study in a list.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedStudy {
    /// Name for `punctual study show`.
    pub name: &'static str,
    /// Title.
    pub title: &'static str,
    /// Year of publication; `null` if not known.
    pub year: Option<u32>,
    /// Ways to repeat it; empty where only numbers are known.
    pub ways: Vec<&'static str>,
    /// Number of conclusions that a run tests.
    pub conclusions: usize,
}

impl StudyList {
    /// All studies.
    #[must_use]
    pub fn new() -> StudyList {
        let listed = |study: Study| {
            let definition = study.definition();
            ListedStudy {
                name: study.name(),
                title: &definition.title,
                year: definition.year,
                ways: definition.ways.iter().map(|way| way.name.as_str()).collect(),
                conclusions: definition.conclusions.len(),
            }
        };
        let mut studies: Vec<_> = Study::all().map(listed).collect();
        studies.sort_by_key(|study| study.ways.is_empty());
        StudyList { studies }
    }
}

impl Default for StudyList {
    fn default() -> StudyList {
        StudyList::new()
    }
}

/// Fills the tables of a study with the values of runs, and judges its conclusions; `ways` may be empty.
#[must_use]
pub fn of_runs(study: Study, runs: &[OwnRun<'_>], ways: Vec<WayReport>) -> StudyReport {
    let definition = study.definition();
    let entries: Vec<_> = runs.iter().map(|run| (run.header, run.entries)).collect();
    let all = study::measurements(definition, &entries);
    let names = names(runs);
    StudyReport {
        study: study.name().to_owned(),
        title: definition.title.clone(),
        source: definition.source.clone(),
        ways,
        beyond: &definition.beyond,
        tables: definition.tables.iter().map(|table| filled(study, definition, table, &all, &names)).collect(),
        conclusions: study::judgments(definition, &all),
        has_virtual_time: all.iter().any(|measurement| measurement.is_virtual),
    }
}

/// Names of the runs: the last part of each path where that is unique.
fn names(runs: &[OwnRun<'_>]) -> Vec<String> {
    let last = |run: &OwnRun<'_>| {
        Path::new(run.name).file_name().map_or_else(|| run.name.to_owned(), |name| name.to_string_lossy().into_owned())
    };
    let short: Vec<String> = runs.iter().map(last).collect();
    let is_unique = short.iter().collect::<BTreeSet<_>>().len() == runs.len();
    let named = if is_unique { short } else { runs.iter().map(|run| run.name.to_owned()).collect() };
    named.into_iter().map(|name| if name.is_empty() { "here".to_owned() } else { plain(&name).into_owned() }).collect()
}

#[cfg(test)]
mod tests;
