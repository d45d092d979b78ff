//! Changes of a sequence of runs: a change point model over normal scores of the runs, run after run.
//!
//! The unit is the run: its response is one number, so that the variance between runs is part of the noise, however
//! precise each run is. After every run, all splits of the runs since the last change are tried (Hawkins and Deng 2010,
//! with van der Waerden scores in place of ranks); the largest statistic decides. It depends on the order of the
//! responses only, so one outlier counts as one run, and its distribution without a change is known for independent
//! runs of any distribution. Correlation of neighboring runs is estimated from what remains on both sides of the split
//! and divided out. A decision once made does not change with later runs.

use super::median::median;
use crate::stats::special::normal_quantile;
use std::cmp::Ordering;
use std::sync::OnceLock;

/// Runs since the last change before the first test.
pub const FIRST_TEST: usize = 20;

/// Least runs on each side of a split: two odd nights are no change.
pub const LEAST_SIDE: usize = 3;

/// Runs that are looked back at most; two years of nightly runs.
const WINDOW: usize = 730;

/// Entries of the table of scores.
const GRID: usize = 4096;

/// Largest correlation of neighboring runs that is divided out.
const MOST_CORRELATION: f64 = 0.9;

/// A change of a sequence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Index of the first run after the change: the best estimate.
    pub at: usize,
    /// Indices that the first run after the change may have (95 %, see docs/history.md).
    pub range: (usize, usize),
    /// Index of the run after which the change was found.
    pub found: usize,
    /// The responses after the change divided by those before (Hodges-Lehmann).
    pub ratio: f64,
    /// Its interval (95 %).
    pub interval: (f64, f64),
}

/// The number of sequences that one question looks at: false alarms add up over all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charts(pub usize);

/// Expected false alarms of a question in 365 runs of all its sequences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget(pub f64);

impl Budget {
    /// One in ten years of nightly runs, so that a year with two is rarer than one in a hundred.
    pub const NIGHTLY: Budget = Budget(0.1);
}

/// The statistic above which a split is a change.
///
/// Expected alarms in 365 independent runs follow `ln alarms = A - B z^2` closely between 1 and 1e-4 (`cargo xtask
/// simulate histories` shows them); beyond, the same line is used.
pub fn threshold(budget: Budget, charts: Charts) -> f64 {
    const A: f64 = 5.7;
    const B: f64 = 0.52;
    let alarms = budget.0 / charts.0.max(1) as f64;
    ((A - alarms.ln()) / B).max(0.0).sqrt()
}

/// The changes of a sequence of logarithms of responses, in the order of time.
pub fn changes(logs: &[f64], threshold: f64) -> Vec<Change> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let (mut ranks, mut start) = (Ranks::default(), 0);
    let mut end = 0;
    while end < logs.len() {
        ranks.push(logs[end]);
        end += 1;
        let Some(at) = ranks.change(threshold) else { continue };
        found.push((start + ranks.dropped + at, end - 1));
        // Fresh runs: those behind this decision were chosen for being unusual, and what follows would look like a
        // change back.
        (ranks, start) = (Ranks::default(), end);
    }
    (0..found.len()).filter_map(|index| settled(logs, &found, index)).collect()
}

/// A found change with what later runs, up to the next change, tell about it.
fn settled(logs: &[f64], found: &[(usize, usize)], index: usize) -> Option<Change> {
    let (_, found_at) = *found.get(index)?;
    let from = index.checked_sub(1).and_then(|before| found.get(before)).map_or(0, |before| before.0);
    let to = found.get(index + 1).map_or(logs.len(), |after| after.0);
    let from = from.max(to.saturating_sub(WINDOW));
    let part = logs.get(from..to)?;
    let split = Ranks::of(part).split()?;
    let at = placed(part, &split)?;
    let (before, after) = part.split_at_checked(at)?;
    let (ratio, interval) = ratio(before, after, split.inflation)?;
    let range = (from + split.range.0.min(at), from + split.range.1.max(at));
    Some(Change { at: from + at, range, found: found_at, ratio, interval })
}

/// The place of a change within the range of its split: the least sum of distances from the medians of both sides.
/// Scores tell large steps from larger ones less well than the responses themselves.
fn placed(part: &[f64], split: &Split) -> Option<usize> {
    let (before, after) = part.split_at_checked(split.at)?;
    let (early, late) = (median(before)?, median(after)?);
    let (first, last) = split.range;
    let cost = |value: &f64| (value - early).abs() - (value - late).abs();
    let (mut sum, mut best) = (0.0, (0.0, first));
    for (index, value) in part.get(first..last)?.iter().enumerate() {
        sum += cost(value);
        if sum < best.0 {
            best = (sum, first + index + 1);
        }
    }
    Some(best.1)
}

/// The best split of a stretch.
struct Split {
    /// Index of the first run after it.
    at: usize,
    /// Its statistic, with correlation divided out.
    z: f64,
    /// Factor of the variance of means by correlation.
    inflation: f64,
    /// Other splits that the runs do not exclude.
    range: (usize, usize),
}

/// Values with their midranks, doubled to be whole.
#[derive(Default)]
struct Ranks {
    values: Vec<f64>,
    doubled: Vec<usize>,
    /// Values dropped at the beginning.
    dropped: usize,
}

impl Ranks {
    fn of(values: &[f64]) -> Ranks {
        let mut ranks = Ranks::default();
        values.iter().for_each(|value| ranks.push(*value));
        ranks
    }

