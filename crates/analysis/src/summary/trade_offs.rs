//! What real time takes away: the worst latency of a configuration beside the throughput it leaves.

use super::cost::{CostSummary, geometric_mean};
use crate::summary::cell::CellSummary;
use model::{LabClock, Policy};

/// One configuration in both respects.
#[derive(Debug, Clone, PartialEq)]
pub struct TradeOff {
    /// What its cell of latencies is called.
    pub name: String,
    /// The largest latency, ns.
    pub worst_ns: i64,
    /// Whether that is a lower bound: a wait that never ended.
    pub at_least: bool,
    /// How much work it does in the time in which the first does all of it, percent: from the geometric mean of the costs of
    /// the operations that both have.
    pub throughput_percent: f64,
    /// What its times are of; `None` for real ones.
    pub clock: Option<LabClock>,
}

/// Every latency cell among these that has a cost cell of the same kernel, in their order. Names are as given.
#[must_use]
pub fn trade_offs(cells: &[(String, &CellSummary)]) -> Vec<TradeOff> {
    let costs: Vec<(&CellSummary, &CostSummary)> =
        cells.iter().filter_map(|(_, cell)| Some((*cell, cell.cost.as_ref()?))).collect();
    let point = |(name, cell): &(String, &CellSummary)| {
        let max = cell.max.filter(|_| cell.cell.task.has_latencies())?;
        let (of, cost) = nearest(cell, &costs)?;
        // The first is what all others are measured against, under the same load, as the same policy, in the same kind of time.
        let is_like = |other: &&(&CellSummary, &CostSummary)| {
            other.0.cell.load == of.cell.load
                && other.0.cell.policy == of.cell.policy
                && other.0.cell.kernel.clock() == of.cell.kernel.clock()
        };
        let (_, first) = costs.iter().find(is_like)?;
        Some(TradeOff {
            name: name.clone(),
            worst_ns: max.latency_ns,
            at_least: max.at_least,
            throughput_percent: 100.0 * throughput(first, cost)?,
            clock: cell.cell.kernel.clock(),
        })
    };
    cells.iter().filter_map(point).collect()
}

/// The costs that stand for a cell: those of its kernel, under its load where there are such. Whose work real time is bought
/// with is that of ordinary programs, so costs as a normal process come first, then those as the cell's own policy.
fn nearest<'a>(
    cell: &CellSummary,
    costs: &[(&'a CellSummary, &'a CostSummary)],
) -> Option<(&'a CellSummary, &'a CostSummary)> {
    let of_kernel = costs.iter().filter(|(other, _)| {
        other.cell.kernel == cell.cell.kernel && other.cell.conditions.prepare == cell.cell.conditions.prepare
    });
    let alike = |other: &CellSummary| {
        let policy = other.cell.policy;
        (other.cell.load == cell.cell.load, policy == Policy::OTHER, policy == cell.cell.policy)
    };
    // Of equally near ones the first.
    of_kernel.copied().rev().max_by_key(|(other, _)| alike(other))
}

/// How much of the work of the first the second does in the same time; `None` when they have no operation in common.
fn throughput(first: &CostSummary, second: &CostSummary) -> Option<f64> {
    let ratio = |one: &super::cost::OperationCost| {
        let other = second.operations.iter().find(|other| other.name == one.name)?;
        Some(one.median_ns / other.median_ns)
    };
    geometric_mean(&first.operations.iter().filter_map(ratio).collect::<Vec<_>>())
}
