//! Parts of a verdict: limits that were met or violated, and missing evidence.

use crate::summary::due_time::View;
use punctual_model::{Level, OpenActivation};
use serde::Serialize;

/// A limit that was met, in the cell nearest to violating it.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "metric", rename_all = "snake_case")]
pub enum Kept {
    /// No wake-up exceeded it.
    Max {
        /// The cell with the largest latency.
        cell: String,
        /// The limit, ns.
        limit_ns: u64,
        /// The largest latency of any cell, ns.
        value_ns: i64,
        /// Time measured in the least measured cell, ns.
        measured_ns: u64,
        /// Upper 95 % limit of the rate of wake-ups beyond the limit, per hour.
        upper_per_hour: f64,
    },
    /// The upper end of the quantile's interval is within the limit, by wake-up and by due time.
    Quantile {
        /// The cell with the largest upper end of both.
        cell: String,
        /// The quantile.
        level: Level,
        /// The distribution.
        view: View,
        /// The limit, ns.
        limit_ns: u64,
        /// The upper end of its interval, ns.
        upper_ns: i64,
    },
    /// Few enough samples are late for the quantile, which has no interval, to meet the limit.
    Late {
        /// The cell with the largest share.
        cell: String,
        /// The quantile.
        level: Level,
        /// The distribution.
        view: View,
        /// The limit, ns.
        limit_ns: u64,
        /// Number of late samples.
        late: u64,
        /// Number of all samples.
        of: u64,
        /// The upper limit of the share that is later, at 95 %.
        at_most: f64,
    },
    /// Not later than the baseline run.
    NotLater {
        /// The cell.
        cell: String,
        /// Result of the comparison.
        said: String,
    },
    /// The upper limit of the rate is within the allowed one.
    MissesPerHour {
        /// The cell with the largest upper limit.
        cell: String,
        /// The limit.
        limit_per_hour: f64,
        /// The upper limit of the rate at 95 %.
        upper_per_hour: f64,
    },
    /// No watched thread waited for a CPU for a larger share of its time.
    Waiting {
        /// The cell of the thread that waited for the largest share.
        cell: String,
        /// The thread.
        thread: String,
        /// The limit, percent.
        limit_percent: f64,
        /// The share, percent.
        percent: f64,
    },
}

/// A limit that is violated.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "metric", rename_all = "snake_case")]
pub enum Violation {
    /// A wake-up exceeded it.
    Max {
        /// The cell.
        cell: String,
        /// The limit, ns.
        limit_ns: u64,
        /// The largest latency, ns.
        value_ns: i64,
        /// Whether that wait was still open.
        at_least: bool,
    },
    /// The lower end of the quantile's interval is beyond the limit, by wake-up or by due time.
    Quantile {
        /// The cell.
        cell: String,
        /// The quantile.
        level: Level,
        /// The distribution.
        view: View,
        /// The limit, ns.
        limit_ns: u64,
        /// The quantile, ns.
        value_ns: i64,
        /// The lower end of its 95 % interval, ns.
        lower_ns: i64,
    },
    /// Too many samples are late for the quantile, which has no interval, to meet the limit.
    Late {
        /// The cell.
        cell: String,
        /// The quantile.
        level: Level,
        /// The distribution.
        view: View,
        /// The limit, ns.
        limit_ns: u64,
        /// Number of late samples.
        late: u64,
        /// Number of all samples.
        of: u64,
        /// The lower limit of the share that is later, at 95 %.
        at_least: f64,
    },
    /// Later than the baseline run.
    Later {
        /// The cell.
        cell: String,
        /// Ratio to the baseline.
        ratio: f64,
        /// Result of the comparison.
        said: String,
    },
    /// The lower limit of the rate is beyond the allowed one.
    MissesPerHour {
        /// The cell.
        cell: String,
        /// The limit.
        limit_per_hour: f64,
        /// Number of episodes.
        episodes: u64,
        /// The lower limit of their rate at 95 %.
        lower_per_hour: f64,
    },
    /// A watched thread waited for a CPU for a larger share of its time.
    Waiting {
        /// The cell.
        cell: String,
        /// The thread.
        thread: String,
        /// The limit, percent.
        limit_percent: f64,
        /// The share, percent.
        percent: f64,
    },
}

