//! Comparison of the cost of operations between two configurations, block by block.

mod wording;

use crate::comparison::comparability::Difference;
use crate::comparison::{Arm, Question, Refusal, blocks_of};
use crate::stats::paired::{hodges_lehmann, holm, signed_rank};
use crate::summary::cost::{cost_of, group_of, median, total_of};
use punctual_model::{COST_OPERATIONS, Record};
use serde::Serialize;
use std::collections::BTreeMap;

/// Confidence of the interval of a change.
const CONFIDENCE: f64 = 0.95;

/// Significance level of an operation, after adjustment for their number.
const LEVEL: f64 = 0.05;

/// Two configurations, operation by operation.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CostComparison {
    /// Name of the first.
    pub a: String,
    /// Name of the second, whose costs are the numerator of every change.
    pub b: String,
    /// Blocks that hold both.
    pub blocks: u64,
    /// Smallest number of blocks that can show a difference of one operation, given the number of operations.
    pub blocks_needed: u64,
    /// Geometric mean of all operations; `None` if both have none in common.
    pub all: Option<Change>,
    /// The fixed amount of work; `None` unless both measured it.
    pub total: Option<Changed>,
    /// Geometric means of groups. Their p-values are adjusted for their number.
    pub groups: Vec<GroupChanged>,
    /// Every operation that both have in every block. Its p-value is adjusted for their number.
    pub operations: Vec<Changed>,
    /// Conditions and facts about the machine that differ between both.
    pub differences: Vec<Difference>,
    /// Reason for which the measurements cannot answer; if set, no operation counts as different.
    pub refused: Option<Refusal>,
}

/// Relative change from the first to the second. `Display`: `+3.1 % [+2.0 to +4.4]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Change {
    /// Hodges-Lehmann estimate, percent; with fewer than 6 blocks the median.
    pub percent: f64,
    /// Its 95 % interval, percent; `None` with fewer than 6 blocks.
    pub interval_percent: Option<(f64, f64)>,
    /// p-value of the exact signed-rank test, adjusted (Holm) if there are several.
    pub p: f64,
}

/// One operation in both.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Changed {
    /// Group and name.
    pub name: String,
    /// Median over the blocks of the first, ns.
    pub a_ns: f64,
    /// Median over the blocks of the second, ns.
    pub b_ns: f64,
    /// The change within blocks.
    pub change: Change,
    /// Whether the difference is significant.
    pub is_different: bool,
}

/// One group in both.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct GroupChanged {
    /// The group.
    pub group: String,
    /// The change of the geometric mean within blocks.
    pub change: Change,
    /// Whether the difference is significant.
    pub is_different: bool,
}

/// Cost of the operations of one record, ns.
type Costs<'a> = BTreeMap<&'a str, f64>;

/// Compares the costs of two configurations; `None` if one of them has none.
pub fn compare_costs(a: &Arm<'_>, b: &Arm<'_>, question: &Question<'_>) -> Option<CostComparison> {
    let has_costs = |arm: &Arm<'_>| arm.entries.iter().any(|entry| entry.record.cost.is_some());
    if !(has_costs(a) && has_costs(b)) {
        return None;
    }
    let (pairs, differences, refused) = blocks_of([a, b], question.asked, question.force);
    let is_answered = refused.is_none();
    let blocks: Vec<(Costs<'_>, Costs<'_>)> = pairs.iter().map(|(a, b)| (costs(&a.record), costs(&b.record))).collect();
    let in_all = |name: &&str| blocks.iter().all(|(a, b)| a.contains_key(*name) && b.contains_key(*name));
    let names = COST_OPERATIONS.iter().map(|operation| operation.name).filter(|_| !blocks.is_empty());
    let names: Vec<&str> = names.filter(in_all).collect();
    let of = |name: &str| -> Vec<(f64, f64)> {
        blocks.iter().filter_map(|(a, b)| Some((*a.get(name)?, *b.get(name)?))).collect()
    };
    let mut operations: Vec<Changed> = names.iter().filter_map(|name| changed(name, &of(name))).collect();
    adjust(is_answered, &mut operations, |one| (&mut one.change.p, &mut one.is_different));
    let of_group = |names: &[&str]| {
        let group = group_of(names.first()?).to_owned();
        Some(GroupChanged { group, change: change(&means(names, &blocks))?, is_different: false })
    };
    let mut groups: Vec<GroupChanged> =
        names.chunk_by(|a, b| group_of(a) == group_of(b)).filter_map(of_group).collect();
    adjust(is_answered, &mut groups, |group| (&mut group.change.p, &mut group.is_different));
    let totals: Vec<(f64, f64)> =
        pairs.iter().filter_map(|(a, b)| Some((total_of(&a.record)?, total_of(&b.record)?))).collect();
    let total = changed("total", &totals);
    let total = total.map(|total| Changed { is_different: is_answered && total.change.p < LEVEL, ..total });
    Some(CostComparison {
        a: a.name.clone(),
        b: b.name.clone(),
        blocks: pairs.len() as u64,
        blocks_needed: blocks_needed(operations.len()),
        all: if names.is_empty() { None } else { change(&means(&names, &blocks)) },
        total,
        groups,
        operations,
        differences,
        refused,
    })
}

