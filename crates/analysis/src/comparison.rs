//! Comparison of two configurations by their latency: DIFFERENT, EQUIVALENT or UNDECIDED.
//!
//! The unit is the measurement: each configuration has one number in each block, and the ratio of both within the block
//! is tested. Samples are never pooled. On real runs in which nothing was changed, tests of pooled samples find a
//! difference in 88 to 100 % of cases.

mod accounts;
pub(crate) mod baseline;
mod causes;
mod cells;
pub mod comparability;
pub mod costs;
mod document;
mod imported;
mod layout;
mod metric;
mod stages;
mod wording;

use crate::comparison::comparability::Difference;
use crate::machine::config::Likeness;
use crate::stats::paired::{
    blocks_needed, confidence_sequence, deviation, evidence_of, hodges_lehmann, holm, signed_rank,
};
use crate::summary::work::{self, ComparedLoad};
pub use accounts::ChangedAccount;
pub use causes::CauseOfOne;
pub use cells::{arm, compare_cells, only_pair};
pub use imported::compare_imported;
use layout::Layout;
use metric::Numbers;
pub use metric::{MIN_OF_EACH, Metric};
use punctual_model::{Ended, Entry, Level, Order};
use serde::Serialize;
pub use stages::ComparedStage;

/// Smallest number of blocks that can show a difference: with 5, the smallest p-value of the test is 1 in 16.
pub const MIN_BLOCKS: usize = 6;

/// Smallest number of boots of each configuration that separates a difference from one between boots.
const MIN_BOOTS: usize = 6;

/// Confidence of the interval of a ratio.
const CONFIDENCE: f64 = 0.95;

/// Significance level of exploratory metrics, after adjustment for multiple testing.
const LEVEL: f64 = 0.05;

/// One configuration: its name, and its measurements by block.
#[derive(Debug, Clone)]
pub struct Arm<'a> {
    /// Its name.
    pub name: String,
    /// Its measurements.
    pub entries: Vec<&'a Entry>,
}

/// Parameters of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Question<'a> {
    /// The metric that decides; `None`: p99.9 if enough wake-ups lie above it, else p99.
    pub metric: Option<Level>,
    /// Equivalence margin: the ratio below which a difference does not matter, above 1; `None`: 1.10 for p50, 1.25
    /// above.
    pub margin: Option<f64>,
    /// Whether the measurement stopped once the answer was known, so that the data was tested after every block.
    pub looked_at_every_block: bool,
    /// Number of looks at the data that were planned; 0 and 1 are one look at its end. Intervals and p-values hold over
    /// all of them (Bonferroni).
    pub looks: u32,
    /// Whether measurements are compared even if they are separate in time or by boots, or measured something else.
    pub force: bool,
    /// The conditions under comparison, of [`punctual_model::Selector::AXES`]; a difference in them does not prevent an
    /// answer.
    pub asked: &'a [&'a str],
}

/// Two configurations, compared.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Comparison {
    /// Name of the first.
    pub a: String,
    /// Name of the second, whose latency is the numerator of every ratio.
    pub b: String,
    /// Blocks that hold both.
    pub blocks: u64,
    /// Number of blocks in which the first was measured first.
    pub a_first: u64,
    /// Whether both are one cell of a run, measured twice in each block. The ratio is then the noise of the machine.
    pub is_again: bool,
    /// Equivalence margin: the ratio below which a difference does not matter.
    pub margin: f64,
    /// The metric that decides (primary metric).
    pub primary: Measured,
    /// Ratio of the primary metric in each block, in the order of time; empty if it is refused.
    pub ratios: Vec<f64>,
    /// The other metrics, for exploration. Their p-values are adjusted for multiple testing (Holm).
    pub secondary: Vec<Measured>,
    /// Noise floor: 95 % interval of the ratio of the first configuration to a second measurement of itself.
    pub noise_floor: Option<(f64, f64)>,
    /// Conditions and facts about the machine that differ between both.
    pub differences: Vec<Difference>,
    /// Causes of late wake-ups that only one of them has; empty unless both were explained.
    pub causes: Vec<CauseOfOne>,
    /// Watched threads of both whose time went elsewhere.
    pub accounts: Vec<ChangedAccount>,
    /// Phases of the activations of watched threads of both, and stages of the packets that released them.
    pub stages: Vec<ComparedStage>,
    /// Work of the loads that both have, by part.
    pub loads: Vec<ComparedLoad>,
    /// Whether the kernels of two guests are built alike; `None` where a configuration is unknown, or it is one kernel.
    pub kernels: Option<Likeness>,
    /// Whether they differ.
    pub decision: Decision,
}

