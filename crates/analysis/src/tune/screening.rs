//! The screening: all knobs together, and which of them are worth a second look.

use super::{CANDIDATE_P, design};
use crate::comparison::{Metric, Refusal, response};
use crate::factorial::Design;
use crate::stats::factorial::{self, KnobEffect, KnobRefusal};
use crate::stats::special::student_t;
use model::{Ended, Entry, Knob};
use serde::Serialize;

/// Adjusted p-value of an interaction up to which both of its knobs are measured again.
const PAIR_P: f64 = 0.1;

/// Confidence of the interval of an effect.
const CONFIDENCE: f64 = 0.95;

/// Effects of all knobs, from one experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Screened {
    /// Number that was compared.
    pub metric: Metric,
    /// Whole blocks, each with one measurement of every run of the design.
    pub blocks: u64,
    /// Measurements of a block.
    pub runs: u64,
    /// Mean time of a block, s; `null` if unknown, and in virtual time.
    pub block_seconds: Option<f64>,
    /// Effects in the order of the knobs.
    pub knobs: Vec<ScreenedKnob>,
    /// Interactions of two knobs, the most certain first; `null` where the design confounds them.
    pub pairs: Option<Vec<ScreenedPair>>,
}

/// Effect of one knob in the screening.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScreenedKnob {
    /// The number with the changed value, divided by that with the value as it is.
    pub ratio: f64,
    /// 95 % interval of the ratio.
    pub interval: (f64, f64),
    /// p-value of a permutation test, adjusted for the number of knobs.
    pub p: f64,
    /// Whether it is worth a confirmation.
    pub is_candidate: bool,
}

/// Interaction of two knobs in the screening.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScreenedPair {
    /// Their positions.
    pub knobs: (usize, usize),
    /// Factor by which the effect of either one changes with the other.
    pub factor: f64,
    /// p-value of a permutation test, adjusted for the number of pairs.
    pub p: f64,
}

impl Screened {
    /// Positions of the knobs that are worth a confirmation.
    #[must_use]
    pub fn candidates(&self) -> Vec<usize> {
        (0..).zip(&self.knobs).filter(|(_, knob)| knob.is_candidate).map(|(index, _)| index).collect()
    }
}

/// The effects of `knobs` on `metric`, from measurements whose cells are the runs of the design in its order. `seed` is
/// that of the permutations.
///
/// # Errors
/// One line, with too few measurements or wake-ups.
pub fn screened(knobs: &[Knob], metric: Metric, entries: &[Entry], seed: u64) -> Result<Screened, String> {
    let design = design(knobs).ok_or_else(|| format!("expected 1 to {} knobs, found {}", Knob::MOST, knobs.len()))?;
    let blocks = blocks(&design, metric, entries)?;
    let (effects, left) = stepwise(&design, &blocks, seed).map_err(|refusal| why(&refusal))?;
    // Effects would count as noise of the interactions.
    let pairs = factorial::interactions(&design, &left, seed).ok();
    // What one knob takes from the effect of another is hidden in the mean over both.
    let acts_with_another = |knob: usize| {
        let of_knob = |pair: &factorial::Interaction| pair.knobs.0 == knob || pair.knobs.1 == knob;
        pairs.iter().flatten().any(|pair| of_knob(pair) && pair.effect.p <= PAIR_P)
    };
    // A single knob is always measured again: its few runs give no small p-value.
    let is_single = effects.len() == 1;
    let margins = half_width(&design, &blocks, &effects.iter().map(|effect| effect.effect).collect::<Vec<_>>());
    let knobs = effects.iter().enumerate().map(|(index, effect)| ScreenedKnob {
        ratio: effect.effect.exp(),
        interval: ((effect.effect - margins).exp(), (effect.effect + margins).exp()),
        p: effect.p,
        is_candidate: is_single || effect.p <= CANDIDATE_P || acts_with_another(index),
    });
    let knobs = knobs.collect();
    let pairs = pairs.map(|pairs| {
        let pair = |pair: factorial::Interaction| ScreenedPair {
            knobs: pair.knobs,
            factor: (2.0 * pair.effect.effect).exp(),
            p: pair.effect.p,
        };
        let mut pairs: Vec<_> = pairs.into_iter().map(pair).collect();
        pairs.sort_by(|a, b| a.p.total_cmp(&b.p));
        pairs
    });
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    Ok(Screened {
        metric,
        blocks: count(blocks.len()),
        runs: count(design.runs.len()),
        block_seconds: super::block_seconds(entries),
        knobs,
        pairs,
    })
}

