//! Costs of operations as a table; two configurations side by side; the list of operations.

use super::Section;
use crate::Style;
use crate::lines::Lines;
use crate::table::{Column, Table, UNKNOWN};
use analysis::cost::{CostComparison, CostSummary, OperationCost};
use analysis::wording::{count, duration, number, things};
use analysis::{CellSummary, RunSummary};
use model::CostScope;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// The measured cost cells of a run.
fn cells(summary: &RunSummary) -> Vec<(&CellSummary, &CostSummary)> {
    summary.cells.iter().filter_map(|cell| Some((cell, cell.cost.as_ref()?))).collect()
}

/// The costs of a run; `None` without any.
pub(crate) fn of(summary: &RunSummary) -> Option<Section> {
    let cells = cells(summary);
    let (table, mut notes) = match cells.as_slice() {
        [] => return None,
        [(_, only)] => of_one(only),
        _ => of_several(&cells),
    };
    let clock = cells.iter().map(|(_, cost)| cost.clock_ns).max().unwrap_or(0);
    notes.push(format!(
        "Time of one operation; every batch was timed by itself, and {clock} ns for reading the clock were subtracted."
    ));
    if cells.iter().any(|(cell, _)| cell.cell.kernel.is_virtual()) {
        notes.push("Of lab kernels, a ns is one instruction: so much work, not so much time.".to_owned());
    }
    Some(Section { title: "Cost of operations", table: Some(table), sentences: Vec::new(), notes })
}

/// Table of one cell: the distribution of each operation over its batches.
fn of_one(cost: &CostSummary) -> (Table, Vec<String>) {
    let [operation, each] = ["operation", "each"].map(Column::text);
    let [median, p99, worst, batches, of, rate] =
        ["median", "p99", "worst", "batches", "of", "MB/s"].map(Column::figure);
    let row = |one: &OperationCost| {
        let rate = one.mb_per_s.map_or_else(|| UNKNOWN.to_owned(), number);
        let [median, p99, worst] = [one.median_ns, one.p99_ns, one.worst_ns].map(duration);
        vec![one.name.clone(), median, p99, worst, one.unit.clone(), count(one.batches), count(one.per_batch), rate]
    };
    let mut rows: Vec<_> = cost.operations.iter().map(row).collect();
    let mut notes = vec!["p99, worst: of batches, divided by the operations in them.".to_owned()];
    if let Some(total_ns) = cost.total_ns {
        // Each operation has one batch of a fixed size.
        rows.iter_mut().for_each(|row| row.truncate(2));
        notes = vec![format!("The fixed amount of work took {}.", duration(total_ns))];
        return (Table::new(vec![operation, each], rows), notes);
    }
    (Table::new(vec![operation, median, p99, worst, each, batches, of, rate], rows), notes)
}

/// Table of several cells: medians side by side, and the increase over the first.
fn of_several(cells: &[(&CellSummary, &CostSummary)]) -> (Table, Vec<String>) {
    let names: Vec<String> = (1..=cells.len()).map(|n| format!("({n})")).collect();
    let notes = cells.iter().zip(&names).map(|((cell, _), name)| format!("{name} {}", cell.name)).collect();
    let find =
        |cost: &CostSummary, name: &str| cost.operations.iter().find(|one| one.name == name).map(|one| one.median_ns);
    let field = |first: Option<f64>, value: Option<f64>| match (first, value) {
        (_, None) => UNKNOWN.to_owned(),
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
    let figures = names.into_iter().map(Column::figure);
    (Table::new(std::iter::once(Column::text("operation")).chain(figures).collect(), rows), notes)
}

/// The answer of a run with costs only.
pub(crate) fn answer(summary: &RunSummary) -> String {
    let cells = cells(summary);
    let operations = cells.iter().map(|(_, cost)| cost.operations.len() as u64).max().unwrap_or(0);
    if operations == 0 {
        return "Nothing was measured.".to_owned();
    }
    let slowest = cells.iter().filter_map(|(cell, cost)| Some((cell, cost.total_ns?)));
    let slowest = slowest.max_by(|a, b| a.1.total_cmp(&b.1));
    match slowest {
        Some((cell, ns)) => format!("A fixed amount of work took up to {} ({}).", duration(ns), cell.name),
        None => {
            format!("{} measured. A cost has no verdict: compare two configurations.", things(operations, "operation"))
        }
    }
}

/// Writes two configurations side by side, operation by operation, and the answer.
///
/// # Errors
/// If writing to `out` fails.
pub fn compared(out: &mut dyn Write, comparison: &CostComparison, style: Style) -> io::Result<()> {
    let lines = Lines::new(style);
    let CostComparison { a, b, blocks, .. } = comparison;
    lines.heading(out, &format!("Cost of {b} against {a} ({})", things(*blocks, "block")))?;
    let columns = vec![
        Column::text("operation"),
        Column::figure("first"),
        Column::figure("second"),
        Column::text("change [95 %]"),
        Column::figure("p"),
        Column::text(""),
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
        let none = || UNKNOWN.to_owned();
        let change = group.change.to_string();
        rows.push(vec![name, none(), none(), change, chance(group.change.p), marked(group.is_different)]);
    }
    let table = Table::new(columns, rows).without_unknown().fitted(lines.width);
    table.lines().iter().try_for_each(|line| writeln!(out, "{line}"))?;
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

/// The available operations and their methods as text.
pub fn list_text(scope: CostScope, style: Style) -> Vec<u8> {
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

/// The available operations and their methods as JSON.
pub fn list_json(scope: CostScope) -> Vec<u8> {
    let all = scope.operations().map(|operation| serde_json::json!(operation));
    format!("{:#}\n", serde_json::Value::from_iter(all)).into_bytes()
}

#[cfg(test)]
mod tests {
    use model::{COST_OPERATIONS, CostOperation};

    #[test]
    fn the_documentation_has_every_operation() {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cost.md")).unwrap();
        for CostOperation { name, unit, does, .. } in COST_OPERATIONS {
            let row = format!("| `{name}` | {unit} | {does} |\n");
            assert!(text.contains(&row), "docs/cost.md has to hold {row}");
        }
    }
}
