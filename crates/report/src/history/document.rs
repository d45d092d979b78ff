//! Histories as one JSON document.

use super::History;
use punctual_analysis::Answer;
use punctual_analysis::history::{
    Budget, FIRST_TEST, Mark, Point, Response, SeriesChange, SeriesHistory, Standing, threshold,
};
use serde::Serialize;

/// Histories of the series of one question.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct HistoryDocument<'a> {
    /// The answer in one sentence.
    pub answer: Answer,
    /// The test of all series.
    pub test: HistoryTest,
    /// One for each machine and cell.
    pub series: Vec<HistorySeries<'a>>,
}

/// The test for changes.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct HistoryTest {
    /// False alarms to expect in 365 runs of all these series together, if runs are independent.
    pub false_alarms_in_365_runs: f64,
    /// The statistic above which a split is a change.
    pub threshold: f64,
    /// Runs of a series before its first test.
    pub first_test: usize,
    /// Ratio from which on a change is an alarm.
    pub margin: f64,
    /// Time before the last run of a series, ns, within which a change has to be found to be an alarm.
    pub recent_ns: u64,
}

/// A series with its runs.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct HistorySeries<'a> {
    /// Node name of the machine, or its identity.
    pub machine: &'a str,
    /// Identity of the machine.
    pub machine_identity: &'a str,
    /// Name of the cell.
    pub cell: &'a str,
    /// Identity of the cell.
    pub cell_identity: &'a str,
    /// Method, period, CPUs, duration and kernel of the cell.
    pub details: &'a str,
    /// What is known of it.
    pub standing: Standing,
    /// Whether it became later lately, by the margin or more.
    pub alarm: bool,
    /// Its changes.
    pub changes: &'a [SeriesChange],
    /// Changes of the machine.
    pub marks: &'a [Mark],
    /// Its runs, in the order of time.
    pub runs: &'a [Point],
}

impl History {
    /// The document.
    pub fn document(&self) -> HistoryDocument<'_> {
        let charts = punctual_analysis::history::Charts(self.series.len() * Response::ALL.len());
        HistoryDocument {
            answer: self.answer(),
            test: HistoryTest {
                false_alarms_in_365_runs: Budget::NIGHTLY.0,
                threshold: threshold(Budget::NIGHTLY, charts),
                first_test: FIRST_TEST,
                margin: self.judgment.margin,
                recent_ns: self.judgment.recent.ns(),
            },
            series: self.series.iter().map(|series| self.of_series(series)).collect(),
        }
    }

    fn of_series<'a>(&self, history: &'a SeriesHistory) -> HistorySeries<'a> {
        let series = &history.series;
        HistorySeries {
            machine: &series.machine,
            machine_identity: &series.machine_identity,
            cell: &series.cell,
            cell_identity: &series.cell_identity,
            details: &series.details,
            standing: history.standing,
            alarm: self.alarms(history).next().is_some(),
            changes: &history.changes,
            marks: &history.marks,
            runs: &series.points,
        }
    }
}