/// Adjusts the p-values of several tests (Holm), and marks those below the level if `may_count`.
fn adjust<T>(may_count: bool, tests: &mut [T], of: impl Fn(&mut T) -> (&mut f64, &mut bool)) {
    let chances: Vec<f64> = tests.iter_mut().map(|test| *of(test).0).collect();
    for (test, adjusted) in tests.iter_mut().zip(holm(&chances)) {
        let (p, is_different) = of(test);
        (*p, *is_different) = (adjusted, may_count && adjusted < LEVEL);
    }
}

/// Number of blocks from which the smallest p-value of a signed-rank test is significant for this number of tests.
fn blocks_needed(tests: usize) -> u64 {
    let wanted = LEVEL / tests.max(1) as f64;
    let rarest = |n: &u64| 2.0 * 0.5_f64.powf(*n as f64) < wanted;
    (1..64).find(rarest).unwrap_or(u64::MAX)
}

/// Cost of each operation in one record, ns. An operation with a cost of 0 has no ratio and is left out.
fn costs(record: &Record) -> Costs<'_> {
    let Some(cost) = &record.cost else { return BTreeMap::new() };
    let known = cost.operations.iter().filter_map(|one| Some((one.name.as_str(), cost_of(one, cost.clock_ns)?)));
    known.filter(|(_, ns)| *ns > 0.0).collect()
}

/// For each block, the logarithm of the ratio of geometric means.
fn means(names: &[&str], blocks: &[(Costs<'_>, Costs<'_>)]) -> Vec<f64> {
    let mean = |(a, b): &(Costs<'_>, Costs<'_>)| {
        let logs: Option<Vec<f64>> = names.iter().map(|name| Some((b.get(name)? / a.get(name)?).ln())).collect();
        logs.map(|logs| logs.iter().sum::<f64>() / logs.len().max(1) as f64)
    };
    blocks.iter().filter_map(mean).collect()
}

fn changed(name: &str, blocks: &[(f64, f64)]) -> Option<Changed> {
    let logs: Vec<f64> = blocks.iter().map(|(a, b)| (b / a).ln()).collect();
    Some(Changed {
        name: name.to_owned(),
        a_ns: median(blocks.iter().map(|(a, _)| *a).collect())?,
        b_ns: median(blocks.iter().map(|(_, b)| *b).collect())?,
        change: change(&logs)?,
        is_different: false,
    })
}

/// Change estimated from the logarithms of ratios; `None` without any.
fn change(logs: &[f64]) -> Option<Change> {
    let percent = |log: f64| 100.0 * log.exp_m1();
    let effect = hodges_lehmann(logs, CONFIDENCE);
    let middle = effect.map_or_else(|| median(logs.to_vec()), |effect| Some(effect.difference))?;
    Some(Change {
        percent: percent(middle),
        interval_percent: effect.map(|effect| (percent(effect.lower), percent(effect.upper))),
        p: signed_rank(logs).map_or(1.0, |test| test.p),
    })
}

#[cfg(test)]
mod tests;
