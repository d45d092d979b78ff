//! The answer for each knob, from the screening and the confirmation.

use super::disturbance::{Disturbance, disturbances};
use super::knob_answer::{ConfirmedKnob, KnobAnswer};
use super::screening::{Screened, ScreenedKnob};
use super::sentence::sentence;
use super::{confirmed_values, price};
use crate::comparison::{Arm, Metric, Question, Ratio, compare, default_margin, ratio_of};
use crate::stats::paired::{blocks_needed, deviation, holm};
use crate::wording::number;
use punctual_model::{Entry, Knob, Level};
use serde::Serialize;

/// Chance of naming any knob that does nothing.
const LEVEL: f64 = 0.05;

/// Ratio below which a certain effect is still none that anybody would change a setting for.
const SMALL: f64 = 1.02;

/// Answers for all knobs.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Tuned {
    /// The screening.
    pub screening: Screened,
    /// Answers in the order of the knobs; of a candidate with several other values, one for each of them.
    pub knobs: Vec<TunedKnob>,
    /// Blocks of the confirmation; 0 without one.
    pub confirmation_blocks: u64,
    /// Planned number of looks at the confirmation, over all of which intervals and p-values hold.
    pub looks: u32,
    /// All candidates changed together, each to its last value; `null` unless there were several.
    pub together: Option<ConfirmedKnob>,
    /// All candidates together against the best of them alone; `null` unless several were confirmed to be better.
    pub added: Option<Added>,
    /// Settings that another program changed meanwhile.
    pub disturbances: Vec<Disturbance>,
}

/// Answer for one knob and one other value of it.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TunedKnob {
    /// The knob, with the other value that the answer is about.
    #[serde(flatten)]
    pub knob: Knob,
    /// Its effect in the screening, which changes it to its last value.
    pub screened: ScreenedKnob,
    /// Its effect in the confirmation; `null` if it was no candidate, or the confirmation has too few blocks.
    pub confirmed: Option<ConfirmedKnob>,
    /// The answer.
    pub answer: KnobAnswer,
    /// The answer in words.
    pub sentence: String,
}

/// What the other settings add to the best one: one that acts alone may do nothing beside another.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Added {
    /// Key of the setting with the lowest confirmed ratio.
    pub best: String,
    /// The number with all candidates changed, divided by that with this one changed alone.
    pub ratio: Ratio,
    /// The same in words.
    pub sentence: String,
}

impl Tuned {
    /// What is advised: for each key the value that was confirmed to be better; of several, that with the lowest ratio.
    pub fn advised(&self) -> Vec<&TunedKnob> {
        let ratio = |knob: &TunedKnob| knob.confirmed.as_ref().and_then(|confirmed| confirmed.ratio);
        let mut advised: Vec<&TunedKnob> = Vec::new();
        for knob in self.knobs.iter().filter(|knob| knob.answer == KnobAnswer::Better) {
            match advised.iter_mut().find(|other| other.knob.key == knob.knob.key) {
                Some(other) => {
                    let is_lower = ratio(knob).zip(ratio(other)).is_some_and(|(a, b)| a.value < b.value);
                    *other = if is_lower { knob } else { *other };
                }
                None => advised.push(knob),
            }
        }
        advised
    }

    /// The advised setting with the lowest ratio, if several are advised.
    fn best_of_several(&self) -> Option<&TunedKnob> {
        let ratio = |knob: &TunedKnob| knob.confirmed.as_ref().and_then(|confirmed| confirmed.ratio);
        let value = |knob: &TunedKnob| ratio(knob).map_or(f64::INFINITY, |ratio| ratio.value);
        let advised = self.advised();
        advised.iter().min_by(|a, b| value(a).total_cmp(&value(b))).copied().filter(|_| advised.len() > 1)
    }

    /// Whether each candidate of the confirmation has an answer, so that further blocks add nothing.
    pub fn is_decided(&self) -> bool {
        self.knobs
            .iter()
            .filter(|knob| knob.screened.is_candidate)
            .all(|knob| knob.confirmed.is_some() && !matches!(knob.answer, KnobAnswer::Undecided { .. }))
    }
}