/// One metric of both configurations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(into = "document::MeasuredDocument")]
pub struct Measured {
    /// The metric.
    pub metric: Metric,
    /// Median over the blocks of the first, ns (a count for misses).
    pub a: Option<f64>,
    /// Median over the blocks of the second, in the same unit.
    pub b: Option<f64>,
    /// Ratio within blocks; `None` if it is refused.
    pub ratio: Option<Ratio>,
}

/// Ratio of the second configuration to the first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Ratio {
    /// Hodges-Lehmann estimate.
    pub value: f64,
    /// Its 95 % interval.
    pub interval: (f64, f64),
    /// p-value of the null hypothesis that neither is larger; for exploratory metrics adjusted for their number.
    pub p: f64,
}

impl Ratio {
    /// Whether the interval lies wholly above or below 1.
    pub fn excludes_one(&self) -> bool {
        self.interval.0 > 1.0 || self.interval.1 < 1.0
    }

    /// Whether the interval lies wholly between the margin and its inverse.
    pub fn is_within(&self, margin: f64) -> bool {
        self.interval.0 >= 1.0 / margin && self.interval.1 <= margin
    }
}

/// Decision of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Decision {
    /// The interval of the ratio excludes 1 and is not within the margin.
    Different,
    /// The interval of the ratio lies within the margin, whether it excludes 1 or not.
    Equivalent,
    /// Neither is shown. This does not mean "the same".
    Undecided {
        /// Number of blocks that would probably find or exclude a ratio of the margin; `None` if nothing varies.
        blocks_needed: Option<u64>,
    },
    /// The measurements cannot answer.
    Refused {
        /// The reason.
        why: Refusal,
    },
}

/// Reason for which measurements cannot answer.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Refusal {
    /// A difference prevents a comparison, [`crate::comparability::Role::Prevents`].
    Incomparable,
    /// Fewer blocks than [`MIN_BLOCKS`] hold both.
    FewBlocks {
        /// Number of blocks with both.
        blocks: u64,
    },
    /// The blocks overlap or do not alternate: one configuration was measured before the other.
    Separate,
    /// Imported measurements have no blocks: each is a run of its own.
    NoBlocks {
        /// Whether the comparison was forced.
        forced: bool,
    },
    /// No boot contains both configurations, and at least one of them has too few boots.
    FewBoots {
        /// Number of boots of the configuration with fewer.
        boots: u64,
    },
    /// A measurement has too few wake-ups above the quantile.
    FewExceedances {
        /// Smallest number of any measurement.
        have: u64,
        /// Number required.
        need: u64,
    },
    /// Due times of a measurement were not seen: they may have been later than all others.
    NotSeen {
        /// Number of them in the first such measurement.
        unseen: u64,
    },
    /// A value is 0 or less, so the ratio is undefined.
    NotPositive,
    /// A quantile of gaps: it rises when the short ones disappear.
    OfGaps,
    /// A gap is longer than this in one measurement, and longer than that in the other.
    Thresholds {
        /// Of the first.
        a_ns: u64,
        /// Of the second.
        b_ns: u64,
    },
    /// A thread that never waits did not end: what it lost is unknown.
    NotEnded,
}

impl Decision {
    /// Exit status of the program: 0 equivalent, 2 different, 3 undecided, 1 if the measurements are not comparable.
    pub fn exit_status(&self) -> u8 {
        match self {
            Decision::Equivalent => 0,
            Decision::Different => 2,
            Decision::Refused { why: Refusal::Incomparable } => 1,
            Decision::Undecided { .. } | Decision::Refused { .. } => 3,
        }
    }
}

/// Returns the paired blocks of two configurations, the differences between both, and the reason for which they cannot
/// answer, if any. `force` accepts pairs that are separate in time or by boots, or that measured something else.
pub(crate) fn blocks_of<'a>(
    [a, b]: [&Arm<'a>; 2],
    asked: &[&str],
    force: bool,
) -> (Vec<(&'a Entry, &'a Entry)>, Vec<Difference>, Option<Refusal>) {
    let pairs = paired_by_block(&a.entries, &b.entries);
    let unequal = layout::differences(&pairs, [a, b], asked);
    let refusal = layout::refusal(&pairs, &Layout::of(&pairs), &unequal, force);
    (pairs, unequal, refusal)
}

