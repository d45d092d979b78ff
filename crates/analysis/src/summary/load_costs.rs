//! What the operations of a load cost while something else is measured, against what they cost alone.

use super::cost::{CostSummary, LoadCostChange, OperationCost, ratio};
use crate::summary::cell::CellSummary;
use punctual_model::{FileLoad, LoadPart, Policy};

/// Sets the change of each cell whose load timed its operations, where a cell of method `cost` has the same kernel and
/// the same settings of the machine.
pub(crate) fn set_changes(cells: &mut [CellSummary]) {
    let changes: Vec<_> = cells.iter().map(|cell| change(cell, cells)).collect();
    cells.iter_mut().zip(changes).for_each(|(cell, change)| cell.load_cost_change = change);
}

fn change(cell: &CellSummary, cells: &[CellSummary]) -> Option<LoadCostChange> {
    let beside = cell.load_cost.as_ref()?;
    let (reference, alone) = nearest(cell, cells)?;
    let percent = |of: fn(&OperationCost) -> f64| Some(100.0 * (ratio(alone, beside, of)? - 1.0));
    Some(LoadCostChange {
        against: reference.name.clone(),
        operations: alone.operations.len() as u64,
        medians_percent: percent(|one| one.median_ns)?,
        means_percent: percent(|one| one.mean_ns)?,
    })
}

/// The cell of method `cost` to compare with: under the rest of the load, or else under none, with the policy of the
/// load. Another load would be another question.
fn nearest<'a>(cell: &CellSummary, cells: &'a [CellSummary]) -> Option<(&'a CellSummary, &'a CostSummary)> {
    let is_suite = |part: &&LoadPart| matches!(part, LoadPart::Files { work: FileLoad::Cost, .. });
    let rest: Vec<&LoadPart> = cell.cell.load.parts().iter().filter(|part| !is_suite(part)).collect();
    let policy = cell.cell.conditions.load_policy.unwrap_or(Policy::OTHER);
    let alike = |other: &CellSummary| {
        let parts = other.cell.load.parts();
        let is_rest = parts.len() == rest.len() && rest.iter().all(|part| parts.contains(part));
        let is_like = other.cell.kernel == cell.cell.kernel
            && other.cell.conditions.prepare == cell.cell.conditions.prepare
            && other.cell.policy == policy
            && (is_rest || parts.is_empty());
        is_like.then_some(is_rest)
    };
    let known = cells.iter().filter_map(|other| Some((alike(other)?, other, other.cost.as_ref()?)));
    // Times of a fixed amount of work are single batches of another size. Among equally near ones the first.
    let known: Vec<_> = known.filter(|(_, _, cost)| cost.total_ns.is_none()).collect();
    known.into_iter().rev().max_by_key(|(is_rest, ..)| *is_rest).map(|(_, cell, cost)| (cell, cost))
}