/// The effects of all knobs, and the logarithms without those of candidates. Each p-value is that after the removal of
/// the effects with smaller ones, as long as these are candidates: a large effect would otherwise count as noise.
fn stepwise(design: &Design, blocks: &[Vec<f64>], seed: u64) -> Result<(Vec<KnobEffect>, Vec<Vec<f64>>), KnobRefusal> {
    let mut effects = factorial::effects(design, blocks, seed)?;
    let mut left = blocks.to_vec();
    let mut is_removed = vec![false; effects.len()];
    loop {
        let open = effects.iter().enumerate().filter(|(knob, _)| is_removed.get(*knob) == Some(&false));
        let Some((best, effect)) = open.min_by(|(_, a), (_, b)| a.p.total_cmp(&b.p)) else { break };
        if effect.p > CANDIDATE_P {
            break;
        }
        let half = 0.5 * effect.effect;
        for (run, y) in left.iter_mut().flat_map(|block| design.runs.iter().zip(block)) {
            *y -= if run.get(best) == Some(&true) { half } else { -half };
        }
        is_removed.iter_mut().skip(best).take(1).for_each(|removed| *removed = true);
        let rest = factorial::effects(design, &left, seed)?;
        let open = effects.iter_mut().zip(rest).zip(&is_removed).filter(|(_, is_removed)| !**is_removed);
        open.for_each(|((effect, rest), _)| effect.p = rest.p);
    }
    Ok((effects, left))
}

/// The logarithm of the number of each run, for each whole block.
fn blocks(design: &Design, metric: Metric, entries: &[Entry]) -> Result<Vec<Vec<f64>>, String> {
    let last = entries.iter().map(|entry| entry.planned.block).max().map_or(0, |block| block + 1);
    let of_block = |block: u32| -> Option<Result<Vec<f64>, Refusal>> {
        let of_run = |run: usize| {
            entries.iter().find(|entry| {
                entry.planned.block == block
                    && entry.planned.cell_index == run
                    && entry.record.ended == Ended::Completed
            })
        };
        let whole: Option<Vec<&Entry>> = (0..design.runs.len()).map(of_run).collect();
        Some(whole?.into_iter().map(|entry| response(metric, entry).map(f64::ln)).collect())
    };
    let blocks: Result<Vec<_>, _> = (0..last).filter_map(of_block).collect();
    blocks.map_err(|refusal| match refusal {
        Refusal::FewExceedances { have, need } => format!(
            "a measurement has {have} wake-ups above {metric}, but needs {need}; measure longer (--duration), or ask \
             for a lower quantile (--response)"
        ),
        other => format!("{metric} cannot be compared: {other:?}"),
    })
}

fn why(refusal: &KnobRefusal) -> String {
    match refusal {
        KnobRefusal::FewReplicates => "the screening needs two whole blocks".to_owned(),
        other => format!("the screening cannot be evaluated: {other:?}"),
    }
}

