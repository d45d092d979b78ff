//! Effects of several settings on the tail, measured together in blocks (factorial experiment).
//!
//! Changing one setting after the other, in sequence, finds an effect in settings without any in 60 to 84 % of
//! experiments on a machine that drifts (simulated). Changing all at once, each block in a random order, does not.

pub use crate::stats::design::{Design, Kind, MAX_KNOBS};

use punctual_model::SplitMix64;

/// Permutations of the permutation test.
const PERMUTATIONS: u32 = 2_000;

/// Replicates of a design below which an effect is not distinguishable from noise.
const MIN_REPLICATES: usize = 2;

/// The effect of one knob.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnobEffect {
    /// Mean of the responses at its high value, less that at its low one; as a ratio `exp(effect)` for logarithms.
    pub effect: f64,
    /// p-value, adjusted for the number of knobs: 5 % is the chance that any of them shows an effect when none has one.
    pub p: f64,
}

/// The interaction of two knobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interaction {
    /// Their indices.
    pub knobs: (usize, usize),
    /// Half the difference between the effect of the first with the second high and that with the second low.
    pub effect: KnobEffect,
}

/// Reason why the effects of knobs are not estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobRefusal {
    /// Fewer than two replicates.
    FewReplicates,
    /// A replicate lacks a response of a run of the design, or has one that is not a number.
    Incomplete,
    /// Interactions were requested of a design that confounds them.
    NotFull,
}

/// The effects of all knobs on responses such as `ln(p99.9)`: for each replicate one response for each run of the
/// design, in the design's order (not in that of measuring).
///
/// Responses are centered in each block, so that changes between blocks are no effect. p-values come from a permutation
/// test: responses are exchanged within blocks, as the random order did, and compared with the largest effect of any
/// knob (Westfall & Young 1993). Errors: with too few data.
pub fn effects(design: &Design, replicates: &[Vec<f64>], seed: u64) -> Result<Vec<KnobEffect>, KnobRefusal> {
    judged(design, &columns(design), replicates, seed)
}

/// The effect of each knob without a test.
pub(crate) fn contrasts_of(design: &Design, replicates: &[Vec<f64>]) -> Vec<f64> {
    contrasts(&columns(design), replicates)
}

/// For each knob, whether it is at its high value in each run.
fn columns(design: &Design) -> Vec<Vec<bool>> {
    let knobs = design.runs.first().map_or(0, Vec::len);
    (0..knobs).map(|knob| design.runs.iter().map(|run| run.get(knob) == Some(&true)).collect()).collect()
}

/// The interactions of any two knobs, to be examined after the effects, and only in a full design. Errors: with too few
/// data, or if the design confounds interactions.
pub fn interactions(design: &Design, replicates: &[Vec<f64>], seed: u64) -> Result<Vec<Interaction>, KnobRefusal> {
    if design.kind != Kind::Full {
        return Err(KnobRefusal::NotFull);
    }
    let knobs = design.runs.first().map_or(0, Vec::len);
    let pairs: Vec<(usize, usize)> = (0..knobs).flat_map(|a| (a + 1..knobs).map(move |b| (a, b))).collect();
    let column = |(a, b): &(usize, usize)| design.runs.iter().map(|run| run.get(*a) == run.get(*b)).collect();
    let columns: Vec<Vec<bool>> = pairs.iter().map(column).collect();
    let judged = judged(design, &columns, replicates, seed)?;
    Ok(pairs.into_iter().zip(judged).map(|(knobs, effect)| Interaction { knobs, effect }).collect())
}

/// The contrast of each column and its p-value.
fn judged(
    design: &Design,
    columns: &[Vec<bool>],
    replicates: &[Vec<f64>],
    seed: u64,
) -> Result<Vec<KnobEffect>, KnobRefusal> {
    if replicates.len() < MIN_REPLICATES {
        return Err(KnobRefusal::FewReplicates);
    }
    let is_whole =
        |replicate: &Vec<f64>| replicate.len() == design.runs.len() && replicate.iter().all(|y| y.is_finite());
    if columns.is_empty() || !replicates.iter().all(is_whole) {
        return Err(KnobRefusal::Incomplete);
    }
    let mut centered: Vec<Vec<f64>> = replicates.iter().map(|replicate| centered(replicate)).collect();
    let effects = contrasts(columns, &centered);
    let mut random = SplitMix64::new(seed);
    let mut as_large = vec![1u32; columns.len()];
    for _ in 0..PERMUTATIONS {
        centered.iter_mut().for_each(|block| random.shuffle(block));
        let largest = contrasts(columns, &centered).iter().fold(0.0f64, |max, effect| max.max(effect.abs()));
        for (count, effect) in as_large.iter_mut().zip(&effects) {
            // Rounding alone must not decide between equal ones.
            *count += u32::from(largest >= effect.abs() * (1.0 - 1e-12));
        }
    }
    let p = |count: u32| f64::from(count) / f64::from(PERMUTATIONS + 1);
    Ok(effects.into_iter().zip(as_large).map(|(effect, count)| KnobEffect { effect, p: p(count) }).collect())
}

