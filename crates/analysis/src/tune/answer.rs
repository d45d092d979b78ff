//! The answer for each knob, from the screening and the confirmation.

use super::screening::{Screened, ScreenedKnob};
use crate::ComparedLoad;
use crate::comparison::{Answer, Arm, Comparison, Metric, Question, Ratio, compare, default_margin};
use crate::stats::paired::holm;
use crate::wording::number;
use model::{Entry, Knob};
use serde::Serialize;

/// Chance of naming any knob that does nothing.
const LEVEL: f64 = 0.05;

/// Answers for all knobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tuned {
    /// The screening.
    pub screening: Screened,
    /// Answers in the order of the knobs.
    pub knobs: Vec<TunedKnob>,
    /// Blocks of the confirmation; 0 without one.
    pub confirmation_blocks: u64,
    /// All candidates changed together; `null` unless there were several.
    pub together: Option<ConfirmedKnob>,
}

/// Answer for one knob.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TunedKnob {
    /// The knob.
    #[serde(flatten)]
    pub knob: Knob,
    /// Its effect in the screening.
    pub screened: ScreenedKnob,
    /// Its effect in the confirmation; `null` if it was no candidate, or the confirmation has too few blocks.
    pub confirmed: Option<ConfirmedKnob>,
    /// The answer.
    pub answer: KnobAnswer,
    /// The answer in words.
    pub sentence: String,
}

/// Effect of a change in the confirmation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfirmedKnob {
    /// The number with the change, divided by that of the machine as it is; its p-value is adjusted for the number of
    /// candidates. `null` if it is refused.
    pub ratio: Option<Ratio>,
    /// Whether deadline misses rose significantly.
    pub has_more_misses: bool,
    /// The price: work of the loads, as it is and with the change.
    pub loads: Vec<ComparedLoad>,
}

/// Answer for a knob.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum KnobAnswer {
    /// The changed value was confirmed to be better. It is advised.
    Better,
    /// The changed value was confirmed to be worse.
    Worse,
    /// The latency is better, but deadlines are missed more often. It is not advised.
    MoreMisses,
    /// Any effect is smaller than this share.
    NoEffect {
        /// 0.04: less than 4 % in either direction.
        beyond: f64,
    },
    /// Neither an effect nor its absence is shown.
    Undecided {
        /// Number of blocks of a confirmation that would probably decide; `null` if unknown.
        blocks_needed: Option<u64>,
    },
}

/// The answers, from the screening and from the entries of a confirmation whose cells are [`super::confirmation`] of
/// its candidates.
#[must_use]
pub fn tuned(knobs: &[Knob], screening: Screened, confirmation: &[Entry]) -> Tuned {
    let candidates = screening.candidates();
    let arm = |cell: usize| {
        let entries = confirmation.iter().filter(|entry| entry.planned.cell_index == cell).collect();
        Arm { name: cell.to_string(), entries }
    };
    let level = match screening.metric {
        Metric::Quantile(level) => Some(level),
        Metric::Max | Metric::Misses => None,
    };
    // What the knobs change is what is asked for, whatever it is.
    let question = Question { metric: level, force: true, asked: model::Selector::AXES, ..Question::default() };
    let compared: Vec<Comparison> =
        (1..=candidates.len()).map(|cell| compare(&arm(0), &arm(cell), None, &question)).collect();
    let ratio_of = |comparison: &Comparison| match screening.metric {
        Metric::Quantile(_) => comparison.primary.ratio,
        metric => comparison.secondary.iter().find(|other| other.metric == metric).and_then(|other| other.ratio),
    };
    let raw: Vec<Option<Ratio>> = compared.iter().map(ratio_of).collect();
    let adjusted = holm(&raw.iter().map(|ratio| ratio.map_or(1.0, |ratio| ratio.p)).collect::<Vec<_>>());
    let answer = |index: usize, knob: &Knob, screened: &ScreenedKnob| {
        let at = candidates.iter().position(|candidate| *candidate == index);
        let comparison = at.and_then(|at| compared.get(at));
        let ratio = at.and_then(|at| Some(Ratio { p: *adjusted.get(at)?, ..(*raw.get(at)?)? }));
        let confirmed = comparison.map(|comparison| confirmed(comparison, ratio));
        let answer = match (&confirmed, comparison) {
            (Some(confirmed), Some(comparison)) => of_confirmed(confirmed, comparison, screening.metric),
            _ => of_screened(screened, screening.metric),
        };
        let sentence = sentence(knob, screened, confirmed.as_ref(), answer, screening.metric);
        TunedKnob { knob: knob.clone(), screened: *screened, confirmed, answer, sentence }
    };
    let answers =
        knobs.iter().zip(&screening.knobs).enumerate().map(|(index, (knob, screened))| answer(index, knob, screened));
    let answers: Vec<_> = answers.collect();
    let together = (candidates.len() > 1).then(|| {
        let comparison = compare(&arm(0), &arm(candidates.len() + 1), None, &question);
        confirmed(&comparison, ratio_of(&comparison))
    });
    let confirmation_blocks = compared.first().map_or(0, |comparison| comparison.blocks);
    Tuned { screening, knobs: answers, confirmation_blocks, together }
}

