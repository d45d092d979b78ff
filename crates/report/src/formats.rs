//! A run in the formats of other programs: spreadsheets, issue trackers, CI systems, monitoring.

mod csv;
mod gnuplot;
mod hgrm;
mod junit;
mod kcidb;
mod lava;
mod markdown;
mod monitor;
mod page;
mod prometheus;
mod tap;

use punctual_analysis::{Case, Level, Row, Verdict};
use punctual_model::Span;

pub use csv::csv;
pub(crate) use csv::field as csv_field;
pub use gnuplot::{GnuplotKind, gnuplot};
pub use hgrm::hgrm;
pub(crate) use junit::escaped as junit_text;
pub use junit::junit;
pub use kcidb::kcidb;
pub use lava::lava;
pub use markdown::markdown;
pub use monitor::monitor_metrics;
pub use page::Page;
pub use prometheus::prometheus;
pub use tap::tap;

/// Result of one test, in the categories of CI systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    /// Inconclusive: neither a pass nor a failure.
    Inconclusive,
    /// No requirement, so nothing was tested.
    NotAsked,
}

/// One line of a test report.
#[derive(Debug, Clone)]
pub(crate) struct Test<'a> {
    /// Name of the cell; `run` for a requirement on the whole run.
    pub(crate) of: &'a str,
    /// The limit in the syntax of `--require`; `measured` without a requirement.
    pub(crate) limit: &'a str,
    pub(crate) outcome: Outcome,
    /// The result, in a sentence without its full stop.
    pub(crate) why: String,
    /// Measured time of the cell, s; 0 for the run as a whole.
    pub(crate) seconds: f64,
}

/// A run as tests: one for each limit in each cell, or one skipped test for each cell without requirements.
fn as_tests<'a>(page: &'a Page<'_>) -> Vec<Test<'a>> {
    if let Some(given) = &page.given {
        return given.clone();
    }
    if *page.verdict == Verdict::NoneAsked {
        let test = |row: &'a Row<'_>| {
            let why = "nothing was required".to_owned();
            Test { of: row.name, limit: "measured", outcome: Outcome::NotAsked, why, seconds: seconds(row) }
        };
        return page.rows.iter().map(test).collect();
    }
    let test = |case: &'a Case| {
        let outcome = match case.verdict {
            Verdict::Pass { .. } => Outcome::Passed,
            Verdict::Fail { .. } => Outcome::Failed,
            Verdict::Inconclusive { .. } | Verdict::NoneAsked => Outcome::Inconclusive,
        };
        let row = page.rows.iter().find(|row| Some(row.name) == case.cell.as_deref());
        let virtually = if row.is_some_and(Row::is_virtual) { " (virtual time)" } else { "" };
        Test {
            of: case.cell.as_deref().unwrap_or("run"),
            limit: &case.limit,
            outcome,
            why: case.verdict.sentence() + virtually,
            seconds: row.map_or(0.0, seconds),
        }
    };
    page.cases.iter().map(test).collect()
}

/// Latencies of a cell by name, ns. A wait that never ended has only a lower bound, which is no maximum.
fn latencies(row: &Row<'_>) -> impl Iterator<Item = (&'static str, Option<f64>)> {
    let ns = |ns: Option<i64>| ns.map(|ns| ns as f64);
    let max_ns = row.max_ns.filter(|_| !row.max().is_some_and(|max| max.at_least));
    let quantiles = Level::USUAL.map(|level| (level.name(), ns(row.quantiles.at(level).value_ns())));
    [("min", ns(row.min_ns)), ("mean", row.mean_ns)].into_iter().chain(quantiles).chain([("max", ns(max_ns))])
}

/// The unit of its latencies. Virtual microseconds never appear as time.
fn unit(row: &Row<'_>) -> &'static str {
    if row.is_virtual() { "virtual-us" } else { "us" }
}

/// Measured time, s; 0 if unknown.
fn seconds(row: &Row<'_>) -> f64 {
    row.measured.map_or(0.0, Span::as_secs_f64)
}

/// A number without an exponent and trailing zeros, readable in all these formats.
fn decimal(value: f64) -> String {
    let text = format!("{value:.9}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    // A time in s since 1970 has microsecond precision as f64; nine decimals would print noise.
    let exact = value.to_string();
    let shorter = if exact.len() < text.len() { &exact } else { text };
    if shorter == "-0" { "0".to_owned() } else { shorter.to_owned() }
}

#[cfg(test)]
mod tests;
