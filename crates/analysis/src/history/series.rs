//! The history of a series: whether and since when a cell on a machine changed, and what else changed then.

use super::change::{Budget, Change, Charts, FIRST_TEST, changes, threshold};
use super::median::median;
use crate::run::on_all_cpus;
use punctual_model::Order;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

use std::sync::Arc;

/// One run of a series.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "HistoryRun")]
pub struct Point {
    /// Number of the run in the store.
    pub run: u64,
    /// Index of the cell in the run.
    #[serde(skip)]
    pub cell_index: u64,
    /// Start, ms since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Kernel of the measurement, `uname -r`.
    #[serde(skip)]
    pub kernel_release: Option<String>,
    /// Facts of the machine that affect latency.
    #[serde(skip)]
    pub facts: Arc<BTreeMap<String, String>>,
    /// The 99 % quantile, ns; `null` if refused.
    pub p99_ns: Option<i64>,
    /// Its interval, ns.
    pub p99_interval_ns: Option<(i64, i64)>,
    /// Largest latency, ns.
    pub max_ns: Option<i64>,
    /// Whether the largest latency is a lower bound.
    pub max_at_least: bool,
    /// Geometric mean of the p99 of its blocks, ns: what is tested.
    pub typical_p99_ns: Option<f64>,
    /// Geometric mean of the maxima of its blocks, ns: what is tested.
    pub typical_max_ns: Option<f64>,
    /// Wake-ups recorded.
    #[serde(skip)]
    pub samples: u64,
}

/// A cell on a machine, with its runs in the order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Node name of the machine, or its identity.
    pub machine: String,
    /// Identity of the machine in the store.
    pub machine_identity: String,
    /// Name of the cell.
    pub cell: String,
    /// Identity of the cell in the store.
    pub cell_identity: String,
    /// Period, method, CPUs, duration and kernel of the cell.
    pub details: String,
    /// Its runs.
    pub points: Vec<Point>,
}

/// A number that a run contributes to a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// The typical p99 of a block.
    P99,
    /// The typical maximum of a block.
    Max,
}

impl Response {
    /// All of them.
    pub const ALL: [Response; 2] = [Response::P99, Response::Max];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Response::P99 => "p99",
            Response::Max => "max",
        }
    }

    /// Its value for a run, ns.
    pub fn of(self, point: &Point) -> Option<f64> {
        match self {
            Response::P99 => point.typical_p99_ns,
            Response::Max => point.typical_max_ns,
        }
    }
}

/// Direction of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Latencies are larger than before.
    Later,
    /// Latencies are smaller than before.
    Earlier,
}

/// A change of the machine between two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Mark {
    /// First run with it, ms since 1970-01-01 UTC.
    pub unix_ms: u64,
    /// The fact that changed.
    pub fact: String,
    /// Its text before.
    pub before: String,
    /// Its text since.
    pub after: String,
}

/// A change of a series.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SeriesChange {
    /// The number that changed.
    pub response: Response,
    /// Its direction.
    pub direction: Direction,
    /// First run after the change, ms since 1970-01-01 UTC.
    pub since_unix_ms: u64,
    /// Last run before it.
    pub before_unix_ms: u64,
    /// First and last run that may be the first after the change (95 %).
    pub range_unix_ms: (u64, u64),
    /// Run after which the change was found.
    pub found_unix_ms: u64,
    /// Runs from the first after the change to the one after which it was found.
    pub runs_until_found: usize,
    /// Median before, ns.
    pub before_ns: f64,
    /// Median after, up to the next change, ns.
    pub after_ns: f64,
    /// Ratio of after to before.
    pub ratio: f64,
    /// Its interval (95 %).
    pub interval: (f64, f64),
    /// Changes of the machine at the same time, as far as the runs tell. They coincide; they need not be the cause.
    pub coincides: Vec<Mark>,
}

/// What is known of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Too few runs for a test.
    TooFew,
    /// No change was found.
    Unchanged,
    /// A change was found.
    Changed,
}

/// The history of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesHistory {
    /// The series.
    pub series: Series,
    /// Name of the cell, with those of its details that set it apart from series of the same name.
    pub label: String,
    /// What is known of it.
    pub standing: Standing,
    /// Its changes, in the order of time.
    pub changes: Vec<SeriesChange>,
    /// Changes of the machine, in the order of time.
    pub marks: Vec<Mark>,
}

