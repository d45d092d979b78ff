//! What operations cost, as a table; two configurations beside each other; what there is to be measured.

use super::Style;
use super::lines::Lines;
use super::table::{Heads, fit};
use analysis::cost::{CostComparison, CostSummary, OperationCost};
use analysis::wording::{count, duration, number, things};
use analysis::{CellSummary, RunSummary};
use model::{CostOperation, CostScope};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// The table of a run's costs, and how to read it.
#[derive(Debug)]
pub(super) struct Costs {
    pub(super) heads: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) notes: Vec<String>,
}

/// The cost cells of a run that were measured.
fn cells(summary: &RunSummary) -> Vec<(&CellSummary, &CostSummary)> {
    summary.cells.iter().filter_map(|cell| Some((cell, cell.cost.as_ref()?))).collect()
}

/// The costs of a run; `None` where none were measured.
pub(super) fn of(summary: &RunSummary) -> Option<Costs> {
    let cells = cells(summary);
    let mut costs = match cells.as_slice() {
        [] => return None,
        [(_, only)] => of_one(only),
        _ => of_several(&cells),
    };
    let clock = cells.iter().map(|(_, cost)| cost.clock_ns).max().unwrap_or(0);
    costs.notes.push(format!(
        "Time of one operation; every batch was timed by itself, and {clock} ns for reading the clock were subtracted."
    ));
    if cells.iter().any(|(cell, _)| cell.cell.kernel.is_virtual()) {
        costs.notes.push("Of lab kernels, a ns is one instruction: so much work, not so much time.".to_owned());
    }
    Some(costs)
}

/// One cell: the distribution of each operation over its batches.
fn of_one(cost: &CostSummary) -> Costs {
    let heads = ["operation", "median", "p99", "worst", "each", "batches", "of", "MB/s"].map(str::to_owned).to_vec();
    let row = |one: &OperationCost| {
        let rate = one.mb_per_s.map_or_else(|| "-".to_owned(), number);
        let [median, p99, worst] = [one.median_ns, one.p99_ns, one.worst_ns].map(duration);
        vec![one.name.clone(), median, p99, worst, one.unit.clone(), count(one.batches), count(one.per_batch), rate]
    };
    let mut rows: Vec<_> = cost.operations.iter().map(row).collect();
    let mut notes = vec!["p99, worst: of batches, divided by the operations in them.".to_owned()];
    if let Some(total_ns) = cost.total_ns {
        // Each has one batch, of a fixed number.
        rows.iter_mut().for_each(|row| row.truncate(2));
        let heads = ["operation", "each"].map(str::to_owned).to_vec();
        notes = vec![format!("The fixed amount of work took {}.", duration(total_ns))];
        return Costs { heads, rows, notes };
    }
    Costs { heads, rows, notes }
}

/// Several: their medians beside each other, and how much more than the first.
fn of_several(cells: &[(&CellSummary, &CostSummary)]) -> Costs {
    let names: Vec<String> = (1..=cells.len()).map(|n| format!("({n})")).collect();
    let notes = cells.iter().zip(&names).map(|((cell, _), name)| format!("{name} {}", cell.name)).collect();
    let find =
        |cost: &CostSummary, name: &str| cost.operations.iter().find(|one| one.name == name).map(|one| one.median_ns);
    let field = |first: Option<f64>, value: Option<f64>| match (first, value) {
        (_, None) => "-".to_owned(),
        (Some(first), Some(value)) if first > 0.0 => {
            format!("{} {:+.0} %", duration(value), 100.0 * (value / first - 1.0))
        }
        (_, Some(value)) => duration(value),
    };
    let row = |head: &str, values: Vec<Option<f64>>| -> Vec<String> {
        let first = values.first().copied().flatten();
        let fields = values.iter().enumerate().map(|(i, value)| field(first.filter(|_| i > 0), *value));
        std::iter::once(head.to_owned()).chain(fields).collect()
    };
    let measured: BTreeSet<&str> =
        cells.iter().flat_map(|(_, cost)| cost.operations.iter().map(|one| one.name.as_str())).collect();
    let known = model::COST_OPERATIONS.iter().map(|operation| operation.name).filter(|name| measured.contains(name));
    let mut rows: Vec<_> =
        known.map(|name| row(name, cells.iter().map(|(_, cost)| find(cost, name)).collect())).collect();
    if cells.iter().any(|(_, cost)| cost.total_ns.is_some()) {
        rows.push(row("total", cells.iter().map(|(_, cost)| cost.total_ns).collect()));
    }
    let heads = std::iter::once("operation".to_owned()).chain(names).collect();
    Costs { heads, rows, notes }
}