/// Compares two configurations. `again` is a second measurement of the first configuration, if there is one.
pub fn compare(a: &Arm<'_>, b: &Arm<'_>, again: Option<&Arm<'_>>, question: &Question<'_>) -> Comparison {
    let pairs = paired_by_block(&a.entries, &b.entries);
    let layout = Layout::of(&pairs);
    let numbers = numbers(&pairs);
    let tables = [a, b].map(|arm| metric::shown(&arm.entries));
    let is_shown = |level: Level| tables.iter().flatten().all(|table| table.at(level).value_ns().is_some());
    let are_gaps = a.entries.iter().chain(&b.entries).any(|entry| entry.record.cell.task.is_noise());
    let level = || metric::default_level(numbers.iter().flat_map(|(a, b)| [a, b]), is_shown);
    let metric = match question.metric {
        None if are_gaps => Metric::Lost,
        asked => Metric::Quantile(asked.unwrap_or_else(level)),
    };
    let margin = question.margin.unwrap_or_else(|| default_margin(metric));
    let differences = differences(metric, &numbers);
    let unequal = layout::differences(&pairs, [a, b], question.asked);
    let refusal = layout::refusal(&pairs, &layout, &unequal, question.force);
    let refusal = refusal.or_else(|| differences.as_ref().err().cloned());
    let shown = |differences: Result<Vec<f64>, Refusal>| {
        let differences = differences.ok().filter(|_| refusal.is_none())?;
        ratio(&differences, question.looked_at_every_block, f64::from(question.looks.max(1)))
    };
    let deviation = differences.as_ref().ok().and_then(|d| deviation(d));
    let ratios = differences.as_ref().map_or_else(|_| Vec::new(), |d| d.iter().map(|d| d.exp()).collect());
    let primary = measured(metric, &numbers, shown(differences));
    let decision = match (refusal.clone(), primary.ratio) {
        (Some(why), _) => Decision::Refused { why },
        (None, Some(ratio)) if ratio.is_within(margin) => Decision::Equivalent,
        (None, Some(ratio)) if ratio.excludes_one() => Decision::Different,
        (None, _) => Decision::Undecided { blocks_needed: deviation.and_then(|sd| blocks_needed(sd, margin.ln())) },
    };
    let others = if are_gaps { &[Metric::Lost, Metric::Max][..] } else { &Metric::ALL };
    let others = others.iter().copied().filter(|other| *other != metric);
    let of_other = |other| measured(other, &numbers, shown(self::differences(other, &numbers)));
    // Without any miss there is no ratio of misses.
    let others = others
        .filter(|other| *other != Metric::Misses || numbers.iter().any(|(a, b)| a.has_misses() || b.has_misses()));
    let is_told = |metric: Metric| match metric {
        Metric::Quantile(level) => is_shown(level),
        // The same difference in every block has no variance, so its interval and p-value mean nothing.
        Metric::Misses => self::differences(metric, &numbers).is_ok_and(|all| varies(&all)),
        Metric::Max | Metric::Lost => true,
    };
    let without_ratio = |other: Measured| Measured { ratio: other.ratio.filter(|_| is_told(other.metric)), ..other };
    let mut secondary: Vec<Measured> = others.map(of_other).map(without_ratio).collect();
    adjust(&mut secondary);
    Comparison {
        a: a.name.clone(),
        b: b.name.clone(),
        blocks: count(pairs.len()),
        a_first: count(layout.a_first),
        is_again: false,
        margin,
        primary,
        ratios,
        secondary,
        noise_floor: again.and_then(|again| noise_floor(a, again, metric)),
        differences: unequal,
        causes: causes::of_one(a, b),
        accounts: accounts::changed(&a.entries, &b.entries),
        stages: stages::compared(&a.entries, &b.entries),
        loads: work::compared(&a.entries, &b.entries),
        kernels: layout::likeness([a, b]),
        decision,
    }
}

fn varies(differences: &[f64]) -> bool {
    differences.windows(2).any(|pair| pair[0] != pair[1])
}

/// Equivalence margin of a metric, unless another is asked for.
pub(crate) fn default_margin(metric: Metric) -> f64 {
    if metric == Metric::Quantile(Level::P50) { 1.10 } else { 1.25 }
}

/// The number of one measurement that a ratio is made of: ns, or episodes and a half; above 0. Errors: if the
/// measurement has too few wake-ups for it.
pub(crate) fn response(metric: Metric, entry: &Entry) -> Result<f64, Refusal> {
    metric.value(&Numbers::of(entry))
}

