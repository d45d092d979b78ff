//! Experiments with real knobs that act, resampled from one long recording of all their combinations.
//!
//! The recording is the screening of `punctual tune --blocks 60` with two to four knobs: every combination in every
//! block. Each experiment draws blocks at random for its screening and its confirmation; the effect of a knob alone is
//! the median over all blocks that it did not draw. So both are of the same hours of the machine, but of different
//! measurements.
//!
//! Each experiment is evaluated in several [`Extent`]s. The effect in the other blocks is an estimate, too: in
//! the longest one of a recording of 60 blocks it comes from 36, beside 12, so that 95 % intervals hold it in 91 %.

use super::noise::Noise;
use super::recorded::entries_of;
use super::tuned::{BLOCKS, is_an_effect};
use super::{Expected, ResultRow};
use punctual_analysis::Level;
use punctual_analysis::comparison::{Metric, Question, ratio_of};
use punctual_analysis::factorial::Design;
use punctual_analysis::tune::{KnobAnswer, confirmation, design, least_blocks, screened, tuned};
use punctual_model::{Ended, Entry, Knob};
use std::path::Path;

/// Experiments on a recording.
const EXPERIMENTS: u32 = 20;

/// Blocks of an experiment, as with options of `punctual tune`.
#[derive(Debug, Clone, Copy)]
struct Extent {
    options: &'static str,
    /// Blocks of the screening and of the confirmation.
    blocks: [u32; 2],
}

const EXTENTS: [Extent; 3] = [
    Extent { options: "--quick", blocks: BLOCKS },
    Extent { options: "default", blocks: [3, 12] },
    Extent { options: "--blocks 12", blocks: [12, 12] },
];

/// Blocks that a recording needs: some for the effect beside those of the longest experiment.
const LEAST_BLOCKS: usize = 40;

/// Counts on the recordings in these directories. A word like `max` or `p99` before a directory is the number that is
/// compared from there on; at first it is the median.
pub(super) fn run(arguments: &[&str]) -> Result<Vec<ResultRow>, String> {
    let (mut rows, mut metric) = (Vec::new(), Metric::Quantile(Level::P50));
    for argument in arguments {
        match (*argument, argument.parse()) {
            ("max", _) => metric = Metric::Max,
            (_, Ok(level)) => metric = Metric::Quantile(level),
            (dir, Err(_)) => {
                let (header, entries) = entries_of(Path::new(dir))?;
                let recording = Recording::of(dir, metric, &header.plan.knobs, &entries)?;
                for extent in EXTENTS {
                    rows.extend(recording.rows(extent)?);
                }
            }
        }
    }
    Ok(rows)
}

/// All combinations of some knobs, measured in many blocks.
struct Recording<'a> {
    metric: Metric,
    knobs: &'a [Knob],
    /// Measurements by block, then by combination, in the order of the design.
    blocks: Vec<Vec<&'a Entry>>,
    design: Design,
}

/// Counts of the answers for one knob.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Experiments that name an effect, and those that exclude one beyond the margin.
    named: u32,
    excluded: u32,
    /// Experiments that say how large an effect can be at most, of [`Counts::excluded`], and are right.
    right: u32,
    /// Experiments that confirm the knob, and those of them whose interval holds the effect.
    confirmed: u32,
    held: u32,
    /// Experiments with an interval of the work of the load, those of them whose interval holds the ratio, and those
    /// whose interval excludes 1.
    worked: u32,
    work_held: u32,
    work_differs: u32,
}

