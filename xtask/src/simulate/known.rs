//! Experiments with real knobs that act, resampled from one long recording of all their combinations.
//!
//! The recording is the screening of `punctual tune --blocks 60` with two to four knobs: every combination in every
//! block. Each experiment draws blocks at random for its screening and its confirmation; the effect of a knob alone is
//! the median over all blocks that it did not draw. So both are of the same hours of the machine, but of different
//! measurements.

use super::noise::Noise;
use super::recorded::entries_of;
use super::tuned::{BLOCKS, is_an_effect};
use super::{Expected, ResultRow};
use analysis::Level;
use analysis::comparison::{Metric, Question, compare};
use analysis::tune::{confirmation, design, least_blocks, screened, tuned};
use model::{Ended, Entry, Knob};
use std::path::Path;

/// Experiments on a recording.
const EXPERIMENTS: u32 = 20;

/// Blocks that a recording needs: as many for the effect as for an experiment.
const LEAST_BLOCKS: usize = 40;

/// Counts on the recordings in these directories.
pub(super) fn run(dirs: &[&str]) -> Result<Vec<ResultRow>, String> {
    let mut rows = Vec::new();
    for dir in dirs {
        let (header, entries) = entries_of(Path::new(dir))?;
        rows.extend(of_recording(dir, &header.plan.knobs, &entries)?);
    }
    Ok(rows)
}

fn of_recording(dir: &str, knobs: &[Knob], entries: &[Entry]) -> Result<Vec<ResultRow>, String> {
    let design = design(knobs).ok_or_else(|| format!("{dir}: no screening of punctual tune"))?;
    let last = entries.iter().map(|entry| entry.planned.block).max().unwrap_or(0);
    let is_whole = |block: &u32| {
        let of_block = entries.iter().filter(|entry| entry.planned.block == *block);
        of_block.filter(|entry| entry.record.ended == Ended::Completed).count() == design.runs.len()
    };
    let blocks: Vec<u32> = (0..=last).filter(is_whole).collect();
    if !(2..=4).contains(&knobs.len()) || blocks.len() < LEAST_BLOCKS {
        return Err(format!("{dir}: expected a screening of 2 to 4 knobs in {LEAST_BLOCKS} blocks at least"));
    }
    let metric = Metric::Quantile(Level::P50);
    let cell_of = |values: &[&str]| {
        let levels = values.iter().zip(knobs).map(|(value, knob)| *value != knob.as_is).collect::<Vec<_>>();
        design.runs.iter().position(|run| *run == levels)
    };
    // Measurements of these cells in these blocks, as a run of its own.
    let dealt = |cells: &[usize], blocks: &[u32]| -> Vec<Entry> {
        let mut dealt = Vec::new();
        for (number, block) in (0..).zip(blocks) {
            for (index, cell) in cells.iter().enumerate() {
                let is_it = |entry: &&Entry| entry.planned.block == *block && entry.planned.cell_index == *cell;
                for mut entry in entries.iter().filter(is_it).cloned() {
                    (entry.planned.block, entry.planned.cell_index) = (number, index);
                    dealt.push(entry);
                }
            }
        }
        dealt
    };
    let all_cells: Vec<usize> = (0..design.runs.len()).collect();
    let mut noise = Noise::new(4_407);
    let mut counts = vec![(0u32, 0u32, 0u32); knobs.len()];
    for seed in 0..u64::from(EXPERIMENTS) {
        let mut order = blocks.clone();
        (1..order.len()).rev().for_each(|last| order.swap(last, noise.below(last + 1)));
        let mut order = order.into_iter();
        let drawn: Vec<u32> = order.by_ref().take(2).collect();
        let screening = dealt(&all_cells, &drawn);
        let screened = screened(knobs, metric, &screening, seed)?;
        let candidates = screened.candidates();
        let most = usize::try_from(BLOCKS[1].max(least_blocks(knobs, &candidates, 1))).unwrap_or(8);
        let drawn: Vec<u32> = order.by_ref().take(most).collect();
        let cells: Option<Vec<usize>> = confirmation(knobs, &candidates).iter().map(|values| cell_of(values)).collect();
        let confirmed = dealt(&cells.ok_or("a combination is missing")?, &drawn);
        let tuned = tuned(knobs, screened, &screening, &confirmed, 1);
        let others: Vec<u32> = order.collect();
        for (index, (knob, count)) in tuned.knobs.iter().zip(&mut counts).enumerate() {
            count.0 += u32::from(is_an_effect(knob.answer));
            let alone = confirmation(knobs, &[index]).into_iter().map(|values| cell_of(&values));
            let pair = dealt(&alone.collect::<Option<Vec<_>>>().ok_or("a combination is missing")?, &others);
            let ratio = knob.confirmed.as_ref().and_then(|confirmed| confirmed.ratio);
            let held =
                ratio.zip(effect(&pair)).is_some_and(|(r, truth)| (r.interval.0..=r.interval.1).contains(&truth));
            count.1 += u32::from(ratio.is_some());
            count.2 += u32::from(held);
        }
    }
    let mut rows = Vec::new();
    for (knob, (named, confirmed, held)) in knobs.iter().zip(counts) {
        let share = |what: &str, n, of| ResultRow::share(format!("{}: {what}", knob.key), n, of, Expected::Unknown);
        rows.push(share("named", named, EXPERIMENTS));
        // A knob without a hint has no interval of a confirmation.
        if confirmed > 0 {
            rows.push(share("interval holds the effect", held, confirmed));
        }
    }
    Ok(rows)
}

/// The ratio of the median of the second cell to the first.
fn effect(entries: &[Entry]) -> Option<f64> {
    let arm = |cell: usize| analysis::comparison::Arm {
        name: cell.to_string(),
        entries: entries.iter().filter(|entry| entry.planned.cell_index == cell).collect(),
    };
    let question = Question { metric: Some(Level::P50), force: true, ..Question::default() };
    compare(&arm(0), &arm(1), None, &question).primary.ratio.map(|ratio| ratio.value)
}
