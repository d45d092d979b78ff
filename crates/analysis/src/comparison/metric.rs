//! Metrics of a comparison: one number for each measurement.

use super::Refusal;
use crate::stats::levels::Quantiles;
use crate::stats::quantile::quantile;
use crate::stats::woodruff::CONFIDENCE;
use crate::summary::due_time;
use crate::summary::pool::Pool;
use punctual_model::{Entry, Histogram, Level, NoiseRecord, Order, Span, ThreadRecord};
use serde::{Serialize, Serializer};
use std::fmt;

/// Smallest number of wake-ups above a quantile that each measurement needs.
pub const MIN_OF_EACH: u64 = 20;

/// A number of one measurement, by due time. A missed due time counts with its lateness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, schemars::JsonSchema)]
#[schemars(with = "String")]
pub enum Metric {
    /// A quantile of the latency.
    Quantile(Level),
    /// Largest latency. Never the primary metric: between equal runs it differs by more than 20 % in most cases.
    Max,
    /// Episodes of deadline misses, plus one half, so that a ratio to zero episodes exists.
    Misses,
    /// Share of the time that gaps took from threads that never wait.
    Lost,
}

impl Metric {
    /// All metrics of wake-ups; those of gaps are [`Metric::Lost`] and [`Metric::Max`].
    pub const ALL: [Metric; 5] = [
        Metric::Quantile(Level::P50),
        Metric::Quantile(Level::P99),
        Metric::Quantile(Level::P999),
        Metric::Max,
        Metric::Misses,
    ];

    /// The value used in ratios; above 0.
    pub(super) fn value(self, numbers: &Numbers) -> Result<f64, Refusal> {
        let half = if self == Metric::Misses { 0.5 } else { 0.0 };
        let value = self.shown(numbers)? + half;
        if value > 0.0 { Ok(value) } else { Err(Refusal::NotPositive) }
    }

    /// The value shown: ns, or a number of episodes.
    pub(super) fn shown(self, numbers: &Numbers) -> Result<f64, Refusal> {
        if let unseen @ 1.. = numbers.unseen {
            return Err(Refusal::NotSeen { unseen });
        }
        match self {
            Metric::Quantile(_) if numbers.are_gaps => Err(Refusal::OfGaps),
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
            Metric::Lost => numbers.lost_share.ok_or(Refusal::NotEnded),
        }
    }
}

/// The data of one measurement from which every metric is computed.
#[derive(Debug, Clone)]
pub(super) struct Numbers {
    by_due_time: Histogram,
    /// Number of due times. The count of the histogram is off by up to 1.6 % of the missed ones.
    due_times: u64,
    episodes: u64,
    /// Due times of which nothing is known, and gaps in the trace of watched threads.
    unseen: u64,
    /// Whether they are gaps of threads that never wait, above which length, and the share of the time that they took;
    /// `None` if a loop did not end.
    are_gaps: bool,
    threshold: Option<Span>,
    lost_share: Option<f64>,
}

impl Numbers {
    pub(super) fn of(entry: &Entry) -> Numbers {
        let threads = &entry.record.threads;
        let sum = |of: fn(&ThreadRecord) -> u64| threads.iter().map(of).sum();
        let is_relative = entry.record.cell.task.is_relative();
        let due_times = if is_relative { sum(|thread| thread.recorded) } else { sum(|thread| thread.cycles_due) };
        let episodes = sum(|thread| thread.episodes.count);
        let ledgers = threads.iter().map(|thread| thread.ledger(&entry.record.cell.task));
        let gaps = entry.record.watch.as_ref().map_or(0, |watch| watch.gaps);
        let unseen = ledgers.map(|ledger| ledger.unseen + ledger.lost).sum::<u64>() + gaps;
        let noises: Option<Vec<_>> = threads.iter().map(|thread| thread.noise.as_ref()).collect();
        let noises = noises.unwrap_or_default();
        let of_all = |of: fn(&NoiseRecord) -> Span| noises.iter().map(|noise| of(noise).as_secs_f64()).sum::<f64>();
        let observed = of_all(|noise| noise.observed);
        Numbers {
            by_due_time: due_time::of_record(&entry.record),
            due_times,
            episodes,
            unseen,
            are_gaps: entry.record.cell.task.is_noise(),
            threshold: noises.iter().map(|noise| noise.threshold).max(),
            lost_share: (observed > 0.0).then(|| of_all(|noise| noise.lost) / observed),
        }
    }

    /// Refusal of gaps above different lengths, as they are by default where readings take different times.
    pub(super) fn check_threshold(&self, other: &Numbers) -> Result<(), Refusal> {
        match (self.threshold, other.threshold) {
            (Some(a), Some(b)) if a != b => Err(Refusal::Thresholds { a_ns: a.ns(), b_ns: b.ns() }),
            _ => Ok(()),
        }
    }

    pub(super) fn has_misses(&self) -> bool {
        self.episodes > 0
    }
}

/// Number of `n` values that lie above a quantile.
fn above(n: u64, level: Level) -> u64 {
    crate::stats::special::whole(n as f64 * (1.0 - level.p()) * (1.0 + 1e-9))
}

/// p99.9 if every measurement has enough wake-ups for it and the tables of both show it (`is_shown`), else p99.
pub(super) fn default_level<'a>(
    mut measurements: impl Iterator<Item = &'a Numbers>,
    is_shown: impl Fn(Level) -> bool,
) -> Level {
    let has_enough = |numbers: &Numbers| above(numbers.due_times, Level::P999) >= MIN_OF_EACH;
    if measurements.all(has_enough) && is_shown(Level::P999) { Level::P999 } else { Level::P99 }
}

/// Quantiles by due time over all measurements of a configuration, as a table shows or refuses them; `None` without
/// any.
pub(super) fn shown(entries: &[&Entry]) -> Option<Quantiles> {
    let mut entries = entries.to_vec();
    entries.order_by_key(|entry| entry.planned);
    let pool = Pool { cell: &entries.first()?.record.cell, entries, confidence: CONFIDENCE };
    let (all, slices) = due_time::slices(&pool).unwrap_or_else(|| (pool.histogram(), pool.slices()));
    Some(Quantiles::of(&all, &slices, pool.confidence))
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::Quantile(level) => level.fmt(f),
            Metric::Max => f.pad("max"),
            Metric::Misses => f.pad("episodes"),
            Metric::Lost => f.pad("lost"),
        }
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Metric::Quantile(level) => level.serialize(serializer),
            Metric::Max => serializer.serialize_str("max"),
            // The key is older than the counting of episodes.
            Metric::Misses => serializer.serialize_str("misses"),
            Metric::Lost => serializer.serialize_str("lost"),
        }
    }
}
