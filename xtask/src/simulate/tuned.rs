//! S10: whole experiments of `punctual tune`, with knobs whose effects are known, through its own analysis.

use super::noise::Noise;
use super::scaled::scaled;
use super::{Expected, ResultRow, Scale};
use punctual_analysis::Level;
use punctual_analysis::comparison::Metric;
use punctual_analysis::testing::RunBuilder;
use punctual_analysis::tune::{KnobAnswer, Tuned, confirmation, design, least_blocks, screened, tuned};
use punctual_model::{CpuSet, Entry, Knob, Planned, Span};

/// Experiments of each row.
const EXPERIMENTS: u32 = 1_000;

/// Blocks of the screening and of the confirmation, as with `--quick`.
pub(super) const BLOCKS: [u32; 2] = [2, 8];

/// Standard deviation of a measurement, as a logarithm.
const NOISE: f64 = 0.15;

/// Experiments of each row on a recording, and the most measurements of one: all combinations of four knobs, then each
/// knob, all together, and the machine as it is.
const REAL_EXPERIMENTS: u32 = 250;
pub(super) const LONGEST: usize = 2 * 16 + 8 * 6;

const P50: Metric = Metric::Quantile(Level::P50);

/// The noise of a machine from measurement to measurement.
#[derive(Debug, Clone, Copy)]
enum Machine {
    /// Normal, with a drift by a quarter over a hundred measurements.
    Drift,
    /// Student's t with 2.5 degrees of freedom.
    Heavy,
    /// Neighboring measurements are correlated by 0.8.
    Correlated,
}

const MACHINES: [(Machine, &str); 3] =
    [(Machine::Drift, "drift"), (Machine::Heavy, "heavy tails"), (Machine::Correlated, "correlation")];

pub(super) fn run(scale: Scale) -> Vec<ResultRow> {
    let runs = scale.of(EXPERIMENTS);
    let mut rows = Vec::new();
    for (machine, called) in MACHINES {
        for n in [1, 4, 8] {
            let name = format!("{called}, {n} knobs without effect: any named");
            rows.push(ResultRow::share(name, named(machine, n, 1, runs), runs, Expected::AtMost(0.05)));
        }
        let name = format!("{called}, 4 knobs without effect, up to three looks: any named");
        rows.push(ResultRow::share(name, named(machine, 4, 3, runs), runs, Expected::AtMost(0.05)));
        rows.extend(acting(machine, called, runs));
    }
    rows
}

/// Experiments in which any of `n` knobs without effect is named, at any of up to this number of looks.
fn named(machine: Machine, n: usize, looks: u32, runs: u32) -> u32 {
    let knobs = knobs(n);
    let is_named = |seed: &u64| {
        let mut source = source(machine, vec![1.0; n], 4_404 + 2 * seed);
        let tuned = experiment(&knobs, P50, &mut source, *seed, &mut Noise::new(4_405 + 2 * seed), looks);
        tuned.is_ok_and(|tuned| tuned.knobs.iter().any(|knob| is_an_effect(knob.answer)))
    };
    count((0..u64::from(runs)).filter(is_named).count())
}

/// One knob of four with an effect as large as a row says: found, and with an interval that holds it.
fn acting(machine: Machine, called: &str, runs: u32) -> Vec<ResultRow> {
    let knobs = knobs(4);
    let mut rows = Vec::new();
    for (factor, least) in [(0.7, 0.5), (0.5, 0.8)] {
        let (mut found, mut held, mut other) = (0, 0, 0);
        for seed in 0..u64::from(runs) {
            let mut source = source(machine, vec![factor, 1.0, 1.0, 1.0], 9_908 + 2 * seed);
            let mut noise = Noise::new(9_909 + 2 * seed);
            let Ok(tuned) = experiment(&knobs, P50, &mut source, seed, &mut noise, 1) else { continue };
            let ratio = tuned.knobs[0].confirmed.as_ref().and_then(|confirmed| confirmed.ratio);
            found += u32::from(tuned.knobs[0].answer == KnobAnswer::Better);
            held += u32::from(ratio.is_some_and(|ratio| ratio.interval.0 <= factor && ratio.interval.1 >= factor));
            other += u32::from(tuned.knobs[1..].iter().any(|knob| is_an_effect(knob.answer)));
        }
        let name = |what: &str| format!("{called}, one of 4 acts, {factor} times: {what}");
        rows.push(ResultRow::share(name("better"), found, runs, Expected::AtLeast(least)));
        rows.push(ResultRow::share(name("interval holds it"), held, runs, Expected::Unknown));
        rows.push(ResultRow::share(name("any other named"), other, runs, Expected::AtMost(0.05)));
    }
    rows
}

pub(super) fn is_an_effect(answer: KnobAnswer) -> bool {
    matches!(answer, KnobAnswer::Better | KnobAnswer::Worse | KnobAnswer::MoreMisses)
}