/// Writes the table; nothing without costs.
pub(super) fn write(out: &mut dyn Write, summary: &RunSummary, lines: &Lines) -> io::Result<()> {
    let Some(costs) = of(summary) else { return Ok(()) };
    let is_text = |head: &str| ["operation", "each"].contains(&head);
    let heads: Vec<(&str, bool)> = costs.heads.iter().map(|head| (head.as_str(), is_text(head))).collect();
    let drawn = fit(&heads, &costs.rows, lines.width);
    let (head, rows) = drawn.split_once('\n').unwrap_or((&drawn, ""));
    lines.heading(out, head)?;
    writeln!(out, "{rows}")?;
    costs.notes.iter().try_for_each(|note| lines.paragraph(out, "", note))
}

/// The answer of a run that measured nothing but costs.
pub(super) fn answer(summary: &RunSummary) -> String {
    let cells = cells(summary);
    let operations = cells.iter().map(|(_, cost)| cost.operations.len() as u64).max().unwrap_or(0);
    if operations == 0 {
        return "Nothing was measured.".to_owned();
    }
    let slowest = cells.iter().filter_map(|(cell, cost)| Some((cell, cost.total_ns?)));
    let slowest = slowest.max_by(|a, b| a.1.total_cmp(&b.1));
    match slowest {
        Some((cell, ns)) => format!("A fixed amount of work took up to {} ({}).", duration(ns), cell.name),
        None => format!(
            "{} measured. A cost by itself is no verdict: compare two configurations.",
            things(operations, "operation")
        ),
    }
}

/// Writes two configurations beside each other, operation by operation, and the answer.
///
/// # Errors
/// When `out` does not take it.
pub(crate) fn compared(out: &mut dyn Write, comparison: &CostComparison, style: Style) -> io::Result<()> {
    let lines = Lines::new(style);
    let CostComparison { a, b, blocks, .. } = comparison;
    lines.heading(out, &format!("Cost of {b} against {a} ({})", things(*blocks, "block")))?;
    let heads: Heads = vec![
        ("operation", true),
        ("first", false),
        ("second", false),
        ("change [95 %]", true),
        ("p", false),
        ("", true),
    ];
    let marked = |is_different: bool| if is_different { "different".to_owned() } else { String::new() };
    let mut rows = Vec::new();
    for one in comparison.operations.iter().chain(&comparison.total) {
        let (a, b) = (duration(one.a_ns), duration(one.b_ns));
        let change = one.change.to_string();
        rows.push(vec![one.name.clone(), a, b, change, chance(one.change.p), marked(one.is_different)]);
    }
    for group in &comparison.groups {
        let name = format!("{} (mean)", group.group);
        let none = || "-".to_owned();
        let change = group.change.to_string();
        rows.push(vec![name, none(), none(), change, chance(group.change.p), marked(group.is_different)]);
    }
    writeln!(out, "{}", fit(&heads, &rows, lines.width))?;
    lines.paragraph(
        out,
        "",
        "Change within blocks (Hodges-Lehmann); p: adjusted for the number of operations (Holm). Groups are to explore, adjusted \
         for their own number; their means are geometric.",
    )?;
    lines.paragraph(out, "", &comparison.sentence())?;
    comparison.remarks().iter().try_for_each(|remark| lines.paragraph(out, "", remark))
}

fn chance(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") }
}

/// What can be measured, and how.
pub(crate) fn list_text(scope: CostScope, style: Style) -> Vec<u8> {
    let lines = Lines::new(style);
    let mut text = Vec::new();
    for operation in scope.operations() {
        let label = format!("{:<20}  ", operation.name);
        let unit = format!("{} ({})", operation.does, operation.unit);
        // Writing to memory does not fail.
        let _ = lines.hanging(&mut text, &label, &unit);
    }
    text
}

/// The same for programs.
pub(crate) fn list_json(scope: CostScope) -> Vec<u8> {
    let about = |operation: &CostOperation| {
        serde_json::json!({
            "name": operation.name,
            "group": operation.group.name(),
            "unit": operation.unit,
            "bytes": operation.bytes,
            "fixed": operation.fixed,
            "does": operation.does,
        })
    };
    let all: Vec<_> = scope.operations().map(about).collect();
    format!("{:#}\n", serde_json::Value::from(all)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::COST_OPERATIONS;

    #[test]
    fn the_documentation_has_every_operation() {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cost.md")).unwrap();
        for CostOperation { name, unit, does, .. } in COST_OPERATIONS {
            let row = format!("| `{name}` | {unit} | {does} |\n");
            assert!(text.contains(&row), "docs/cost.md has to hold {row}");
        }
    }
}