/// The answers, from the screening with its entries, and from the entries of a confirmation whose cells are
/// [`super::confirmation`] of its candidates. They hold over this planned number of `looks` at the confirmation.
pub fn tuned(knobs: &[Knob], screening: Screened, screened: &[Entry], confirmation: &[Entry], looks: u32) -> Tuned {
    let candidates = screening.candidates();
    let values = confirmed_values(knobs, &candidates);
    let arm = |cell: usize| {
        let entries = confirmation.iter().filter(|entry| entry.planned.cell_index == cell).collect();
        Arm { name: cell.to_string(), entries }
    };
    // Misses beside a maximum need the fewest wake-ups beside the median.
    let level = if let Metric::Quantile(level) = screening.metric { level } else { Level::P50 };
    // What the knobs change is what is asked for, whatever it is.
    let asked = punctual_model::Selector::AXES;
    let question = Question { metric: Some(level), force: true, asked, looks, ..Question::default() };
    let as_is = arm(0);
    let effect_of = |cell: usize| {
        let changed = arm(cell);
        Effect::of(screening.metric, &as_is, &changed, &question)
    };
    let effects = adjusted((1..=values.len()).map(effect_of).collect());
    let disturbances = disturbances(knobs, screened, confirmation);
    let block_seconds = super::block_seconds(confirmation);
    let row = |index: usize, knob: Knob, screened: &ScreenedKnob, at: Option<usize>| {
        let effect = at.and_then(|at| effects.get(at));
        let is_disturbed = |one: &Disturbance| {
            one.knobs.contains(&index) || at.is_some_and(|at| one.cells.contains(&(at + 1)) || one.cells.contains(&0))
        };
        let answer = match effect {
            _ if disturbances.iter().any(is_disturbed) => KnobAnswer::Disturbed,
            Some(effect) => effect.answer(screening.metric, block_seconds),
            None => of_screened(screened, &screening),
        };
        let confirmed = effect.map(|effect| effect.confirmed.clone());
        let beside = screening.acting_with(index).filter_map(|other| knobs.get(other));
        let sentence = sentence(&knob, screened, confirmed.as_ref(), answer, screening.metric, beside);
        TunedKnob { knob, screened: *screened, confirmed, answer, sentence }
    };
    let mut rows = Vec::new();
    for (index, (knob, screened)) in knobs.iter().zip(&screening.knobs).enumerate() {
        let of_knob = values.iter().enumerate().filter(|(_, (candidate, _))| *candidate == index);
        let before = rows.len();
        rows.extend(of_knob.map(|(at, (_, value))| row(index, knob.with(value), screened, Some(at))));
        if rows.len() == before {
            rows.push(row(index, knob.with(&knob.changed), screened, None));
        }
    }
    let together = (candidates.len() > 1).then(|| effect_of(values.len() + 1).confirmed);
    let confirmation_blocks = effects.first().map_or(0, |effect| effect.blocks);
    let mut tuned = Tuned { knobs: rows, confirmation_blocks, looks, together, added: None, disturbances, screening };
    let added = |best: &TunedKnob| {
        let is_best = |(index, value): &(usize, &str)| {
            *value == best.knob.changed && knobs.get(*index).is_some_and(|knob| knob.key == best.knob.key)
        };
        let alone = arm(values.iter().position(is_best)? + 1);
        let (ratio, _) = ratio_of(tuned.screening.metric, &alone, &arm(values.len() + 1), &question);
        Some(Added::of(&best.knob, ratio?, tuned.screening.metric))
    };
    tuned.added = tuned.best_of_several().and_then(added);
    tuned
}

/// The effects with p-values for all of them together.
fn adjusted(effects: Vec<Effect>) -> Vec<Effect> {
    let raw: Vec<f64> = effects.iter().map(|effect| effect.confirmed.ratio.map_or(1.0, |ratio| ratio.p)).collect();
    effects.into_iter().zip(holm(&raw)).map(|(effect, p)| effect.with(p)).collect()
}

impl Added {
    fn of(best: &Knob, ratio: Ratio, metric: Metric) -> Added {
        let Knob { key, changed, .. } = best;
        let (low, high) = ratio.interval;
        let times = format!("{} times [{}-{}]", number(ratio.value), number(low), number(high));
        let so = match () {
            () if high < 1.0 => "together they are better",
            () if low > 1.0 => "together they are worse",
            () => "no further improvement by the others is shown; leave out those that have a price",
        };
        let sentence = format!("All together against {key} = {changed} alone: {metric} {times}; {so}");
        Added { best: key.clone(), ratio, sentence }
    }
}

