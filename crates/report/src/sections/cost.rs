//! Costs of operations as a table; two configurations side by side; the list of operations.

use super::Section;
use crate::Style;
use crate::lines::Lines;
use crate::table::{Column, Table, UNKNOWN};
use punctual_analysis::cost::{CostComparison, CostSummary, OperationCost, ratio};
use punctual_analysis::wording::{count, duration, number, things};
use punctual_analysis::{CellSummary, RunSummary};
use punctual_model::CostScope;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// The measured cost cells of a run.
fn cells(summary: &RunSummary) -> Vec<(&CellSummary, &CostSummary)> {
    summary.cells.iter().filter_map(|cell| Some((cell, cell.cost.as_ref()?))).collect()
}

/// The costs of a run; `None` without any. Those of the operations of loads are part of it beside cells of method
/// `cost`, and with `all`.
pub(crate) fn of(summary: &RunSummary, all: bool) -> Option<Section> {
    let mut cells = cells(summary);
    if all || !cells.is_empty() {
        cells.extend(summary.cells.iter().filter_map(|cell| Some((cell, cell.load_cost.as_ref()?))));
    }
    let (table, mut notes) = match cells.as_slice() {
        [] => return None,
        [(_, only)] => of_one(only),
        _ => of_several(&cells),
    };
    let clock = cells.iter().map(|(_, cost)| cost.clock_ns).max().unwrap_or(0);
    notes.push(format!(
        "Time of one operation; every batch was timed by itself, and {clock} ns for reading the clock were subtracted."
    ));
    if cells.iter().any(|(cell, _)| cell.cost.is_none()) {
        notes.push("Of a cell that measures latencies: the operations of its load meanwhile.".to_owned());
    }
    if cells.iter().any(|(cell, _)| cell.cell.kernel.is_virtual()) {
        notes.push("Of lab kernels, a ns is one instruction: so much work, not so much time.".to_owned());
    }
    Some(Section { title: "Cost of operations", table: Some(table), sentences: Vec::new(), notes })
}

/// A cell whose load timed its operations, and the costs.
type LoadCost<'a> = (&'a CellSummary, &'a CostSummary);

/// A row for each cell whose load timed its operations: their change against a cell of method `cost`.
pub(crate) fn of_loads(summary: &RunSummary) -> Option<Section> {
    let cells: Vec<LoadCost<'_>> =
        summary.cells.iter().filter_map(|cell| Some((cell, cell.load_cost.as_ref()?))).collect();
    if cells.is_empty() {
        return None;
    }
    let percent =
        |percent: Option<f64>| percent.map_or_else(|| UNKNOWN.to_owned(), |percent| format!("{percent:+.1} %"));
    let row = |(cell, cost): &LoadCost<'_>| {
        let change = cell.load_cost_change.as_ref();
        let operations = change.map_or(cost.operations.len() as u64, |change| change.operations);
        vec![
            cell.name.clone(),
            change.map_or_else(|| UNKNOWN.to_owned(), |change| change.against.clone()),
            count(operations),
            percent(change.map(|change| change.medians_percent)),
            percent(change.map(|change| change.means_percent)),
        ]
    };
    let columns = vec![
        Column::text("operations of the load of"),
        Column::text("against"),
        Column::figure("operations"),
        Column::figure("medians"),
        Column::figure("means"),
    ];
    let table = Table::new(columns, cells.iter().map(row).collect());
    let notes = if cells.iter().any(|(cell, _)| cell.load_cost_change.is_some()) {
        "Change of the geometric mean of all operations against the method cost on the same kernel; none where one had \
         no turn. Means include the time \
         of interrupts, of the measured thread and of other parts of the load; medians mostly do not."
    } else {
        "The load timed its operations (JSON: load_cost; each: punctual show --all). Add the method cost on the same kernel \
         to see their change."
    };
    let title = "Cost of operations meanwhile";
    Some(Section { title, table: Some(table), sentences: Vec::new(), notes: vec![notes.to_owned()] })
}

