//! Order of two configurations in time, and differences between their machines.

use super::{Arm, MIN_BLOCKS, MIN_OF_EACH, Refusal, count};
use crate::comparison::comparability::{self, Difference, Role};
use crate::machine::config::{Likeness, compare_summaries};
use punctual_model::{Entry, Kernel};
use std::collections::BTreeSet;

/// Position of the measurements of both in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// Whether each block ended before the next began, so that drift affects both alike.
    pub(super) in_turn: bool,
    /// Number of blocks in which the first was measured first.
    pub(super) a_first: usize,
}

impl Layout {
    /// Layout of pairs, which are in the order of time.
    pub(super) fn of(pairs: &[(&Entry, &Entry)]) -> Layout {
        let start = |entry: &Entry| entry.record.started_unix_ms;
        let end = |entry: &Entry| start(entry).saturating_add(entry.record.measured.ns() / 1_000_000);
        let is_over = |(a, b): &(&Entry, &Entry), (next_a, next_b): &(&Entry, &Entry)| {
            end(a).max(end(b)) <= start(next_a).min(start(next_b))
        };
        Layout {
            in_turn: pairs.windows(2).all(|two| is_over(&two[0], &two[1])),
            a_first: pairs.iter().filter(|(a, b)| start(a) < start(b)).count(),
        }
    }
}

/// Reason for which the measurements cannot answer, if any. `force` accepts pairs that are separate, or of something
/// else.
pub(super) fn refusal(
    pairs: &[(&Entry, &Entry)],
    layout: &Layout,
    differences: &[Difference],
    force: bool,
) -> Option<Refusal> {
    let boots = boots(pairs);
    match () {
        () if !force && differences.iter().any(|one| one.role == Role::Prevents) => Some(Refusal::Incomparable),
        () if pairs.len() < MIN_BLOCKS => Some(Refusal::FewBlocks { blocks: count(pairs.len()) }),
        () if force => None,
        () if !layout.in_turn => Some(Refusal::Separate),
        () => boots.filter(|boots| *boots < super::MIN_BOOTS).map(|boots| Refusal::FewBoots { boots: count(boots) }),
    }
}

/// Number of boots of the configuration with fewer, if no boot has both; `None` if one has, or if boots are unknown.
fn boots(pairs: &[(&Entry, &Entry)]) -> Option<usize> {
    let of = |entries: &mut dyn Iterator<Item = &Entry>| -> Option<BTreeSet<String>> {
        entries.map(|entry| entry.record.host_before.boot_id.clone()).collect()
    };
    let a = of(&mut pairs.iter().map(|(a, _)| *a))?;
    let b = of(&mut pairs.iter().map(|(_, b)| *b))?;
    a.is_disjoint(&b).then(|| a.len().min(b.len()))
}

/// Differences of both, each with the values of the first block in which it occurs. Without a block that holds both,
/// their first measurements are compared.
pub(super) fn differences(pairs: &[(&Entry, &Entry)], arms: [&Arm<'_>; 2], asked: &[&str]) -> Vec<Difference> {
    let [a, b] = arms.map(|arm| arm.entries.first().copied());
    let instead = a.zip(b).filter(|_| pairs.is_empty());
    let mut all: Vec<Difference> = Vec::new();
    for (a, b) in pairs.iter().copied().chain(instead) {
        let (a, b) = (&a.record, &b.record);
        let found = comparability::differences((&a.cell, &a.host_before), (&b.cell, &b.host_before), asked);
        let is_new = |one: &Difference| all.iter().all(|known| known.fact != one.fact);
        let new: Vec<Difference> = found.into_iter().filter(is_new).collect();
        all.extend(new);
    }
    all
}

/// Whether the kernels of the guests of both are built alike; `None` where a configuration is unknown, or both are one
/// kernel.
pub(super) fn likeness(arms: [&Arm<'_>; 2]) -> Option<Likeness> {
    let of = |arm: &Arm<'_>| {
        let record = &arm.entries.first()?.record;
        let Kernel::Lab(kernel) = &record.cell.kernel else { return None };
        let lab = record.lab.as_ref()?;
        Some((lab.config.clone()?, kernel.words(), lab.kernel_hash.clone()))
    };
    let ((a, a_words, a_hash), (b, b_words, b_hash)) = (of(arms[0])?, of(arms[1])?);
    let is_one = a_hash == b_hash && a_words == b_words;
    (!is_one).then(|| compare_summaries((&a, &a_words), (&b, &b_words)))
}

/// Factor by which each measurement has to be longer to have enough wake-ups above the quantile; `None` if unknown.
pub(super) fn times_as_long(have: u64, need: u64) -> Option<f64> {
    (have > 0 && need == MIN_OF_EACH).then(|| need as f64 / have as f64)
}
