//! Axes of the plan that vary over the cells of a page: columns of its tables.

use crate::cells::Member;
use crate::sections::latencies::{CONDITIONS, KERNEL};
use punctual_analysis::Origin;
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

/// The head of the column of second measurements.
pub(super) const REPEAT: &str = "A/A";

/// Whether tables have the rates of loads: kernels are comparable only with the same work.
pub(super) fn has_kernel_rates(members: &[Member<'_>], axes: &[Column]) -> bool {
    let has_load = |member: &Member<'_>| member.row.own().is_some_and(|cell| !cell.loads.is_empty());
    axes.iter().any(|axis| axis.head == KERNEL) && members.iter().any(has_load)
}

/// Returns the axes that vary; load and policy where none does. Imported measurements have names instead of axes.
pub(super) fn varying(members: &[Member<'_>]) -> Vec<Column> {
    let column =
        |head, value: &dyn Fn(&Member<'_>) -> String| Column { head, values: members.iter().map(value).collect() };
    if members.iter().any(|member| matches!(member.row.origin, Origin::Imported(..))) {
        return vec![column("measurement", &|member| member.name())];
    }
    let run = column("run", &|member| member.letter().map(String::from).unwrap_or_default());
    let conditions = CONDITIONS.into_iter().map(|(head, value)| column(head, &|member| value(&member.row)));
    let is_again = |member: &Member<'_>| member.row.own().is_some_and(|cell| cell.again);
    let again = column(REPEAT, &|member| if is_again(member) { "again".to_owned() } else { "first".to_owned() });
    let all = std::iter::once(run).chain(conditions).chain([again]);
    let (mut varying, mut others): (Vec<_>, Vec<_>) = all.partition(|column| column.distinct().len() > 1);
    others.retain(|column| ["load", "policy"].contains(&column.head));
    if varying.is_empty() {
        varying = others;
    }
    varying
}