/// Ratio of one metric of the second configuration to the first, `None` if it is refused, and its value in each block;
/// empty if a measurement has too few wake-ups for this metric. Unlike [`Comparison::secondary`] it depends on no other
/// metric, and its p-value is adjusted for none.
pub fn ratio_of(metric: Metric, a: &Arm<'_>, b: &Arm<'_>, question: &Question<'_>) -> (Option<Ratio>, Vec<f64>) {
    let (pairs, _, refusal) = blocks_of([a, b], question.asked, question.force);
    let differences = differences(metric, &numbers(&pairs)).unwrap_or_default();
    // The same number of misses in every block has no variance, so its interval and p-value mean nothing.
    let varies = metric != Metric::Misses || differences.windows(2).any(|pair| pair[0] != pair[1]);
    let ratio = ratio(&differences, question.looked_at_every_block, f64::from(question.looks.max(1)));
    let of_blocks = differences.iter().map(|difference| difference.exp()).collect();
    (ratio.filter(|_| varies && refusal.is_none()), of_blocks)
}

/// Interval of the ratio of a configuration to a second measurement of itself.
fn noise_floor(a: &Arm<'_>, again: &Arm<'_>, metric: Metric) -> Option<(f64, f64)> {
    let numbers = numbers(&paired_by_block(&a.entries, &again.entries));
    let effect = hodges_lehmann(&differences(metric, &numbers).ok()?, CONFIDENCE)?;
    Some((effect.lower.exp(), effect.upper.exp()))
}

fn numbers(pairs: &[(&Entry, &Entry)]) -> Vec<(Numbers, Numbers)> {
    pairs.iter().map(|(a, b)| (Numbers::of(a), Numbers::of(b))).collect()
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// Pairs of completed measurements by block, in the order of time. A block that lacks one of them is left out.
fn paired_by_block<'a>(a: &[&'a Entry], b: &[&'a Entry]) -> Vec<(&'a Entry, &'a Entry)> {
    let is_whole = |entry: &&&Entry| entry.record.ended == Ended::Completed;
    let mut pairs: Vec<_> = a
        .iter()
        .filter(is_whole)
        .filter_map(|a| {
            let b = b.iter().filter(is_whole).find(|b| b.planned.block == a.planned.block)?;
            Some((*a, *b))
        })
        .collect();
    pairs.order_by_key(|(a, b)| a.record.started_unix_ms.min(b.record.started_unix_ms));
    pairs
}

/// The logarithm of the ratio in each block, in the order of time.
fn differences(metric: Metric, numbers: &[(Numbers, Numbers)]) -> Result<Vec<f64>, Refusal> {
    let of_pair = |(a, b): &(Numbers, Numbers)| {
        a.check_threshold(b)?;
        Ok((metric.value(b)? / metric.value(a)?).ln())
    };
    numbers.iter().map(of_pair).collect()
}

/// Ratio estimated from these differences of logarithms. `looked_at_every_block` gives an interval that holds at all
/// looks together (confidence sequence); else they hold over this number of planned `looks`.
fn ratio(differences: &[f64], looked_at_every_block: bool, looks: f64) -> Option<Ratio> {
    let effect = hodges_lehmann(differences, 1.0 - (1.0 - CONFIDENCE) / looks)?;
    let (interval, p) = if looked_at_every_block {
        let most = (1..=differences.len()).filter_map(|n| differences.get(..n)).map(evidence_of).fold(1.0, f64::max);
        (confidence_sequence(differences), 1.0 / most)
    } else {
        let p = signed_rank(differences).map_or(1.0, |test| (test.p * looks).min(1.0));
        ((effect.lower, effect.upper), p)
    };
    let interval = (interval.0.exp(), interval.1.exp());
    interval.1.is_finite().then_some(Ratio { value: effect.difference.exp(), interval, p })
}

fn measured(metric: Metric, numbers: &[(Numbers, Numbers)], ratio: Option<Ratio>) -> Measured {
    let median_of = |values: Vec<Result<f64, Refusal>>| -> Option<f64> {
        let mut values: Vec<f64> = values.into_iter().flatten().collect();
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        Some(0.5 * (values.get(last / 2)? + values.get(values.len() / 2)?))
    };
    let a = median_of(numbers.iter().map(|(a, _)| metric.shown(a)).collect());
    let b = median_of(numbers.iter().map(|(_, b)| metric.shown(b)).collect());
    Measured { metric, a, b, ratio }
}

/// Adjusts the p-values of several metrics for multiple testing (Holm).
fn adjust(measured: &mut [Measured]) {
    let chances: Vec<f64> = measured.iter().filter_map(|metric| metric.ratio.map(|ratio| ratio.p)).collect();
    let ratios = measured.iter_mut().filter_map(|metric| metric.ratio.as_mut());
    ratios.zip(holm(&chances)).for_each(|(ratio, p)| ratio.p = p);
}

impl Measured {
    /// Whether it differs significantly, after adjustment for the number of exploratory metrics.
    pub fn differs(&self) -> bool {
        self.ratio.is_some_and(|ratio| ratio.p < LEVEL)
    }
}

#[cfg(test)]
mod tests;
