//! The cells of all runs in one list, own and imported ones, and their pictures.

use crate::Results;
use punctual_analysis::{Curves, Level, Row};
use punctual_model::Order;
use std::cmp::Reverse;
use std::collections::HashSet;

/// The most cells with pictures: of more, those with the largest p99.9 and those with the largest maximum, half and
/// half. A page with more pictures is too large to open.
pub(super) const PICTURED: usize = 200;

/// A cell of a run.
#[derive(Debug)]
pub(super) struct Member<'a> {
    /// Its number in the page, from 1.
    pub(super) id: usize,
    /// Index of its run.
    run: usize,
    /// Index among the cells of its run.
    index: usize,
    /// Letter of its run, where there are several.
    letter: Option<char>,
    /// Its numbers.
    pub(super) row: Row<'a>,
    /// The data of its pictures; `None` without pictures.
    pub(super) curves: Option<Curves>,
}

impl Member<'_> {
    /// Letter of its run, on a page of several.
    pub(super) fn letter(&self) -> Option<char> {
        self.letter
    }

    /// Its name on the page.
    pub(super) fn name(&self) -> String {
        self.letter.map_or_else(|| self.row.name.to_owned(), |letter| format!("{letter} {}", self.row.name))
    }

    /// Whether it was measured.
    pub(super) fn is_measured(&self) -> bool {
        self.row.own().is_none_or(|cell| cell.blocks > 0)
    }

    /// The unit that its histograms are numbered by.
    pub(super) fn of_number(&self) -> &'static str {
        if self.is_by_thread() { "thread" } else { "CPU" }
    }

    /// Whether its histograms are of threads on unknown CPUs.
    pub(super) fn is_by_thread(&self) -> bool {
        self.row.cpus.is_none()
    }
}

/// All cells, with the curves of those that have pictures.
pub(super) fn members<'a>(runs: &'a [Results<'a>]) -> Vec<Member<'a>> {
    let mut members: Vec<Member<'a>> = Vec::new();
    for (run, shown) in runs.iter().enumerate() {
        let letter = letter(runs, run);
        for (index, row) in shown.rows().into_iter().enumerate() {
            members.push(Member { id: members.len() + 1, run, index, letter, row, curves: None });
        }
    }
    let pictured = pictured(&members);
    for (run, shown) in runs.iter().enumerate() {
        let is_wanted = |member: &Member<'_>| member.run == run && pictured.contains(&member.id);
        let wanted = members.iter().filter(|member| is_wanted(member)).map(|member| member.index).collect();
        let mut drawn = shown.curves(&wanted);
        for member in members.iter_mut().filter(|member| member.run == run) {
            member.curves = drawn.remove(&member.index);
        }
    }
    // Costs of operations have a table of their own.
    members.retain(|member| member.row.has_latencies());
    members
}

/// A remark on virtual time for axes, which all cells share; empty without it.
pub(super) fn virtually(members: &[Member<'_>]) -> &'static str {
    match members.iter().filter(|member| member.row.is_virtual()).count() {
        0 => "",
        n if n == members.len() => ", virtual time",
        _ => ", of lab kernels in virtual time",
    }
}

/// Returns the letter that identifies a run on a page of several; `None` where there is one.
pub(super) fn letter(runs: &[Results<'_>], index: usize) -> Option<char> {
    let letter = u8::try_from(index).ok().and_then(|index| b'A'.checked_add(index)).filter(u8::is_ascii_uppercase);
    (runs.len() > 1).then(|| letter.map_or('?', char::from))
}

/// The numbers of the cells with pictures.
fn pictured(members: &[Member<'_>]) -> HashSet<usize> {
    let mut measured: Vec<_> = members.iter().filter(|member| member.is_measured()).collect();
    if measured.len() <= PICTURED {
        return measured.iter().map(|member| member.id).collect();
    }
    measured.order_by_key(|member| Reverse(member.row.quantiles.at(Level::P999).value_ns()));
    let mut chosen: HashSet<usize> = measured.iter().take(PICTURED / 2).map(|member| member.id).collect();
    measured.order_by_key(|member| Reverse(member.row.max_ns));
    let room = PICTURED - chosen.len();
    let others: Vec<_> = measured.iter().map(|member| member.id).filter(|id| !chosen.contains(id)).take(room).collect();
    chosen.extend(others);
    chosen
}
