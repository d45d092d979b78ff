//! Effects of settings ("knobs") on the latency: a screening of all together, then a confirmation.
//!
//! The screening measures a two-level design in random order within blocks ([`crate::factorial`]). Settings with a hint
//! of an effect are then measured in fresh blocks, each alone against the machine as it is. Only this second experiment
//! gives names: the first one selected them, and whatever is selected by its size looks larger than it is.

mod answer;
mod screening;

pub use answer::{ConfirmedKnob, KnobAnswer, Tuned, TunedKnob, tuned};
pub use screening::{Screened, ScreenedKnob, ScreenedPair, screened};

use crate::factorial::Design;
use model::Knob;

/// Adjusted p-value of the screening up to which a knob is measured again. It is generous: the confirmation decides.
const CANDIDATE_P: f64 = 0.3;

/// The levels of every knob in each run of the screening; `None` without knobs, or with more than [`Knob::MOST`].
#[must_use]
pub fn design(knobs: &[Knob]) -> Option<Design> {
    Design::of(knobs.len())
}

/// The levels of every knob in each cell of the confirmation: the machine as it is, each of `candidates` alone, and all
/// of them together if there are several.
#[must_use]
pub fn confirmation(knobs: &[Knob], candidates: &[usize]) -> Vec<Vec<bool>> {
    let levels = |changed: &[usize]| (0..knobs.len()).map(|knob| changed.contains(&knob)).collect::<Vec<_>>();
    let alone = candidates.iter().map(|knob| levels(&[*knob]));
    let together = (candidates.len() > 1).then(|| levels(candidates));
    std::iter::once(levels(&[])).chain(alone).chain(together).collect()
}

/// Settings for tests.
#[cfg(test)]
fn knobs(n: usize) -> Vec<Knob> {
    let knob = |n: usize| Knob { key: format!("prepare.k{n}"), as_is: "leave".into(), changed: "on".into() };
    (0..n).map(knob).collect()
}
