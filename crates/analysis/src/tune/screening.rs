//! The screening: all knobs together, and which of them are worth a second look.

use super::{CANDIDATE_P, design};
use crate::comparison::{Metric, Refusal, response};
use crate::factorial::Design;
use crate::stats::factorial::{self, KnobEffect, KnobRefusal};
use crate::stats::special::student_t;
use crate::summary::work::first_rate;
use punctual_model::{Ended, Entry, Knob, Order};
use serde::Serialize;

/// Adjusted p-value of an interaction up to which both of its knobs are measured again.
const PAIR_P: f64 = 0.1;

/// Adjusted p-value of an interaction below which it is shown.
const SHOWN_P: f64 = 0.05;

/// Confidence of the interval of an effect.
const CONFIDENCE: f64 = 0.95;

/// Effects of all knobs, from one experiment.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ScreenedKnob {
    /// The number with the changed value, divided by that with the value as it is.
    pub ratio: f64,
    /// 95 % interval of the ratio.
    pub interval: (f64, f64),
    /// p-value of a permutation test, adjusted for the number of knobs.
    pub p: f64,
    /// Whether it is worth a confirmation.
    pub is_candidate: bool,
    /// The price: work of the first load with the changed value, divided by that with the value as it is; `null`
    /// without a load, or if its work is unknown in a run.
    pub work: Option<RatioOfRuns>,
}

/// Interaction of two knobs in the screening.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ScreenedPair {
    /// Their positions.
    pub knobs: (usize, usize),
    /// Factor by which the effect of either one changes with the other.
    pub factor: f64,
    /// p-value of a permutation test, adjusted for the number of pairs.
    pub p: f64,
    /// The effect of the first knob at both values of the second, and of the second at both values of the first.
    pub effects: (ByValue, ByValue),
}

/// Effect of a knob at both values of another one, each from the runs with this value alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ByValue {
    /// With the other knob as it is.
    pub as_is: RatioOfRuns,
    /// With the other knob changed.
    pub changed: RatioOfRuns,
}

/// Effect of a knob in some of the runs of a screening.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RatioOfRuns {
    /// The number with the changed value, divided by that with the value as it is.
    pub ratio: f64,
    /// 95 % interval of the ratio.
    pub interval: (f64, f64),
}

impl Screened {
    /// Interactions that are certain enough to be shown, the most certain first.
    pub fn shown_pairs(&self) -> impl Iterator<Item = &ScreenedPair> {
        self.pairs.iter().flatten().filter(|pair| pair.p < SHOWN_P)
    }

    /// Positions of the knobs on whose values the effect of this one depends.
    pub(super) fn acting_with(&self, knob: usize) -> impl Iterator<Item = usize> {
        let other = move |pair: &ScreenedPair| match pair.knobs {
            (a, b) if a == knob => Some(b),
            (a, b) if b == knob => Some(a),
            _ => None,
        };
        self.shown_pairs().filter_map(other)
    }

    /// Positions of the knobs that are worth a confirmation.
    pub fn candidates(&self) -> Vec<usize> {
        (0..).zip(&self.knobs).filter(|(_, knob)| knob.is_candidate).map(|(index, _)| index).collect()
    }
}

/// The effects of `knobs` on `metric`, from measurements whose cells are the runs of the design in its order. `seed` is
/// that of the permutations. Errors: one line, with too few measurements or wake-ups.
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
    let works = works(&design, entries);
    let knobs = effects.iter().enumerate().map(|(index, effect)| ScreenedKnob {
        ratio: effect.effect.exp(),
        interval: ((effect.effect - margins).exp(), (effect.effect + margins).exp()),
        p: effect.p,
        is_candidate: is_single || effect.p <= CANDIDATE_P || acts_with_another(index),
        work: works.as_ref().and_then(|works| works.get(index)).copied(),
    });
    let knobs = knobs.collect();
    let pairs = pairs.map(|pairs| {
        let pair = |pair: factorial::Interaction| ScreenedPair {
            knobs: pair.knobs,
            factor: (2.0 * pair.effect.effect).exp(),
            p: pair.effect.p,
            effects: {
                let (a, b) = pair.knobs;
                (by_value(&design, &blocks, a, b), by_value(&design, &blocks, b, a))
            },
        };
        let mut pairs: Vec<_> = pairs.into_iter().map(pair).collect();
        pairs.order_by(|a, b| a.p.total_cmp(&b.p));
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

/// The measurements of each run, for each whole block.
fn whole_blocks<'a>(design: &Design, entries: &'a [Entry]) -> Vec<Vec<&'a Entry>> {
    let last = entries.iter().map(|entry| entry.planned.block).max().map_or(0, |block| block + 1);
    let of_block = |block: u32| -> Option<Vec<&Entry>> {
        let of_run = |run: usize| {
            entries.iter().find(|entry| {
                entry.planned.block == block
                    && entry.planned.cell_index == run
                    && entry.record.ended == Ended::Completed
            })
        };
        (0..design.runs.len()).map(of_run).collect()
    };
    (0..last).filter_map(of_block).collect()
}