    /// Adds a value; the oldest falls out of a full window.
    fn push(&mut self, value: f64) {
        if self.values.len() == WINDOW {
            let oldest = self.values.remove(0);
            self.doubled.remove(0);
            self.dropped += 1;
            for (rank, other) in self.doubled.iter_mut().zip(&self.values) {
                *rank -= above(*other, oldest);
            }
        }
        let mut own = 2;
        for (rank, other) in self.doubled.iter_mut().zip(&self.values) {
            *rank += above(*other, value);
            own += above(value, *other);
        }
        self.values.push(value);
        self.doubled.push(own);
    }

    /// Index of the first run after a change, if there is one.
    fn change(&self, threshold: f64) -> Option<usize> {
        if self.values.len() < FIRST_TEST {
            return None;
        }
        let scores = self.scores();
        // Correlation only lowers the statistic.
        let (_, raw) = largest(&statistics(&scores)?)?;
        if raw <= threshold {
            return None;
        }
        self.split().filter(|split| split.z > threshold).map(|split| split.at)
    }

    fn split(&self) -> Option<Split> {
        let scores = self.scores();
        let statistics = statistics(&scores)?;
        let (at, raw) = largest(&statistics)?;
        let inflation = inflation(&scores, at);
        let z = raw / inflation.sqrt();
        // Twice the logarithm of a likelihood ratio, for normal responses.
        let is_possible = |other: &f64| z * z - other * other / inflation <= RANGE;
        let first = statistics.iter().position(is_possible)?;
        let last = statistics.iter().rposition(is_possible)?;
        Some(Split { at, z, inflation, range: (first + LEAST_SIDE, last + LEAST_SIDE) })
    }

    /// The normal score of each value.
    fn scores(&self) -> Vec<f64> {
        static TABLE: OnceLock<Vec<f64>> = OnceLock::new();
        let score = |step: usize| normal_quantile((step as f64 + 0.5) / GRID as f64);
        let table = TABLE.get_or_init(|| (0..GRID).map(score).collect());
        let steps = 2 * (self.values.len() + 1);
        self.doubled.iter().map(|rank| table.get(rank * GRID / steps).copied().unwrap_or(0.0)).collect()
    }
}

/// Difference of the statistic's square within which another split is possible; 95 % or more by simulation.
const RANGE: f64 = 6.0;

/// Contribution of `other` to the doubled midrank of `value`.
fn above(value: f64, other: f64) -> usize {
    match value.partial_cmp(&other) {
        Some(Ordering::Greater) => 2,
        Some(Ordering::Equal) => 1,
        _ => 0,
    }
}

/// The standardized sum of scores before each split with [`LEAST_SIDE`] on both sides; `None` if all are equal.
fn statistics(scores: &[f64]) -> Option<Vec<f64>> {
    let n = scores.len() as f64;
    let mean = scores.iter().sum::<f64>() / n;
    let squares: f64 = scores.iter().map(|score| (score - mean).powi(2)).sum();
    if scores.len() < 2 * LEAST_SIDE || squares < 1e-9 {
        return None;
    }
    let mut sum = 0.0;
    let mut all = Vec::with_capacity(scores.len());
    for (index, score) in scores.iter().enumerate() {
        sum += score - mean;
        let before = (index + 1) as f64;
        if index + 1 >= LEAST_SIDE && index + 1 + LEAST_SIDE <= scores.len() {
            // The variance of the sum over all orders of these scores.
            all.push(sum / (before * (n - before) * squares / (n * (n - 1.0))).sqrt());
        }
    }
    Some(all)
}

/// The split with the largest statistic: index of the first run after it, and the statistic without its sign.
fn largest(statistics: &[f64]) -> Option<(usize, f64)> {
    let (index, z) = statistics.iter().enumerate().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    Some((index + LEAST_SIDE, z.abs()))
}

/// Factor by which the correlation of neighboring runs raises the variance of a mean: that of an autoregression of
/// first order, estimated from the scores around the mean of their side, without its bias in short sequences.
fn inflation(scores: &[f64], at: usize) -> f64 {
    let (before, after) = scores.split_at(at);
    let centered = |side: &[f64]| {
        let mean = side.iter().sum::<f64>() / side.len() as f64;
        side.iter().map(|score| score - mean).collect::<Vec<_>>()
    };
    let sides = [centered(before), centered(after)];
    let squares: f64 = sides.iter().flatten().map(|score| score * score).sum();
    let products: f64 = sides.iter().flat_map(|side| side.iter().zip(side.iter().skip(1))).map(|(a, b)| a * b).sum();
    if squares < 1e-9 {
        return 1.0;
    }
    let measured = products / squares;
    let correlation = (measured + (1.0 + 3.0 * measured) / scores.len() as f64).clamp(0.0, MOST_CORRELATION);
    (1.0 + correlation) / (1.0 - correlation)
}

/// Ratio of the responses after to those before, with its interval: of all pairs (Hodges and Lehmann 1963, Moses 1953).
fn ratio(before: &[f64], after: &[f64], inflation: f64) -> Option<(f64, (f64, f64))> {
    let mut pairs: Vec<f64> = after.iter().flat_map(|late| before.iter().map(move |early| late - early)).collect();
    pairs.sort_by(f64::total_cmp);
    let (n, k, all) = (before.len() as f64, after.len() as f64, pairs.len());
    let half_width = normal_quantile(0.975) * (n * k * (n + k + 1.0) / 12.0 * inflation).sqrt();
    let low = usize::try_from(crate::stats::special::whole((n * k / 2.0 - half_width).max(0.0).floor())).ok()?;
    let median = (pairs.get(all / 2)? + pairs.get((all.max(1) - 1) / 2)?) / 2.0;
    let interval = (pairs.get(low)?.exp(), pairs.get(all - 1 - low)?.exp());
    Some((median.exp(), interval))
}
