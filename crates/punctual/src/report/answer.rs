//! The question in one sentence: how late this machine can be.

use analysis::wording::duration;
use analysis::{CellSummary, Max, RunSummary};
use model::{Policy, Span};
use std::collections::BTreeSet;

/// The largest latency of each policy that was measured, and where it was.
pub(super) fn how_late(summary: &RunSummary) -> String {
    let measured = summary.cells.iter().map(|cell| cell.measured).filter(|measured| *measured > Span(0)).min();
    let Some(measured) = measured else { return "Nothing was measured.".to_owned() };
    let mut seen = BTreeSet::new();
    let policies = summary.cells.iter().map(|cell| cell.cell.policy).filter(|policy| seen.insert(*policy));
    let parts: Vec<_> = policies.filter_map(|policy| worst_as(policy, &summary.cells)).collect();
    let time = if summary.cells.len() == 1 { "" } else { " of each cell" };
    format!("How late in {}{time}: {}.", duration(measured.ns() as f64), parts.join(", "))
}

fn worst_as(policy: Policy, cells: &[CellSummary]) -> Option<String> {
    let of_policy = cells.iter().filter(|cell| cell.cell.policy == policy);
    let maxima = of_policy.filter_map(|cell| Some((cell, cell.max?)));
    let (cell, Max { latency_ns, at_least, cpu, .. }) = maxima.max_by_key(|(_, max)| (max.latency_ns, max.at_least))?;
    let up_to = if at_least { "more than" } else { "up to" };
    // The policy was just named.
    let place = cell.name.replacen(&format!("/{policy}"), "", 1);
    Some(format!("as {policy} {up_to} {} ({place}, CPU {cpu})", duration(latency_ns as f64)))
}
