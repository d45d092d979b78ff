//! The cells of all runs in one list, and which of them have pictures.

use super::Shown;
use analysis::{CellSummary, Curves, Level, curves};
use std::cmp::Reverse;
use std::collections::HashSet;

/// Cells with pictures; of more, those with the largest p99.9 and those with the largest maximum, half and half. A page
/// with more pictures would be opened by nobody.
pub(super) const PICTURED: usize = 200;

/// A cell of a run.
#[derive(Debug)]
pub(super) struct Member<'a> {
    /// Its number in the page, from 1.
    pub(super) id: usize,
    pub(super) run: &'a Shown<'a>,
    /// Index among the cells of its run.
    pub(super) index: usize,
    /// Which run, where there are several.
    pub(super) letter: Option<char>,
    pub(super) summary: &'a CellSummary,
    /// What pictures are drawn from; `None` for one that has none.
    pub(super) curves: Option<Curves>,
}

impl Member<'_> {
    /// What the page calls it.
    pub(super) fn name(&self) -> String {
        self.letter.map_or_else(|| self.summary.name.clone(), |letter| format!("{letter} {}", self.summary.name))
    }
}

/// All cells, with the curves of those that have pictures.
pub(super) fn members<'a>(runs: &'a [Shown<'a>]) -> Vec<Member<'a>> {
    let mut members: Vec<Member<'a>> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let letter = super::letter(runs, index);
        for (cell, summary) in run.summary.cells.iter().enumerate() {
            members.push(Member { id: members.len() + 1, run, index: cell, letter, summary, curves: None });
        }
    }
    let pictured = pictured(&members);
    for run in runs {
        let own = |member: &Member<'_>| std::ptr::eq(member.run, run);
        let ids: Vec<_> = members.iter().filter(|member| own(member)).map(|member| member.id).collect();
        let mut drawn = curves(run.header, run.entries, |index| ids.get(index).is_some_and(|id| pictured.contains(id)));
        for member in members.iter_mut().filter(|member| own(member)) {
            member.curves = drawn.remove(&member.index);
        }
    }
    members
}

/// The numbers of the cells with pictures.
fn pictured(members: &[Member<'_>]) -> HashSet<usize> {
    let mut measured: Vec<_> = members.iter().filter(|member| member.summary.blocks > 0).collect();
    if measured.len() <= PICTURED {
        return measured.iter().map(|member| member.id).collect();
    }
    measured.sort_by_key(|member| Reverse(member.summary.quantiles.at(Level::P999).value_ns()));
    let mut chosen: HashSet<usize> = measured.iter().take(PICTURED / 2).map(|member| member.id).collect();
    measured.sort_by_key(|member| Reverse(member.summary.max.map(|max| max.latency_ns)));
    let room = PICTURED - chosen.len();
    let others: Vec<_> = measured.iter().map(|member| member.id).filter(|id| !chosen.contains(id)).take(room).collect();
    chosen.extend(others);
    chosen
}