fn confirmed(comparison: &Comparison, ratio: Option<Ratio>) -> ConfirmedKnob {
    let misses = comparison.secondary.iter().find(|other| other.metric == Metric::Misses);
    let rises = |misses: &&crate::comparison::Measured| {
        misses.differs() && misses.ratio.is_some_and(|ratio| ratio.value > 1.0)
            || misses.a == Some(0.0) && misses.b.is_some_and(|b| b >= 1.0)
    };
    ConfirmedKnob { ratio, has_more_misses: misses.filter(rises).is_some(), loads: comparison.loads.clone() }
}

fn of_confirmed(confirmed: &ConfirmedKnob, comparison: &Comparison, metric: Metric) -> KnobAnswer {
    let undecided = || {
        let blocks_needed = match comparison.answer {
            Answer::Undecided { blocks_needed } => blocks_needed.filter(|needed| *needed > comparison.blocks),
            _ => None,
        };
        KnobAnswer::Undecided { blocks_needed }
    };
    let Some(ratio) = confirmed.ratio else { return undecided() };
    let is_sure = ratio.p < LEVEL && ratio.excludes_one();
    match () {
        () if is_sure && !ratio.is_within(SMALL) => match () {
            () if ratio.value > 1.0 => KnobAnswer::Worse,
            () if confirmed.has_more_misses => KnobAnswer::MoreMisses,
            () => KnobAnswer::Better,
        },
        () if ratio.is_within(default_margin(metric)) => KnobAnswer::NoEffect { beyond: beyond(ratio.interval) },
        () => undecided(),
    }
}

/// Ratio below which a certain effect is still none that anybody would change a setting for.
const SMALL: f64 = 1.02;

fn of_screened(screened: &ScreenedKnob, metric: Metric) -> KnobAnswer {
    let margin = default_margin(metric);
    if screened.interval.0 >= 1.0 / margin && screened.interval.1 <= margin {
        KnobAnswer::NoEffect { beyond: beyond(screened.interval) }
    } else {
        KnobAnswer::Undecided { blocks_needed: None }
    }
}

/// The larger change of both ends of an interval: 0.04 for 0.97 to 1.04.
fn beyond((low, high): (f64, f64)) -> f64 {
    (1.0 / low).max(high) - 1.0
}

