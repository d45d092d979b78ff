//! Throughput cost of real time: the worst latency of a configuration, and the throughput that it leaves.

use super::cost::{CostSummary, geometric_mean};
use crate::summary::cell::CellSummary;
use punctual_model::{LabClock, Policy};

/// One configuration in both respects.
#[derive(Debug, Clone, PartialEq)]
pub struct TradeOff {
    /// Name of its latency cell.
    pub name: String,
    /// The largest latency, ns.
    pub worst_ns: i64,
    /// Whether that is a lower bound: an open wait.
    pub at_least: bool,
    /// Throughput relative to the first configuration, percent: from the geometric mean of the costs of the operations
    /// that both have.
    pub throughput_percent: f64,
    /// Clock of its times; `None` for real time.
    pub clock: Option<LabClock>,
}

/// Every latency cell among these with a cost cell of the same kernel, in their order, with the given names.
pub fn trade_offs(cells: &[(String, &CellSummary)]) -> Vec<TradeOff> {
    let costs: Vec<(&CellSummary, &CostSummary)> =
        cells.iter().filter_map(|(_, cell)| Some((*cell, cell.cost.as_ref()?))).collect();
    let point = |(name, cell): &(String, &CellSummary)| {
        let max = cell.max.filter(|_| cell.cell.task.has_latencies())?;
        let (of, cost) = nearest(cell, &costs)?;
        // All others are compared with the first: same load, same policy, same kind of time.
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

/// The costs that represent a cell: those of its kernel, preferably under its load. Real time is paid for by ordinary
/// programs, so costs of a normal process come first, then those with the cell's own policy.
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
    // Among equally near ones the first.
    of_kernel.copied().rev().max_by_key(|(other, _)| alike(other))
}

/// Throughput of the second relative to the first; `None` without a common operation.
fn throughput(first: &CostSummary, second: &CostSummary) -> Option<f64> {
    let ratio = |one: &super::cost::OperationCost| {
        let other = second.operations.iter().find(|other| other.name == one.name)?;
        Some(one.median_ns / other.median_ns)
    };
    geometric_mean(&first.operations.iter().filter_map(ratio).collect::<Vec<_>>())
}
