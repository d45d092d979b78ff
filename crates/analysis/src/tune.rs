//! Effects of settings ("knobs") on the latency: a screening of all together, then a confirmation.
//!
//! The screening measures a two-level design in random order within blocks ([`crate::factorial`]). Settings with a hint
//! of an effect are then measured in fresh blocks, each alone against the machine as it is. Only this second experiment
//! gives names: the first one selected them, and whatever is selected by its size looks larger than it is.

mod answer;
mod disturbance;
mod headline;
mod knob_answer;
mod price;
mod screening;
mod sentence;

pub use answer::{Added, Tuned, TunedKnob, tuned};
pub use disturbance::Disturbance;
pub use knob_answer::{ConfirmedKnob, KnobAnswer};
pub use price::Number;
pub use screening::{ByValue, RatioOfRuns, Screened, ScreenedKnob, ScreenedPair, screened};

use crate::factorial::Design;
use punctual_model::{Entry, Knob};

/// Adjusted p-value of the screening up to which a knob is measured again. It is generous: the confirmation decides.
const CANDIDATE_P: f64 = 0.3;

/// The levels of every knob in each run of the screening; `None` without knobs, or with more than [`Knob::MOST`].
pub fn design(knobs: &[Knob]) -> Option<Design> {
    Design::of(knobs.len())
}

/// The value of every knob in each cell of the confirmation: the machine as it is, each other value of each of
/// `candidates` alone, and all of them together, each at its last value, if there are several.
pub fn confirmation<'a>(knobs: &'a [Knob], candidates: &[usize]) -> Vec<Vec<&'a str>> {
    let as_is = || knobs.iter().map(|knob| knob.as_is.as_str()).collect::<Vec<_>>();
    let alone = |(knob, value): (usize, &'a str)| {
        let mut values = as_is();
        values.iter_mut().skip(knob).take(1).for_each(|one| *one = value);
        values
    };
    let is_candidate = |index: usize| candidates.contains(&index);
    let together = || knobs.iter().enumerate().map(|(index, knob)| knob.value(is_candidate(index))).collect();
    let together = (candidates.len() > 1).then(together);
    std::iter::once(as_is()).chain(confirmed_values(knobs, candidates).into_iter().map(alone)).chain(together).collect()
}

/// The values that are confirmed, each with the position of its knob, in the order of their cells.
fn confirmed_values<'a>(knobs: &'a [Knob], candidates: &[usize]) -> Vec<(usize, &'a str)> {
    let others = |index: usize| knobs.get(index).map(|knob| knob.others().map(move |value| (index, value)));
    candidates.iter().copied().filter_map(others).flatten().collect()
}

/// Blocks of a confirmation without which an effect cannot be shown: with every block in one direction, the p-value of
/// the signed-rank test is 2 of 2^blocks, and it is adjusted for the number of values and of looks.
pub fn least_blocks(knobs: &[Knob], candidates: &[usize], looks: u32) -> u32 {
    let tests = u32::try_from(confirmed_values(knobs, candidates).len()).unwrap_or(u32::MAX).saturating_mul(looks);
    (6..=40).find(|blocks| 2.0 * f64::from(tests) / 2f64.powi(*blocks) < 0.05).map_or(40, i32::unsigned_abs)
}

/// Mean time of a block, s, from the starts of its measurements; `None` in virtual time, where an answer is independent
/// of the machine that computes it.
fn block_seconds(entries: &[Entry]) -> Option<f64> {
    if entries.iter().any(|entry| entry.record.cell.kernel.is_virtual()) {
        return None;
    }
    let starts = || entries.iter().map(|entry| entry.record.started_unix_ms);
    let (first, last) = (starts().min()?, starts().max()?);
    let cells = entries.iter().map(|entry| entry.planned.cell_index).max()? + 1;
    let each = last.saturating_sub(first) as f64 / 1e3 / entries.len().saturating_sub(1).max(1) as f64;
    (each > 0.0).then_some(each * cells as f64)
}

/// Settings for tests.
#[cfg(test)]
fn knobs(n: usize) -> Vec<Knob> {
    let knob = |n: usize| Knob::of(format!("prepare.k{n}"), vec!["leave".into(), "on".into()]).unwrap();
    (0..n).map(knob).collect()
}