/// One situation: what is measured, and the load.
type Situation = (String, String);

/// The change of each kernel against the first in the same situation, and of the first kernel against its first
/// situation; `None` with a single kernel, or where no load timed its operations.
pub(crate) fn by_kernel(summary: &RunSummary) -> Option<Section> {
    let of_cell = |cell: &CellSummary| -> Situation {
        let cell = &cell.cell;
        let measured = cell.conditions.prepare.after([cell.task.to_string(), cell.policy.to_string()], "/");
        (measured, cell.load.label().to_string())
    };
    let costs =
        || summary.cells.iter().filter_map(|cell| Some((cell, cell.cost.as_ref().or(cell.load_cost.as_ref())?)));
    let (mut kernels, mut situations) = (Vec::new(), Vec::new());
    for (cell, _) in costs().filter(|(_, cost)| cost.total_ns.is_none()) {
        if !kernels.contains(&&cell.cell.kernel) {
            kernels.push(&cell.cell.kernel);
        }
        if !situations.contains(&of_cell(cell)) {
            situations.push(of_cell(cell));
        }
    }
    let is_meanwhile = summary.cells.iter().any(|cell| cell.load_cost.is_some());
    if kernels.len() < 2 || !is_meanwhile {
        return None;
    }
    let find = |kernel: &punctual_model::Kernel, situation: &Situation| {
        let mut alike = costs().filter(|(cell, _)| cell.cell.kernel == *kernel && of_cell(cell) == *situation);
        alike.next().map(|(_, cost)| cost)
    };
    let changed = |first: Option<&CostSummary>, second: Option<&CostSummary>| {
        let percent = |of: fn(&OperationCost) -> f64| Some(100.0 * (ratio(first?, second?, of)? - 1.0));
        let both = percent(|one| one.mean_ns).zip(percent(|one| one.median_ns));
        both.map_or_else(|| UNKNOWN.to_owned(), |(mean, median)| format!("{mean:+.1} ({median:+.1}) %"))
    };
    let row = |situation: &Situation| {
        let (task, load) = situation;
        let first = find(kernels.first()?, situation);
        let plain = situations.first().and_then(|plain| find(kernels.first()?, plain));
        let mut fields = vec![task.clone(), load.clone(), changed(plain, first)];
        fields.extend(kernels.iter().skip(1).map(|kernel| changed(first, find(kernel, situation))));
        Some(fields)
    };
    let mut columns = vec![Column::text("measured"), Column::text("load")];
    columns.extend(kernels.iter().map(|kernel| Column::figure(kernel.to_string())));
    let notes = "Change of the geometric mean of all operations by their means (by their medians): of the first kernel \
                 against its first line, of the others against the first kernel in the same line.";
    Some(Section {
        title: "Cost of operations by kernel",
        table: Some(Table::new(columns, situations.iter().filter_map(row).collect())),
        sentences: Vec::new(),
        notes: vec![notes.to_owned()],
    })
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
    let known =
        punctual_model::COST_OPERATIONS.iter().map(|operation| operation.name).filter(|name| measured.contains(name));
    let mut rows: Vec<_> =
        known.map(|name| row(name, cells.iter().map(|(_, cost)| find(cost, name)).collect())).collect();
    if cells.iter().any(|(_, cost)| cost.total_ns.is_some()) {
        rows.push(row("total", cells.iter().map(|(_, cost)| cost.total_ns).collect()));
    }
    let figures = names.into_iter().map(Column::figure);
    (Table::new(std::iter::once(Column::text("operation")).chain(figures).collect(), rows), notes)
}

/// Writes two configurations side by side, operation by operation, and the answer.
pub fn compared(out: &mut dyn Write, comparison: &CostComparison, style: Style) -> io::Result<()> {
    let lines = Lines::new(style);
    let CostComparison { a, b, blocks, .. } = comparison;
    lines.answer(out, &comparison.answer())?;
    lines.paragraph(out, "", &format!("Cost of {b} against {a} ({})", things(*blocks, "block")))?;
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