/// The effect of one change in the confirmation.
struct Effect {
    confirmed: ConfirmedKnob,
    blocks: u64,
    /// Standard deviation of the logarithm of the ratio within a block.
    deviation: Option<f64>,
}

impl Effect {
    fn of(metric: Metric, as_is: &Arm<'_>, changed: &Arm<'_>, question: &Question<'_>) -> Effect {
        let comparison = compare(as_is, changed, None, question);
        let (ratio, of_blocks) = ratio_of(metric, as_is, changed, question);
        let misses = comparison.secondary.iter().find(|other| other.metric == Metric::Misses);
        let rises = |misses: &&crate::comparison::Measured| {
            misses.differs() && misses.ratio.is_some_and(|ratio| ratio.value > 1.0)
                || misses.a == Some(0.0) && misses.b.is_some_and(|b| b >= 1.0)
        };
        let confirmed = ConfirmedKnob {
            ratio,
            has_more_misses: misses.filter(rises).is_some(),
            loads: comparison.loads.clone(),
            power_mw: price::power_mw(&as_is.entries, &changed.entries),
            wake_ups: price::wake_ups(&as_is.entries, &changed.entries),
        };
        let differences: Vec<f64> = of_blocks.iter().map(|ratio| ratio.ln()).collect();
        Effect { confirmed, blocks: comparison.blocks, deviation: deviation(&differences) }
    }

    /// The same with an adjusted p-value.
    fn with(mut self, p: f64) -> Effect {
        self.confirmed.ratio = self.confirmed.ratio.map(|ratio| Ratio { p, ..ratio });
        self
    }

    fn answer(&self, metric: Metric, block_seconds: Option<f64>) -> KnobAnswer {
        let margin = default_margin(metric);
        let undecided = || {
            let needed = self.deviation.and_then(|deviation| blocks_needed(deviation, margin.ln()));
            let blocks_needed = needed.filter(|needed| *needed > self.blocks);
            KnobAnswer::Undecided { blocks_needed, seconds_needed: seconds(blocks_needed, block_seconds) }
        };
        let Some(ratio) = self.confirmed.ratio else { return undecided() };
        let is_sure = ratio.p < LEVEL && ratio.excludes_one();
        match () {
            () if is_sure && !ratio.is_within(SMALL) => match () {
                () if ratio.value > 1.0 => KnobAnswer::Worse,
                () if self.confirmed.has_more_misses => KnobAnswer::MoreMisses,
                () => KnobAnswer::Better,
            },
            () if ratio.is_within(margin) => KnobAnswer::NoEffect { beyond: beyond(ratio.interval) },
            () => undecided(),
        }
    }
}

/// The answer for a knob that is not a candidate.
fn of_screened(screened: &ScreenedKnob, screening: &Screened) -> KnobAnswer {
    let margin = default_margin(screening.metric);
    let (low, high) = screened.interval;
    if low >= 1.0 / margin && high <= margin {
        return KnobAnswer::NoEffect { beyond: beyond(screened.interval) };
    }
    // The width of an interval falls with the root of the number of blocks.
    let (half, left) = ((high / low).ln() / 2.0, margin.ln() - screened.ratio.ln().abs());
    let blocks = (screening.blocks as f64 * (half / left).powi(2)).ceil();
    let is_near = left > 0.0 && blocks.is_finite() && blocks < 1_000.0;
    let blocks_needed = is_near.then(|| crate::stats::special::whole(blocks).max(screening.blocks + 1));
    KnobAnswer::Undecided { blocks_needed, seconds_needed: seconds(blocks_needed, screening.block_seconds) }
}

fn seconds(blocks: Option<u64>, block_seconds: Option<f64>) -> Option<u64> {
    Some(crate::stats::special::whole((blocks? as f64 * block_seconds?).ceil()))
}

/// The larger change of both ends of an interval: 0.04 for 0.97 to 1.04.
fn beyond((low, high): (f64, f64)) -> f64 {
    (1.0 / low).max(high) - 1.0
}

#[cfg(test)]
mod tests;