/// Missing evidence: why a limit is inconclusive.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Gap {
    /// Measurements of the plan are missing.
    Incomplete {
        /// Complete measurements.
        done: u64,
        /// Planned measurements.
        planned: u64,
    },
    /// Combinations of the plan were not measured.
    Skipped {
        /// Number of them.
        cells: u64,
        /// Reason of the first.
        why: String,
    },
    /// A cell has no wake-up at all.
    NoSamples {
        /// The cell.
        cell: String,
    },
    /// The load failed or slowed down during the measured time.
    Load {
        /// The cell.
        cell: String,
        /// Part of the load.
        load: String,
        /// The failure.
        what: String,
    },
    /// Samples were lost: any of them may have been beyond the limit.
    Lost {
        /// The cell.
        cell: String,
        /// Number of lost samples.
        lost: u64,
    },
    /// Due times of which nothing is known: any of them may have been later than the limit.
    NotSeen {
        /// The cell.
        cell: String,
        /// Number of them.
        unseen: u64,
        /// All due times.
        due: u64,
    },
    /// An open wait: it may end beyond the limit.
    Open {
        /// The cell.
        cell: String,
        /// Lateness that it had reached, ns.
        at_least_ns: u64,
    },
    /// A watched thread had not finished an activation, or had not been released in time: it may end beyond the limit.
    Unfinished {
        /// The cell.
        cell: String,
        /// The thread.
        thread: String,
        /// What it had not finished.
        open: OpenActivation,
    },
    /// The watched program, or a thread of it, ended before the measured time was over: nothing is known of the rest.
    Ended {
        /// The cell.
        cell: String,
        /// What ended, when and how.
        what: String,
    },
    /// Triggers without an answer: the answers may come beyond the limit.
    NeverAnswered {
        /// The cell.
        cell: String,
        /// Number of them.
        never: u64,
    },
    /// The imported file, or the record of an older version, lacks the evidence.
    Untold {
        /// The cell.
        cell: String,
        /// The missing evidence.
        why: String,
    },
    /// The interval of the quantile contains the limit, or there is no interval.
    Quantile {
        /// The cell.
        cell: String,
        /// The quantile.
        level: Level,
        /// The distribution.
        view: View,
        /// The limit, ns.
        limit_ns: u64,
        /// Its 95 % interval, ns.
        interval_ns: Option<(i64, i64)>,
        /// Late samples; `None` if unknown.
        late: Option<Count>,
    },
    /// The cell is not stationary: its quantile has no interval.
    Unsteady {
        /// The cell.
        cell: String,
        /// The quantile.
        level: Level,
    },
    /// The interval of the rate contains the limit.
    MissesPerHour {
        /// The cell.
        cell: String,
        /// The limit.
        limit_per_hour: f64,
        /// Number of episodes.
        episodes: u64,
        /// Hours measured.
        hours: f64,
        /// The upper limit of the rate at 95 %.
        upper_per_hour: f64,
        /// Total hours of measurement needed; `None` if the rate is too high.
        hours_needed: Option<f64>,
    },
}

/// Samples later than a limit, and the effective sample size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "LateCount")]
pub struct Count {
    /// Number of late samples.
    pub late: u64,
    /// Number of all samples.
    pub of: u64,
    /// Effective sample size.
    pub n_eff: u64,
    /// Additional measuring time until the limit is shown to be met, ns; `None` if no time is enough.
    pub more_ns: Option<u64>,
}

impl Violation {
    /// Ratio to the limit, by which violations are ordered.
    pub(super) fn factor(&self) -> f64 {
        match self {
            Violation::Max { limit_ns, value_ns, .. } | Violation::Quantile { limit_ns, value_ns, .. } => {
                *value_ns as f64 / *limit_ns as f64
            }
            Violation::MissesPerHour { limit_per_hour, lower_per_hour, .. } => lower_per_hour / limit_per_hour,
            Violation::Late { level, at_least, .. } => at_least / (1.0 - level.p()),
            Violation::Later { ratio, .. } => *ratio,
            Violation::Waiting { limit_percent, percent, .. } => percent / limit_percent,
        }
    }
}
