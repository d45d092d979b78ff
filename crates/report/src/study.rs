//! Tables of a published study with the values of runs beside the published ones, and its conclusions judged.

mod axes;
mod fill;
mod output;

use crate::OwnRun;
use fill::filled;
use punctual_analysis::Answer;
use punctual_analysis::study::{self, StudyJudgment, StudyMeasurement, StudyVerdict};
use punctual_analysis::wording::things;
use punctual_model::{Order, Study, StudyBeyond, StudyDefinition, plain};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A study with the values of runs.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct StudyReport {
    /// The answer in one sentence: which conclusions hold here.
    pub answer: Answer,
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
    /// Kernels of the study for which the same measurements stand; empty without any.
    pub shared: Vec<Vec<String>>,
    /// Measurements of these runs that are in none of its tables.
    pub left_out: Vec<LeftOut>,
    /// Its conclusions, judged by these runs together.
    pub conclusions: Vec<StudyJudgment>,
    /// Whether a value was measured in virtual time.
    pub has_virtual_time: bool,
}

/// A plan that repeats a study, on this machine.
#[derive(Debug, Serialize, schemars::JsonSchema)]
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
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct FilledTable {
    /// Title.
    pub title: String,
    /// Axes of the rows.
    pub axes: Vec<&'static str>,
    /// Heads of the columns, with their units.
    pub columns: Vec<String>,
    /// Digits after the decimal point with which values of each column are printed.
    pub decimals: Vec<usize>,
    /// Rows, in the order of the study.
    pub rows: Vec<FilledRow>,
}

/// A row of a table of a study.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct FilledRow {
    /// Values of the axes.
    pub keys: Vec<String>,
    /// Published values with the published digits, one for each column; `null`: not published.
    pub published: Vec<Option<String>>,
    /// Number of loops of which each published value is, as published; `null`: not published.
    pub published_loops: Vec<Option<String>>,
    /// Published overruns per million loops; `null` for other statistics.
    pub published_per_million: Vec<Option<f64>>,
    /// Values of each run that has any.
    pub runs: Vec<FilledLine>,
}

/// The values of a run in a row of a table.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct FilledLine {
    /// Name of the run, with what tells its lines apart.
    pub run: String,
    /// Background load here, where the study's has another name.
    pub load: Option<String>,
    /// One for each column; `null`: not measured.
    pub fields: Vec<Option<FilledField>>,
}

/// A value of a run, in the unit of its column.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct FilledField {
    /// Over all blocks, in the unit of the column; `null` if no wait ended.
    pub value: Option<f64>,
    /// Whether it is a lower bound, because a wait was still open at the end or a trigger was never answered.
    pub is_at_least: bool,
    /// Whether it is the cost that others are changes of.
    pub is_baseline: bool,
    /// Smallest and largest value of a block; `null` with one block.
    pub blocks: Option<(f64, f64)>,
    /// The single latencies, if they are few; else empty.
    pub singles: Vec<f64>,
    /// Number of loops of which it is, missed ones included; `null` for costs.
    pub loops: Option<u64>,
    /// Overruns per million loops; `null` for other statistics.
    pub per_million: Option<f64>,
}

/// Measurements of runs that are in no table of a study.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
pub struct LeftOut {
    /// Their kernel, load, policy and method.
    pub cells: String,
    /// Number of measurements.
    pub measurements: usize,
    /// Why.
    pub why: &'static str,
}

/// The studies that this program knows.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct StudyList {
    /// Those that a plan repeats first, then those of which only numbers are known.
    pub studies: Vec<ListedStudy>,
}

/// A study in a list.
#[derive(Debug, Serialize, schemars::JsonSchema)]
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
        studies.order_by_key(|study| study.ways.is_empty());
        StudyList { studies }
    }
}

impl Default for StudyList {
    fn default() -> StudyList {
        StudyList::new()
    }
}

/// Fills the tables of a study with the values of runs, and judges its conclusions; `ways` may be empty.
pub fn of_runs(study: Study, runs: &[OwnRun<'_>], ways: Vec<WayReport>) -> StudyReport {
    let definition = study.definition();
    let entries: Vec<_> = runs.iter().map(|run| run.entries).collect();
    let all = study::measurements(definition, &entries);
    let names = names(runs);
    let several = all.iter().map(|one| &one.kernels).filter(|kernels| kernels.len() > 1).collect::<BTreeSet<_>>();
    let shared = several.into_iter().map(|kernels| kernels.iter().map(|name| (*name).to_owned()).collect()).collect();
    let conclusions = study::judgments(definition, &all);
    StudyReport {
        answer: answer(&conclusions),
        study: study.name().to_owned(),
        title: definition.title.clone(),
        source: definition.source.clone(),
        ways,
        beyond: &definition.beyond,
        tables: definition.tables.iter().map(|table| filled(study, definition, table, &all, &names)).collect(),
        shared,
        left_out: left_out(definition, runs, &all),
        conclusions,
        has_virtual_time: all.iter().any(|measurement| measurement.is_virtual),
    }
}

/// How many conclusions hold here, and which do not.
fn answer(conclusions: &[StudyJudgment]) -> Answer {
    let of = |verdict| conclusions.iter().filter(move |one| one.verdict == verdict);
    let found = of(StudyVerdict::FoundAgain).count();
    let all = things(u64::try_from(conclusions.len()).unwrap_or(u64::MAX), "conclusion");
    let mut answer = format!("{found} of {all} found again");
    for verdict in [StudyVerdict::NotFound, StudyVerdict::CannotTell, StudyVerdict::NotTested] {
        match (verdict, of(verdict).count()) {
            (_, 0) => {}
            (StudyVerdict::NotFound, _) => {
                let says: Vec<&str> = of(verdict).map(|one| one.says.trim_end_matches('.')).collect();
                answer += &format!("; not found: {}", says.join("; "));
            }
            (_, n) => answer += &format!("; {n} {}", verdict.words()),
        }
    }
    Answer::new(answer)
}

/// The measurements of `runs` that are in no table of a study, of which `all` are those of its methods and kernels.
fn left_out(definition: &StudyDefinition, runs: &[OwnRun<'_>], all: &[StudyMeasurement<'_>]) -> Vec<LeftOut> {
    let is_shown = |one: &&StudyMeasurement<'_>| {
        definition.tables.iter().any(|table| one.is_meant(table.method.as_deref(), &table.only))
    };
    let known: BTreeSet<_> = all.iter().map(|one| one.measurement).collect();
    let shown: BTreeSet<_> = all.iter().filter(is_shown).map(|one| one.measurement).collect();
    let mut found: BTreeMap<(String, &'static str), usize> = BTreeMap::new();
    for (run, own) in runs.iter().enumerate() {
        for (index, entry) in own.entries.iter().enumerate().filter(|(index, _)| !shown.contains(&(run, *index))) {
            let cell = &entry.record.cell;
            let why = match definition.method_of(cell) {
                None => "another method than those of the study",
                Some(_) if !known.contains(&(run, index)) => {
                    "another preemption model or clock than those of the kernels of the study"
                }
                Some(_) => "another load or policy than those of the study",
            };
            let cells = format!("{} as {} under {}, {}", cell.kernel, cell.policy, cell.load.label(), cell.task);
            *found.entry((cells, why)).or_default() += 1;
        }
    }
    found.into_iter().map(|((cells, why), measurements)| LeftOut { cells, measurements, why }).collect()
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
