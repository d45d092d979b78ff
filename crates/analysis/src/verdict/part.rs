//! What a verdict is made of: limits that were kept or violated, and what is missing.

use crate::summary::due_time::View;
use model::Level;
use serde::Serialize;

/// A limit that was kept, where it was nearest to being violated.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "metric", rename_all = "snake_case")]
pub enum Kept {
    /// No wake-up was later.
    Max {
        /// The cell with the largest latency.
        cell: String,
        /// The limit, ns.
        limit_ns: u64,
        /// The largest latency of any cell, ns.
        value_ns: i64,
        /// Time measured in the least measured cell, ns.
        measured_ns: u64,
        /// What that time excludes at 95 %: this many wake-ups an hour beyond the limit.
        upper_per_hour: f64,
    },
    /// The upper end of the quantile's interval is within the limit, by wake-up and by due time.
    Quantile {
        /// The cell with the largest upper end of both.
        cell: String,
        /// Which quantile.
        level: Level,
        /// Of which distribution.
        view: View,
        /// The limit, ns.
        limit_ns: u64,
        /// The upper end of its interval, ns.
        upper_ns: i64,
    },
    /// So few are later than the limit that the quantile, which has no interval, keeps it.
    Late {
        /// The cell with the largest share.
        cell: String,
        /// Which quantile.
        level: Level,
        /// Of which distribution.
        view: View,
        /// The limit, ns.
        limit_ns: u64,
        /// How many are later.
        late: u64,
        /// Of how many.
        of: u64,
        /// The upper limit of the share that is later, at 95 %.
        at_most: f64,
    },
    /// It is not later than in an older run.
    NotLater {
        /// The cell.
        cell: String,
        /// What the comparison says.
        said: String,
    },
    /// The upper limit of the rate is within the required one.
    MissesPerHour {
        /// The cell with the largest upper limit.
        cell: String,
        /// The limit.
        limit_per_hour: f64,
        /// The upper limit of the rate at 95 %.
        upper_per_hour: f64,
    },
}

/// A limit that is violated.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "metric", rename_all = "snake_case")]
pub enum Violation {
    /// A wake-up was later.
    Max {
        /// Where.
        cell: String,
        /// The limit, ns.
        limit_ns: u64,
        /// The largest latency, ns.
        value_ns: i64,
        /// Whether that wait had not ended.
        at_least: bool,
    },
    /// The lower end of the quantile's interval is beyond the limit, by wake-up or by due time.
    Quantile {
        /// Where.
        cell: String,
        /// Which quantile.
        level: Level,
        /// Of which distribution.
        view: View,
        /// The limit, ns.
        limit_ns: u64,
        /// The quantile, ns.
        value_ns: i64,
        /// The lower end of its 95 % interval, ns.
        lower_ns: i64,
    },
    /// So many are later than the limit that the quantile, which has no interval, violates it.
    Late {
        /// Where.
        cell: String,
        /// Which quantile.
        level: Level,
        /// Of which distribution.
        view: View,
        /// The limit, ns.
        limit_ns: u64,
        /// How many are later.
        late: u64,
        /// Of how many.
        of: u64,
        /// The lower limit of the share that is later, at 95 %.
        at_least: f64,
    },
    /// It is later than in an older run.
    Later {
        /// Where.
        cell: String,
        /// How many times as late.
        ratio: f64,
        /// What the comparison says.
        said: String,
    },
    /// The lower limit of the rate is beyond the required one.
    MissesPerHour {
        /// Where.
        cell: String,
        /// The limit.
        limit_per_hour: f64,
        /// Episodes seen.
        episodes: u64,
        /// The lower limit of their rate at 95 %.
        lower_per_hour: f64,
    },
}

/// Why something required is not shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Gap {
    /// Measurements of the plan are missing.
    Incomplete {
        /// Measurements that are complete.
        done: u64,
        /// Measurements asked for.
        planned: u64,
    },
    /// Combinations of the plan were not measured.
    Skipped {
        /// How many.
        cells: u64,
        /// Why the first was not.
        why: String,
    },
    /// A cell has no wake-up at all.
    NoSamples {
        /// Which.
        cell: String,
    },
    /// The load was not what it says during all of the measured time.
    Load {
        /// Where.
        cell: String,
        /// Which part of it.
        load: String,
        /// What happened.
        what: String,
    },
    /// Samples were lost: any of them may have been beyond the limit.
    Lost {
        /// Where.
        cell: String,
        /// How many.
        lost: u64,
    },
    /// A wait had not ended: it may go beyond the limit.
    Open {
        /// Where.
        cell: String,
        /// How late it was already, ns.
        at_least_ns: u64,
    },
    /// Triggers were never answered: their answers may come beyond the limit.
    NeverAnswered {
        /// Where.
        cell: String,
        /// How many.
        never: u64,
    },
    /// What was imported, or recorded by an older version, does not tell it.
    Untold {
        /// Where.
        cell: String,
        /// What it does not tell.
        why: String,
    },
    /// The interval of the quantile holds the limit, or there is no interval.
    Quantile {
        /// Where.
        cell: String,
        /// Which quantile.
        level: Level,
        /// Of which distribution.
        view: View,
        /// The limit, ns.
        limit_ns: u64,
        /// Its 95 % interval, ns.
        interval_ns: Option<(i64, i64)>,
        /// How many are later than the limit; `None` where that is not known.
        late: Option<Count>,
    },
    /// The cell was not the same from beginning to end: its quantile has no interval.
    Unsteady {
        /// Where.
        cell: String,
        /// Which quantile.
        level: Level,
    },
    /// The interval of the rate holds the limit.
    MissesPerHour {
        /// Where.
        cell: String,
        /// The limit.
        limit_per_hour: f64,
        /// Episodes seen.
        episodes: u64,
        /// Hours measured.
        hours: f64,
        /// The upper limit of the rate at 95 %.
        upper_per_hour: f64,
        /// Hours to measure in all; `None` when episodes come too often for that.
        hours_needed: Option<f64>,
    },
}

/// How many are later than a limit, and what that is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "LateCount"))]
pub struct Count {
    /// How many are later.
    pub late: u64,
    /// Of how many.
    pub of: u64,
    /// Independent ones they are worth.
    pub n_eff: u64,
    /// How much longer to measure until the limit is shown to be kept, ns; `None` where it will not be.
    pub more_ns: Option<u64>,
}

impl Violation {
    /// How many times the limit was reached: what the violations are ordered by.
    pub(super) fn factor(&self) -> f64 {
        match self {
            Violation::Max { limit_ns, value_ns, .. } | Violation::Quantile { limit_ns, value_ns, .. } => {
                *value_ns as f64 / *limit_ns as f64
            }
            Violation::MissesPerHour { limit_per_hour, lower_per_hour, .. } => lower_per_hour / limit_per_hour,
            Violation::Late { level, at_least, .. } => at_least / (1.0 - level.p()),
            Violation::Later { ratio, .. } => *ratio,
        }
    }
}
