//! What is compared: one number of each measurement.

use super::Refusal;
use crate::Level;
use crate::due_time;
use crate::quantile::quantile;
use model::{Entry, Histogram, ThreadRecord};
use serde::{Serialize, Serializer};
use std::fmt;

/// Wake-ups that each measurement has to have above a quantile.
pub const MIN_OF_EACH: u64 = 20;

/// A number of one measurement, by due time: a due time that was missed counts with the time by which it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub enum Metric {
    /// A quantile of the latency.
    Quantile(Level),
    /// The largest latency. It is never what decides: between equal runs it differs by more than 20 % in most cases.
    Max,
    /// Episodes of misses of the deadline, and one half, so that none can be compared with some.
    Misses,
}

impl Metric {
    /// All of them.
    pub const ALL: [Metric; 5] = [
        Metric::Quantile(Level::P50),
        Metric::Quantile(Level::P99),
        Metric::Quantile(Level::P999),
        Metric::Max,
        Metric::Misses,
    ];

    /// The value that ratios are of; above 0.
    pub(super) fn value(self, numbers: &Numbers) -> Result<f64, Refusal> {
        let half = if self == Metric::Misses { 0.5 } else { 0.0 };
        let value = self.shown(numbers)? + half;
        if value > 0.0 { Ok(value) } else { Err(Refusal::NotPositive) }
    }

    /// The value as it is shown: ns, or a number of episodes.
    pub(super) fn shown(self, numbers: &Numbers) -> Result<f64, Refusal> {
        match self {
            Metric::Quantile(level) => {
                let have = above(numbers.due_times, level);
                if have < MIN_OF_EACH {
                    return Err(Refusal::FewExceedances { have, need: MIN_OF_EACH });
                }
                quantile(&numbers.by_due_time, level.p()).map(|ns| ns as f64).ok_or(Refusal::NotPositive)
            }
            Metric::Max => {
                let max_ns = numbers.by_due_time.max_ns.map(|ns| ns as f64);
                max_ns.ok_or(Refusal::FewExceedances { have: 0, need: 1 })
            }
            Metric::Misses => Ok(numbers.episodes as f64),
        }
    }
}

/// What every metric of a measurement follows from.
#[derive(Debug, Clone)]
pub(super) struct Numbers {
    by_due_time: Histogram,
    /// Due times there were: the histogram's own number is off by up to 1.6 % of those that were missed.
    due_times: u64,
    episodes: u64,
}

impl Numbers {
    pub(super) fn of(entry: &Entry) -> Numbers {
        let threads = &entry.record.threads;
        let sum = |of: fn(&ThreadRecord) -> u64| threads.iter().map(of).sum();
        let is_relative = entry.record.cell.method.is_relative();
        let due_times = if is_relative { sum(|thread| thread.recorded) } else { sum(|thread| thread.cycles_due) };
        let episodes = sum(|thread| thread.episodes.count);
        Numbers { by_due_time: due_time::of_record(&entry.record), due_times, episodes }
    }

    pub(super) fn has_misses(&self) -> bool {
        self.episodes > 0
    }
}

/// How many of `n` values lie above a quantile.
fn above(n: u64, level: Level) -> u64 {
    crate::special::whole(n as f64 * (1.0 - level.p()) * (1.0 + 1e-9))
}

/// The highest of p99.9 and p99 that every measurement has enough wake-ups for; p99 when neither has.
pub(super) fn default_level<'a>(mut measurements: impl Iterator<Item = &'a Numbers>) -> Level {
    let has_enough = |numbers: &Numbers| above(numbers.due_times, Level::P999) >= MIN_OF_EACH;
    if measurements.all(has_enough) { Level::P999 } else { Level::P99 }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::Quantile(level) => level.fmt(f),
            Metric::Max => f.pad("max"),
            Metric::Misses => f.pad("misses"),
        }
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Metric::Quantile(level) => level.serialize(serializer),
            other => serializer.collect_str(other),
        }
    }
}