/// The histories of all these series, of one question: false alarms are limited for all of them together.
pub fn of_series(all: Vec<Series>, budget: Budget) -> Vec<SeriesHistory> {
    let threshold = threshold(budget, Charts(all.len() * Response::ALL.len()));
    let found = on_all_cpus(&all, |series| history(series, threshold));
    let mut same: HashMap<(String, String), Vec<String>> = HashMap::new();
    for Series { machine, cell, details, .. } in &all {
        same.entry((machine.clone(), cell.clone())).or_default().push(details.clone());
    }
    let with_series = |(series, (changes, marks)): (Series, (Vec<SeriesChange>, Vec<Mark>))| {
        let n = |response: Response| series.points.iter().filter_map(|point| response.of(point)).count();
        let standing = match Response::ALL.into_iter().map(n).max().unwrap_or(0) {
            _ if !changes.is_empty() => Standing::Changed,
            ..FIRST_TEST => Standing::TooFew,
            _ => Standing::Unchanged,
        };
        let others = same.get(&(series.machine.clone(), series.cell.clone())).map_or(&[][..], Vec::as_slice);
        SeriesHistory { label: label(&series, others), series, standing, changes, marks }
    };
    all.into_iter().zip(found).map(with_series).collect()
}

/// Name of the cell of a series, with its details that not all series of the same name have.
fn label(Series { cell, details, .. }: &Series, same: &[String]) -> String {
    let is_shared = |part: &str| same.iter().all(|other| other.split(", ").any(|one| one == part));
    let own: Vec<&str> = details.split(", ").filter(|part| !is_shared(part)).collect();
    if own.is_empty() { cell.clone() } else { format!("{cell} ({})", own.join(", ")) }
}

fn history(series: &Series, threshold: f64) -> (Vec<SeriesChange>, Vec<Mark>) {
    let marks = marks(&series.points);
    let of = |response| of_response(series, response, threshold, &marks);
    let mut changes: Vec<SeriesChange> = Response::ALL.into_iter().flat_map(of).collect();
    changes.order_by_key(|change| change.since_unix_ms);
    (changes, marks)
}

fn of_response(series: &Series, response: Response, threshold: f64, marks: &[Mark]) -> Vec<SeriesChange> {
    let values = series.points.iter().filter_map(|point| Some((point.started_unix_ms, response.of(point)?)));
    let (times, logs): (Vec<u64>, Vec<f64>) = values.map(|(time, ns)| (time, ns.max(1.0).ln())).unzip();
    let changes = changes(&logs, threshold);
    let next = |index: usize| changes.get(index + 1).map_or(logs.len(), |next| next.at);
    let previous = |index: usize| index.checked_sub(1).and_then(|index| changes.get(index)).map_or(0, |one| one.at);
    let described = |(index, change): (usize, &Change)| {
        let time = |index: usize| times.get(index).copied();
        let range = (time(change.range.0)?, time(change.range.1)?);
        // The change happened after the run before the first possible one.
        let after = change.range.0.checked_sub(1).and_then(time).unwrap_or(0);
        let is_then = |mark: &&Mark| mark.unix_ms > after && mark.unix_ms <= range.1;
        Some(SeriesChange {
            response,
            direction: if change.ratio >= 1.0 { Direction::Later } else { Direction::Earlier },
            since_unix_ms: time(change.at)?,
            before_unix_ms: time(change.at.checked_sub(1)?)?,
            range_unix_ms: range,
            found_unix_ms: time(change.found)?,
            runs_until_found: change.found.saturating_sub(change.at) + 1,
            before_ns: median(logs.get(previous(index)..change.at)?)?.exp(),
            after_ns: median(logs.get(change.at..next(index))?)?.exp(),
            ratio: change.ratio,
            interval: change.interval,
            coincides: marks.iter().filter(is_then).cloned().collect(),
        })
    };
    changes.iter().enumerate().filter_map(described).collect()
}

/// Facts that a kernel release implies.
const OF_KERNEL: [&str; 2] = ["kernel", "kernel version"];

/// Changes of the machine from each run to the next.
fn marks(points: &[Point]) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (earlier, later) in points.iter().zip(points.iter().skip(1)) {
        let mark = |fact: &str, before: &str, after: &str| Mark {
            unix_ms: later.started_unix_ms,
            fact: fact.to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
        };
        match (&earlier.kernel_release, &later.kernel_release) {
            (Some(before), Some(after)) if before != after => marks.push(mark("kernel", before, after)),
            _ => {}
        }
        if Arc::ptr_eq(&earlier.facts, &later.facts) {
            continue;
        }
        for (fact, before) in earlier.facts.iter().filter(|(fact, _)| !OF_KERNEL.contains(&fact.as_str())) {
            if let Some(after) = later.facts.get(fact).filter(|after| *after != before) {
                marks.push(mark(fact, before, after));
            }
        }
    }
    marks
}