/// Half of the width of the interval of every effect: Student's t on what blocks and effects do not explain.
/// Interactions are part of that, so the interval is rather too wide.
fn half_width(design: &Design, blocks: &[Vec<f64>], effects: &[f64]) -> f64 {
    let mut squares = 0.0;
    for block in blocks {
        let mean = block.iter().sum::<f64>() / block.len() as f64;
        for (run, y) in design.runs.iter().zip(block) {
            let explained: f64 = run
                .iter()
                .zip(effects)
                .map(|(changed, effect)| if *changed { 0.5 * effect } else { -0.5 * effect })
                .sum();
            squares += (y - mean - explained).powi(2);
        }
    }
    let n = (blocks.len() * design.runs.len()) as f64;
    let freedom = n - blocks.len() as f64 - effects.len() as f64;
    if freedom < 1.0 {
        return f64::INFINITY;
    }
    student_t(freedom, 0.5 + CONFIDENCE / 2.0) * 2.0 * (squares / freedom / n).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RunBuilder;
    use crate::tune::{confirmation, knobs, least_blocks};
    use model::{Level, SplitMix64};

    /// A screening in which the first knob multiplies all latencies by `factor`.
    fn run(n: usize, blocks: u32, factor: f64, seed: u64) -> RunBuilder {
        let design = design(&knobs(n)).unwrap();
        let mut run = RunBuilder::new();
        for _ in &design.runs {
            run.cell("none", "other");
        }
        let mut random = SplitMix64::new(seed);
        for block in 0..blocks {
            for (cell, levels) in design.runs.iter().enumerate() {
                let noise = 1.0 + random.below(100) as f64 / 1000.0 + f64::from(block % 3) * 0.2;
                let base = 20_000.0 * noise * if levels[0] { factor } else { 1.0 };
                run.measure(block, cell, move |_, cycle| {
                    i64::try_from(crate::stats::special::whole(base) + cycle % 97).unwrap()
                });
            }
        }
        run
    }

    #[test]
    fn a_knob_that_acts_is_a_candidate_with_its_ratio() {
        for n in [1, 3, 5, 9] {
            let run = run(n, 3, 0.6, 7);
            let screened = screened(&knobs(n), Metric::Quantile(Level::P50), &run.entries, 1).unwrap();
            let first = screened.knobs[0];
            assert!(first.is_candidate && first.interval.0 < 0.6 && first.interval.1 > 0.6, "{n}: {first:?}");
            assert!(first.interval.1 < 0.75, "{n}: {first:?}");
            assert_eq!((screened.blocks, screened.pairs.is_some()), (3, (2..=4).contains(&n)));
        }
    }

    #[test]
    fn a_large_effect_hides_no_other() {
        let mut run = run(3, 2, 0.05, 7);
        // The second knob adds a quarter.
        let design = design(&knobs(3)).unwrap();
        let entries = run.entries.iter().map(|entry| (entry.planned.block, entry.planned.cell_index));
        let entries: Vec<_> = entries.collect();
        run.entries.clear();
        let mut random = SplitMix64::new(3);
        for (block, cell) in entries {
            let noise = 1.0 + random.below(100) as f64 / 1000.0;
            let factor = if design.runs[cell][0] { 0.05 } else { 1.0 } * if design.runs[cell][1] { 1.25 } else { 1.0 };
            let base = 200_000.0 * noise * factor;
            run.measure(block, cell, move |_, cycle| {
                i64::try_from(crate::stats::special::whole(base) + cycle % 97).unwrap()
            });
        }
        let metric = Metric::Quantile(Level::P50);
        let screened = screened(&knobs(3), metric, &run.entries, 1).unwrap();
        assert_eq!(screened.candidates()[..2], [0, 1], "{screened:?}");
    }

    #[test]
    fn a_knob_whose_effect_another_takes_away_is_a_candidate() {
        let mut random = SplitMix64::new(5);
        let design = design(&knobs(2)).unwrap();
        let mut run = RunBuilder::new();
        for _ in &design.runs {
            run.cell("none", "other");
        }
        for block in 0..3 {
            for (cell, levels) in design.runs.iter().enumerate() {
                // The second one halves the latency, but not if the first one has the other value, where it doubles it.
                let factor = if levels[1] { if levels[0] { 2.0 } else { 0.5 } } else { 1.0 };
                let base = 20_000.0 * factor * (1.0 + random.below(100) as f64 / 1000.0);
                run.measure(block, cell, move |_, cycle| {
                    i64::try_from(crate::stats::special::whole(base) + cycle % 97).unwrap()
                });
            }
        }
        let screened = screened(&knobs(2), Metric::Quantile(Level::P50), &run.entries, 1).unwrap();
        assert_eq!(screened.candidates(), [0, 1], "{screened:?}");
        assert!(screened.pairs.unwrap()[0].p < 0.1);
    }

    #[test]
    fn intervals_of_knobs_that_do_nothing_hold_one_as_often_as_they_say() {
        let (mut held, mut all) = (0, 0);
        for seed in 0..40 {
            let run = run(3, 3, 1.0, seed);
            let screened = screened(&knobs(3), Metric::Quantile(Level::P50), &run.entries, 1).unwrap();
            for knob in &screened.knobs {
                held += u32::from(knob.interval.0 <= 1.0 && knob.interval.1 >= 1.0);
                all += 1;
            }
        }
        // 95 % of 120, with a standard deviation of 2.4.
        assert!(held >= 105, "{held} of {all}");
    }

    #[test]
    fn too_little_is_one_line() {
        let one_block = run(2, 1, 0.5, 1);
        let metric = Metric::Quantile(Level::P50);
        let said = |entries: &[Entry], metric| screened(&knobs(2), metric, entries, 1).unwrap_err();
        assert_eq!(said(&one_block.entries, metric), "the screening needs two whole blocks");
        assert_eq!(said(&[], metric), "the screening needs two whole blocks");
        let enough = run(2, 2, 0.5, 1);
        assert!(said(&enough.entries, Metric::Quantile(Level::P9999)).contains("--duration"));
        let mut cut = enough.entries.clone();
        cut.pop();
        assert_eq!(said(&cut, metric), "the screening needs two whole blocks", "a block that is not whole");
    }

    #[test]
    fn candidates_are_confirmed_alone_and_together() {
        assert_eq!(confirmation(&knobs(3), &[]), [["leave"; 3]]);
        assert_eq!(confirmation(&knobs(3), &[1]), [["leave", "leave", "leave"], ["leave", "on", "leave"]]);
        assert_eq!(confirmation(&knobs(2), &[0, 1]).last().unwrap(), &["on", "on"]);
        let mut three = knobs(2);
        three[1].between.push("half".into());
        let cells = confirmation(&three, &[0, 1]);
        assert_eq!(cells[1..], [["on", "leave"], ["leave", "half"], ["leave", "on"], ["on", "on"]]);
        assert_eq!([1, 3].map(|looks| least_blocks(&three, &[0, 1], looks)), [7, 9]);
        assert_eq!(least_blocks(&knobs(1), &[0], 1), 6);
    }
}