fn centered(replicate: &[f64]) -> Vec<f64> {
    let mean = replicate.iter().sum::<f64>() / replicate.len() as f64;
    replicate.iter().map(|y| y - mean).collect()
}

/// Mean of the responses where each column is high, less that where it is low; designs are balanced.
fn contrasts(columns: &[Vec<bool>], blocks: &[Vec<f64>]) -> Vec<f64> {
    let responses: usize = blocks.iter().map(Vec::len).sum();
    let contrast = |column: &Vec<bool>| {
        let sum_of =
            |block: &Vec<f64>| -> f64 { column.iter().zip(block).map(|(high, y)| if *high { *y } else { -y }).sum() };
        2.0 * blocks.iter().map(sum_of).sum::<f64>() / responses as f64
    };
    columns.iter().map(contrast).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Responses of four knobs of which the first two act, with noise and a drift between the blocks.
    fn responses(design: &Design, first: f64, second: f64, noise: f64) -> Vec<Vec<f64>> {
        let mut random = SplitMix64::new(5);
        let mut error = || noise * (random.below(1000) as f64 / 500.0 - 1.0);
        let y = |run: &Vec<bool>, error: f64| first * f64::from(run[0]) + second * f64::from(run[1]) + error;
        (0..3).map(|block| design.runs.iter().map(|run| y(run, error()) + f64::from(block)).collect()).collect()
    }

    #[test]
    fn the_knobs_that_act_are_found_with_their_effects() {
        let design = Design::of(4).unwrap();
        let found = effects(&design, &responses(&design, 0.3, -0.2, 0.05), 1).unwrap();
        assert!((found[0].effect - 0.3).abs() < 0.02 && (found[1].effect + 0.2).abs() < 0.02, "{found:?}");
        assert!(found[0].p < 0.01 && found[1].p < 0.01 && found[2].p > 0.05 && found[3].p > 0.05, "{found:?}");
        let pairs = interactions(&design, &responses(&design, 0.3, -0.2, 0.05), 1).unwrap();
        assert!(pairs.len() == 6 && pairs.iter().all(|pair| pair.effect.p > 0.05), "{pairs:?}");
    }

    #[test]
    fn an_interaction_is_told_from_an_effect() {
        let design = Design::of(3).unwrap();
        // Only when both are high, or both low.
        let y = |run: &Vec<bool>| if run[0] == run[2] { 1.0 } else { 0.0 };
        let replicates = vec![design.runs.iter().map(y).collect::<Vec<f64>>(); 2];
        assert!(effects(&design, &replicates, 1).unwrap().iter().all(|effect| effect.effect.abs() < 1e-12));
        let pairs = interactions(&design, &replicates, 1).unwrap();
        assert_eq!(pairs[1].knobs, (0, 2));
        let [none, found] = [pairs[0].effect, pairs[1].effect];
        assert!((found.effect - 1.0).abs() < 1e-12 && found.p < 0.05 && none.p > 0.9, "{pairs:?}");
    }

    #[test]
    fn too_little_is_refused() {
        let design = Design::of(2).unwrap();
        assert_eq!(effects(&design, &[vec![1.0; 4]], 1), Err(KnobRefusal::FewReplicates));
        assert_eq!(effects(&design, &[vec![1.0; 4], vec![1.0; 3]], 1), Err(KnobRefusal::Incomplete));
        assert_eq!(effects(&design, &[vec![1.0; 4], vec![f64::NAN; 4]], 1), Err(KnobRefusal::Incomplete));
        assert_eq!(interactions(&Design::of(5).unwrap(), &[], 1), Err(KnobRefusal::NotFull));
    }

    #[test]
    fn the_order_of_blocks_does_not_matter() {
        let design = Design::of(4).unwrap();
        let mut replicates = responses(&design, 0.3, 0.0, 0.2);
        let before: Vec<f64> = effects(&design, &replicates, 1).unwrap().iter().map(|effect| effect.effect).collect();
        replicates.reverse();
        let after: Vec<f64> = effects(&design, &replicates, 1).unwrap().iter().map(|effect| effect.effect).collect();
        assert!(before.iter().zip(&after).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}
