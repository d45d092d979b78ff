//! Axes of the plan that vary over the cells of a page: columns of its tables.

use crate::cells::Member;
use analysis::Origin;
use analysis::wording::duration;
use model::ImportedLoad;
use std::collections::HashSet;

/// An axis and its value in each cell, in the order of the cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) head: &'static str,
    pub(super) values: Vec<String>,
}

impl Column {
    /// Returns the distinct values, in order of first appearance.
    pub(super) fn distinct(&self) -> Vec<&str> {
        let mut seen = HashSet::new();
        self.values.iter().map(String::as_str).filter(|value| seen.insert(*value)).collect()
    }
}

/// The head of the column of kernels.
const KERNEL: &str = "kernel";

/// The head of the column of second measurements.
pub(super) const REPEAT: &str = "A/A";

/// An axis: its name, and its value in a cell.
type Axis = (&'static str, fn(&Member<'_>) -> String);

/// Axes in the order of columns.
const AXES: [Axis; 8] = [
    ("run", |member| member.letter().map(String::from).unwrap_or_default()),
    (KERNEL, |member| member.row.own().map(|cell| cell.cell.kernel.to_string()).unwrap_or_default()),
    ("load", |member| member.row.load.as_ref().map(ImportedLoad::label).unwrap_or_default()),
    ("policy", |member| member.row.policy.clone().unwrap_or_default()),
    ("period", |member| member.row.period.map(|period| duration(period.ns() as f64)).unwrap_or_default()),
    ("method", |member| member.row.method.clone().unwrap_or_default()),
    ("prepare", |member| member.row.own().map(|cell| cell.cell.conditions.prepare.to_string()).unwrap_or_default()),
    (REPEAT, |member| {
        let is_again = member.row.own().is_some_and(|cell| cell.again);
        if is_again { "again".to_owned() } else { "first".to_owned() }
    }),
];

/// Whether tables have the rates of loads: kernels are comparable only with the same work.
pub(super) fn has_kernel_rates(members: &[Member<'_>], axes: &[Column]) -> bool {
    let has_load = |member: &Member<'_>| member.row.own().is_some_and(|cell| !cell.loads.is_empty());
    axes.iter().any(|axis| axis.head == KERNEL) && members.iter().any(has_load)
}

/// Returns the axes that vary; load and policy where none does. Imported measurements have names instead of axes.
pub(super) fn varying(members: &[Member<'_>]) -> Vec<Column> {
    let column = |(head, value): &Axis| Column { head, values: members.iter().map(value).collect() };
    if members.iter().any(|member| matches!(member.row.origin, Origin::Imported(..))) {
        return vec![column(&("measurement", |member| member.name()))];
    }
    let varying: Vec<_> = AXES.iter().map(column).filter(|column| column.distinct().len() > 1).collect();
    if !varying.is_empty() {
        return varying;
    }
    AXES.iter().filter(|(head, _)| ["load", "policy"].contains(head)).map(column).collect()
}