fn sentence(
    knob: &Knob,
    screened: &ScreenedKnob,
    confirmed: Option<&ConfirmedKnob>,
    answer: KnobAnswer,
    metric: Metric,
) -> String {
    let Knob { key, as_is, changed } = knob;
    let ratio = confirmed.and_then(|confirmed| confirmed.ratio);
    let (value, (low, high)) = ratio.map_or((screened.ratio, screened.interval), |ratio| (ratio.value, ratio.interval));
    let times = format!("{} times [{}-{}]", number(value), number(low), number(high));
    match answer {
        KnobAnswer::Better => format!("{key} = {changed}: {metric} {times}. Better than {as_is}"),
        KnobAnswer::Worse => format!("{key} = {changed}: {metric} {times}. Worse than {as_is}"),
        KnobAnswer::MoreMisses => {
            format!("{key} = {changed}: {metric} {times}, but more deadlines are missed; not advised")
        }
        KnobAnswer::NoEffect { beyond } => {
            // Rounded up, but for what the division has added.
            let percent = (beyond * 100.0 - 1e-9).ceil().max(1.0);
            format!("{key} = {changed}: no effect on {metric} larger than {percent:.0} %")
        }
        KnobAnswer::Undecided { blocks_needed } => {
            let more = match blocks_needed {
                Some(blocks) => format!("about {blocks} blocks would probably decide (--confirm {blocks})"),
                None if confirmed.is_none() => "the screening is too short to exclude an effect (--blocks)".to_owned(),
                None => "measure longer (--duration) or more blocks (--confirm)".to_owned(),
            };
            format!("{key} = {changed}: undecided, {metric} {times}; {more}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RunBuilder;
    use crate::tune::{confirmation, knobs};
    use model::{Level, SplitMix64};

    fn screening(candidates: &[bool], interval: (f64, f64)) -> Screened {
        let knob = |is_candidate: &bool| ScreenedKnob { ratio: 0.8, interval, p: 0.01, is_candidate: *is_candidate };
        let knobs: Vec<_> = candidates.iter().map(knob).collect();
        Screened { metric: Metric::Quantile(Level::P50), blocks: 2, runs: 4, knobs, pairs: None }
    }

    /// A confirmation in which each candidate multiplies latencies by its factor.
    fn confirmed(factors: &[f64], blocks: u32, noise: usize, seed: u64) -> Vec<Entry> {
        let mut run = RunBuilder::new();
        let mut factors: Vec<f64> = std::iter::once(1.0).chain(factors.iter().copied()).collect();
        if factors.len() > 2 {
            factors.push(factors.iter().product());
        }
        for _ in &factors {
            run.cell("none", "other");
        }
        let mut random = SplitMix64::new(seed);
        for block in 0..blocks {
            for (cell, factor) in factors.iter().enumerate() {
                let base = 20_000.0 * factor * (1.0 + random.below(noise) as f64 / 1000.0);
                run.measure(block, cell, move |_, cycle| {
                    i64::try_from(crate::stats::special::whole(base) + cycle % 97).unwrap()
                });
            }
        }
        run.entries
    }

    #[test]
    fn only_what_is_confirmed_is_named() {
        let knobs = knobs(4);
        assert_eq!(confirmation(&knobs, &[0, 1, 2]).len(), 5);
        let tuned =
            tuned(&knobs, screening(&[true, true, true, false], (0.98, 1.03)), &confirmed(&[0.5, 2.0, 1.0], 12, 50, 3));
        let answers: Vec<_> = tuned.knobs.iter().map(|knob| knob.answer).collect();
        assert_eq!(answers[..2], [KnobAnswer::Better, KnobAnswer::Worse]);
        assert!(matches!(answers[2], KnobAnswer::NoEffect { beyond } if beyond < 0.1), "{answers:?}");
        assert!(matches!(answers[3], KnobAnswer::NoEffect { beyond } if (beyond - 0.03).abs() < 1e-9), "{answers:?}");
        let together = tuned.together.unwrap().ratio.unwrap();
        assert!((together.value - 1.0).abs() < 0.05, "{together:?}");
        assert!(tuned.knobs[0].sentence.contains("Better than leave"), "{}", tuned.knobs[0].sentence);
        assert_eq!(tuned.knobs[3].sentence, "prepare.k3 = on: no effect on p50 larger than 3 %");
    }

    #[test]
    fn few_or_noisy_blocks_leave_it_undecided() {
        let one = knobs(1);
        let few = tuned(&one, screening(&[true], (0.5, 0.9)), &confirmed(&[0.5], 5, 50, 3));
        assert_eq!(few.knobs[0].answer, KnobAnswer::Undecided { blocks_needed: None }, "5 blocks have no interval");
        let none = tuned(&one, screening(&[true], (0.5, 0.9)), &[]);
        assert!(matches!(none.knobs[0].answer, KnobAnswer::Undecided { .. }));
        let noisy = tuned(&one, screening(&[true], (0.5, 0.9)), &confirmed(&[0.9], 6, 3_000, 3));
        assert!(matches!(noisy.knobs[0].answer, KnobAnswer::Undecided { blocks_needed: Some(7..) }), "{noisy:?}");
        let wide = tuned(&one, screening(&[false], (0.5, 1.4)), &[]);
        assert_eq!(wide.knobs[0].answer, KnobAnswer::Undecided { blocks_needed: None });
        assert!(wide.knobs[0].sentence.contains("--blocks"));
    }

    #[test]
    fn knobs_that_do_nothing_are_hardly_ever_named() {
        let three = knobs(3);
        let named = (0..100).filter(|seed| {
            let entries = confirmed(&[1.0, 1.0, 1.0], 8, 800, *seed);
            let tuned = tuned(&three, screening(&[true; 3], (0.5, 1.4)), &entries);
            tuned.knobs.iter().any(|knob| matches!(knob.answer, KnobAnswer::Better | KnobAnswer::Worse))
        });
        // At most 5 expected, standard deviation 2.2.
        assert!(named.count() <= 11);
    }
}