impl<'a> Recording<'a> {
    fn of(dir: &str, metric: Metric, knobs: &'a [Knob], entries: &'a [Entry]) -> Result<Recording<'a>, String> {
        let design = design(knobs).ok_or_else(|| format!("{dir}: no screening of punctual tune"))?;
        let last = entries.iter().map(|entry| entry.planned.block).max().unwrap_or(0);
        let whole = |block: u32| -> Option<Vec<&Entry>> {
            let of_cell = |cell: usize| {
                entries.iter().find(|entry| {
                    (entry.planned.block, entry.planned.cell_index) == (block, cell)
                        && entry.record.ended == Ended::Completed
                })
            };
            (0..design.runs.len()).map(of_cell).collect()
        };
        let blocks: Vec<_> = (0..=last).filter_map(whole).collect();
        if !(2..=4).contains(&knobs.len()) || blocks.len() < LEAST_BLOCKS {
            return Err(format!("{dir}: expected a screening of 2 to 4 knobs in {LEAST_BLOCKS} blocks at least"));
        }
        Ok(Recording { metric, knobs, blocks, design })
    }

    /// The combination with these values.
    fn cell(&self, values: &[&str]) -> Result<usize, String> {
        let levels = values.iter().zip(self.knobs).map(|(value, knob)| *value != knob.as_is).collect::<Vec<_>>();
        self.design.runs.iter().position(|run| *run == levels).ok_or_else(|| "a combination is missing".to_owned())
    }

    /// Measurements of these combinations in these blocks, as a run of its own.
    fn dealt(&self, cells: &[usize], blocks: &[usize]) -> Vec<Entry> {
        let mut dealt = Vec::new();
        for (number, block) in (0..).zip(blocks) {
            for (index, cell) in cells.iter().enumerate() {
                let mut entry = Entry::clone(self.blocks[*block][*cell]);
                (entry.planned.block, entry.planned.cell_index) = (number, index);
                dealt.push(entry);
            }
        }
        dealt
    }

    fn cells_of_confirmation(&self, candidates: &[usize]) -> Result<Vec<usize>, String> {
        confirmation(self.knobs, candidates).iter().map(|values| self.cell(values)).collect()
    }

    /// The work of the load with a knob changed, over all values of the others, divided by that with it as it is.
    fn work(&self, knob: usize, blocks: &[usize]) -> Option<f64> {
        let cells: Vec<usize> = (0..self.design.runs.len()).collect();
        let entries = self.dealt(&cells, blocks);
        let screened = screened(self.knobs, self.metric, &entries, 1).ok()?;
        screened.knobs.get(knob)?.work.map(|work| work.ratio)
    }

    fn rows(&self, extent: Extent) -> Result<Vec<ResultRow>, String> {
        let Extent { options, blocks: [screening_blocks, confirmation_blocks] } = extent;
        let whole = |blocks: u32| usize::try_from(blocks).unwrap_or(usize::MAX);
        let all_cells: Vec<usize> = (0..self.design.runs.len()).collect();
        let mut noise = Noise::new(4_407);
        let mut counts = vec![Counts::default(); self.knobs.len()];
        for seed in 0..u64::from(EXPERIMENTS) {
            let mut order: Vec<usize> = (0..self.blocks.len()).collect();
            noise.shuffle(&mut order);
            let (drawn, rest) = order.split_at(whole(screening_blocks));
            let screening = self.dealt(&all_cells, drawn);
            let screened = screened(self.knobs, self.metric, &screening, seed)?;
            let candidates = screened.candidates();
            let cells = self.cells_of_confirmation(&candidates)?;
            let done = whole(confirmation_blocks.max(least_blocks(self.knobs, &candidates, 1)));
            let confirmed = self.dealt(&cells, &rest[..done]);
            let tuned = tuned(self.knobs, screened, &screening, &confirmed, 1);
            for (index, (knob, count)) in tuned.knobs.iter().zip(&mut counts).enumerate() {
                let pair = self.dealt(&self.cells_of_confirmation(&[index])?, &rest[done..]);
                let effect = effect(self.metric, &pair).ok_or("too few blocks for the effect of a knob")?;
                if let Some((work, effect)) = knob.screened.work.zip(self.work(index, &rest[done..])) {
                    let (low, high) = work.interval;
                    count.worked += 1;
                    count.work_held += u32::from((low..=high).contains(&effect));
                    count.work_differs += u32::from(low > 1.0 || high < 1.0);
                }
                count.named += u32::from(is_an_effect(knob.answer));
                if let KnobAnswer::NoEffect { beyond } = knob.answer {
                    count.excluded += 1;
                    count.right += u32::from(effect.ln().abs() <= beyond.ln_1p());
                }
                if let Some(ratio) = knob.confirmed.as_ref().and_then(|confirmed| confirmed.ratio) {
                    count.confirmed += 1;
                    count.held += u32::from((ratio.interval.0..=ratio.interval.1).contains(&effect));
                }
            }
        }
        let mut rows = Vec::new();
        for (index, (knob, count)) in self.knobs.iter().zip(counts).enumerate() {
            let name = knob.key.rsplit('/').next().unwrap_or(&knob.key);
            let all: Vec<usize> = (0..self.blocks.len()).collect();
            let effect = effect(self.metric, &self.dealt(&self.cells_of_confirmation(&[index])?, &all)).unwrap_or(1.0);
            let share = |what: &str, n, of| {
                let name = format!("{name} ({effect:.3} times), {options}: {what}");
                (of > 0).then(|| ResultRow::share(name, n, of, Expected::Unknown))
            };
            rows.extend(share("named", count.named, EXPERIMENTS));
            rows.extend(share("no effect", count.excluded, EXPERIMENTS));
            rows.extend(share("no effect, rightly", count.right, count.excluded));
            rows.extend(share("interval holds the effect", count.held, count.confirmed));
            let work = self.work(index, &all).map_or(String::new(), |work| format!("work ({work:.3} times)"));
            rows.extend(share(&format!("{work} differs"), count.work_differs, count.worked));
            rows.extend(share(&format!("{work} held"), count.work_held, count.worked));
        }
        Ok(rows)
    }
}

/// The ratio of the second cell to the first.
fn effect(metric: Metric, entries: &[Entry]) -> Option<f64> {
    let arm = |cell: usize| punctual_analysis::comparison::Arm {
        name: cell.to_string(),
        entries: entries.iter().filter(|entry| entry.planned.cell_index == cell).collect(),
    };
    let question = Question { force: true, ..Question::default() };
    ratio_of(metric, &arm(0), &arm(1), &question).0.map(|ratio| ratio.value)
}