/// Knobs with these positions as names.
fn knobs(n: usize) -> Vec<Knob> {
    let knob = |n: usize| Knob::of(format!("prepare.k{n}"), vec!["leave".into(), "on".into()]);
    (0..n).filter_map(|n| knob(n).ok()).collect()
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Experiments with knobs that do nothing, on real measurements of one cell that follow each other, and with a first
/// knob that multiplies every latency by 0.7.
pub(super) fn of_recording(name: &str, entries: &[Entry]) -> Vec<ResultRow> {
    let knobs = knobs(4);
    let mut rows = Vec::new();
    for level in [Level::P50, Level::P99] {
        for factor in [1.0, 0.7] {
            let mut noise = Noise::new(4_406);
            let (mut named, mut found) = (0, 0);
            for seed in 0..u64::from(REAL_EXPERIMENTS) {
                let mut at = noise.below(entries.len() - LONGEST + 1);
                let mut source = |levels: &[bool]| {
                    at += 1;
                    let entry = &entries[at - 1];
                    if levels[0] && factor < 1.0 { scaled(entry, factor) } else { entry.clone() }
                };
                let Ok(tuned) = experiment(&knobs, Metric::Quantile(level), &mut source, seed, &mut noise, 1) else {
                    continue;
                };
                let idle = if factor < 1.0 { &tuned.knobs[1..] } else { &tuned.knobs[..] };
                named += u32::from(idle.iter().any(|knob| is_an_effect(knob.answer)));
                found += u32::from(tuned.knobs[0].answer == KnobAnswer::Better);
            }
            let row = |what: String, n, expected| ResultRow::share(what, n, REAL_EXPERIMENTS, expected);
            let what = format!("{name}, tune, {level}, first knob {factor} times");
            rows.push(row(format!("{what}: others named"), named, Expected::AtMost(0.05)));
            if factor < 1.0 {
                rows.push(row(format!("{what}: found"), found, Expected::Unknown));
            }
        }
    }
    rows
}

/// One experiment. `source` measures a combination of levels; measurements are made in random order within blocks, as
/// `punctual tune` does; after one, two and four times the blocks of the confirmation, as many as `looks`, an answer
/// for all knobs ends it. Errors: if the screening cannot be evaluated.
pub(super) fn experiment(
    knobs: &[Knob],
    metric: Metric,
    source: &mut dyn FnMut(&[bool]) -> Entry,
    seed: u64,
    noise: &mut Noise,
    looks: u32,
) -> Result<Tuned, String> {
    let design = design(knobs).ok_or("no design")?;
    let entries = measured(&design.runs, BLOCKS[0], source, noise);
    let screening = screened(knobs, metric, &entries, seed)?;
    let candidates = screening.candidates();
    let is_changed = |values: &Vec<&str>| -> Vec<bool> {
        values.iter().zip(knobs).map(|(value, knob)| *value != knob.as_is).collect()
    };
    let cells: Vec<_> = confirmation(knobs, &candidates).iter().map(is_changed).collect();
    let first = BLOCKS[1].max(least_blocks(knobs, &candidates, looks));
    let (mut confirmed, mut done) = (Vec::new(), 0);
    for look in 0..looks {
        if candidates.is_empty() {
            break;
        }
        let more = measured(&cells, (first << look) - done, source, noise);
        let later = |mut entry: Entry| {
            entry.planned.block += done;
            entry
        };
        confirmed.extend(more.into_iter().map(later));
        done = first << look;
        let tuned = tuned(knobs, screening.clone(), &entries, &confirmed, looks);
        if tuned.is_decided() {
            return Ok(tuned);
        }
    }
    Ok(tuned(knobs, screening, &entries, &confirmed, looks))
}

fn measured(
    cells: &[Vec<bool>],
    blocks: u32,
    source: &mut dyn FnMut(&[bool]) -> Entry,
    noise: &mut Noise,
) -> Vec<Entry> {
    let mut entries = Vec::new();
    for block in 0..blocks {
        let mut order: Vec<usize> = (0..cells.len()).collect();
        noise.shuffle(&mut order);
        for (position, cell_index) in (0..).zip(order) {
            let planned = Planned { block, position, cell_index };
            entries.push(Entry { planned, ..source(&cells[cell_index]) });
        }
    }
    entries
}

/// Measurements of 100 cycles whose latencies are multiplied by the noise and by the factors of the changed knobs.
fn source(machine: Machine, factors: Vec<f64>, seed: u64) -> impl FnMut(&[bool]) -> Entry {
    let mut noise = Noise::new(seed);
    let mut run = RunBuilder::new();
    run.cell("none", "other");
    run.header.cells[0].duration = Span(100_000_000);
    run.header.cells[0].cpus = [0].into_iter().collect::<CpuSet>();
    let (mut made, mut state) = (0.0, noise.normal());
    move |levels| {
        made += 1.0;
        let logarithm = match machine {
            Machine::Drift => NOISE * noise.normal() + 0.25 * made / 100.0,
            Machine::Heavy => NOISE * noise.heavy(),
            Machine::Correlated => {
                state = 0.8 * state + 0.6 * noise.normal();
                NOISE * state
            }
        };
        let factor: f64 =
            levels.iter().zip(&factors).filter(|(changed, _)| **changed).map(|(_, factor)| factor).product();
        let base = 20_000.0 * factor * logarithm.clamp(-5.0, 5.0).exp();
        run.entries.clear();
        #[expect(clippy::cast_possible_truncation, reason = "some microseconds")]
        run.measure(0, 0, |_, cycle| base as i64 + i64::try_from(cycle).unwrap_or(0));
        run.entries.swap_remove(0)
    }
}