/// The logarithm of the number of each run, for each whole block.
fn blocks(design: &Design, metric: Metric, entries: &[Entry]) -> Result<Vec<Vec<f64>>, String> {
    let logarithms = |block: Vec<&Entry>| block.into_iter().map(|entry| response(metric, entry).map(f64::ln)).collect();
    let blocks: Result<Vec<Vec<f64>>, Refusal> = whole_blocks(design, entries).into_iter().map(logarithms).collect();
    blocks.map_err(|refusal| match refusal {
        Refusal::FewExceedances { have, need } => format!(
            "a measurement has {have} wake-ups above {metric}, but needs {need}; measure longer (--duration), or ask \
             for a lower quantile (--response)"
        ),
        other => other.in_words(metric).trim_end_matches('.').to_owned(),
    })
}

fn why(refusal: &KnobRefusal) -> String {
    match refusal {
        KnobRefusal::FewReplicates => "the screening needs two whole blocks".to_owned(),
        KnobRefusal::Incomplete => "a run of the screening has no number to compare".to_owned(),
        KnobRefusal::NotFull => "the screening confounds the interactions asked for".to_owned(),
    }
}

/// The effect of each knob on the work of the load, from the blocks in which it is known for every run.
fn works(design: &Design, entries: &[Entry]) -> Option<Vec<RatioOfRuns>> {
    let rate = |entry: &Entry| first_rate(entry).filter(|rate| *rate > 0.0).map(f64::ln).ok_or(());
    let blocks: Vec<Vec<f64>> = whole_blocks(design, entries)
        .into_iter()
        .filter_map(|block| block.into_iter().map(rate).collect::<Result<_, ()>>().ok())
        .collect();
    let effects = factorial::contrasts_of(design, &blocks);
    let margin = half_width(design, &blocks, &effects);
    let ratio = |effect: &f64| RatioOfRuns {
        ratio: effect.exp(),
        interval: ((effect - margin).exp(), (effect + margin).exp()),
    };
    (blocks.len() >= 2).then(|| effects.iter().map(ratio).collect())
}

/// The effect of one knob at both values of another. Each comes from the runs with this value alone, because the noise
/// may differ: a real-time thread is disturbed less than a normal one.
fn by_value(design: &Design, blocks: &[Vec<f64>], knob: usize, other: usize) -> ByValue {
    let at = |is_changed: bool| {
        let is_in: Vec<bool> = design.runs.iter().map(|run| run.get(other) == Some(&is_changed)).collect();
        let runs = design.runs.iter().zip(&is_in).filter(|(_, is_in)| **is_in).map(|(run, _)| {
            // The other knob is the same in all of them.
            let rest = run.iter().enumerate().filter(|(index, _)| *index != other);
            rest.map(|(_, level)| *level).collect::<Vec<bool>>()
        });
        let runs = runs.collect();
        let of_half =
            |block: &Vec<f64>| block.iter().zip(&is_in).filter(|(_, is_in)| **is_in).map(|(y, _)| *y).collect();
        let half = Design { runs, kind: design.kind };
        let blocks: Vec<Vec<f64>> = blocks.iter().map(of_half).collect();
        let effects = factorial::contrasts_of(&half, &blocks);
        let margin = half_width(&half, &blocks, &effects);
        let effect = effects.get(knob - usize::from(other < knob)).copied().unwrap_or(f64::NAN);
        RatioOfRuns { ratio: effect.exp(), interval: ((effect - margin).exp(), (effect + margin).exp()) }
    };
    ByValue { as_is: at(false), changed: at(true) }
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
    use punctual_model::{Level, LoadRecord, LoadSecond, Span, SplitMix64};

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
        let pair = screened.pairs.as_ref().unwrap()[0];
        assert!(pair.p < 0.05, "{pair:?}");
        assert_eq!((screened.shown_pairs().count(), screened.acting_with(1).collect::<Vec<_>>()), (1, vec![0]));
        let holds = |effect: RatioOfRuns, truth: f64| effect.interval.0 < truth && effect.interval.1 > truth;
        let (of_first, of_second) = pair.effects;
        assert!(holds(of_second.as_is, 0.5) && holds(of_second.changed, 2.0), "{pair:?}");
        assert!(holds(of_first.as_is, 1.0) && holds(of_first.changed, 4.0), "{pair:?}");
    }

    #[test]
    fn the_work_of_the_load_is_a_price_with_an_interval() {
        let mut run = run(2, 3, 1.0, 7);
        let levels = design(&knobs(2)).unwrap().runs;
        let mut random = SplitMix64::new(9);
        for entry in &mut run.entries {
            let factor = if levels[entry.planned.cell_index][1] { 8 } else { 10 };
            let operations = u64::try_from(factor * (1_000 + random.below(20))).ok();
            let second = LoadSecond { elapsed: Span::SECOND, operations, cpu_us: None };
            entry.record.loads = vec![LoadRecord { seconds: vec![second; 2], ..LoadRecord::default() }];
        }
        let metric = Metric::Quantile(Level::P50);
        let work = |entries: &[Entry]| {
            let screened = screened(&knobs(2), metric, entries, 1).unwrap();
            screened.knobs.iter().map(|knob| knob.work).collect::<Vec<_>>()
        };
        let works = work(&run.entries);
        let [none, some] = works[..] else { panic!("{works:?}") };
        assert!(none.unwrap().interval.0 < 1.0 && none.unwrap().interval.1 > 1.0, "{works:?}");
        assert!(some.unwrap().interval.0 < 0.8 && some.unwrap().interval.1 > 0.8, "{works:?}");
        assert!(some.unwrap().interval.1 < 0.9, "{works:?}");
        // Unknown in two blocks of three.
        run.entries.iter_mut().take(5).for_each(|entry| entry.record.loads.clear());
        assert_eq!(work(&run.entries), [None, None]);
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
