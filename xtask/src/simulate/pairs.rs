//! S7: false alarms and power of paired comparisons, evaluated once or after every block.

use super::noise::Noise;
use super::{Expected, ResultRow, Scale, counted, counted_on, holds};
use punctual_analysis::paired::{ENOUGH_EVIDENCE, decided_after, evidence_of, hodges_lehmann, signed_rank};

/// Number of blocks of a sequence that is evaluated repeatedly.
const MOST: usize = 40;

pub(super) fn run(scale: Scale) -> Vec<ResultRow> {
    let mut rows = looks(scale);
    rows.extend(intervals(scale));
    rows
}

/// Differences of `effect` standard deviations.
fn differences(n: usize, effect: f64, noise: &mut Noise) -> Vec<f64> {
    (0..n).map(|_| effect + noise.normal()).collect()
}

fn looks(scale: Scale) -> Vec<ResultRow> {
    let (few, many) = (scale.of(600), scale.of(4_000));
    let mut rows = Vec::new();
    // Effect; share found by evaluating after every block, once at 40, at three looks (Pocock), by the e-process; the
    // median number of blocks at which the last decides.
    for (effect, peeking, fixed, pocock, sequential, stop) in [
        (0.0, Some(0.242), 0.05, 0.05, 0.021, None),
        (0.5, None, 0.88, 0.80, 0.40, None),
        (1.0, None, 1.0, 1.0, 0.97, Some(16.0)),
        (2.0, None, 1.0, 1.0, 1.0, Some(8.0)),
    ] {
        let mut noise = Noise::new(2_707);
        let share = |p| Expected::Share(p, 600);
        let name = format!("effect {effect} sd: ");
        let shares = [
            ("looking after every block", peeking.map_or(Expected::Unknown, share)),
            ("once, after 40 blocks", share(fixed)),
            ("three looks at 2.21 %", share(pocock)),
        ];
        rows.extend(counted_on(&mut noise, &name, few, shares, |noise| {
            let all = differences(MOST, effect, noise);
            let p = |n: usize| signed_rank(&all[..n]).map_or(1.0, |test| test.p);
            [(6..=MOST).any(|n| p(n) < 0.05), p(MOST) < 0.05, [10, 20, 40].into_iter().any(|n| p(n) < 0.0221)]
        }));
        let stops: Vec<usize> =
            (0..many).filter_map(|_| decided_after(&differences(MOST, effect, &mut noise))).collect();
        let decided = u32::try_from(stops.len()).unwrap_or(many);
        let expected = Expected::Share(sequential, 4_000);
        rows.push(ResultRow::share(format!("{name}the e-process, ever"), decided, many, expected));
        if let Some(stop) = stop {
            let mut stops = stops;
            stops.sort_unstable();
            let median = stops.get(stops.len() / 2).copied().unwrap_or(0) as f64;
            let what = format!("{name}median block at which the e-process decides");
            rows.push(ResultRow { what, got: median, runs: many, expected: Expected::Value(stop, 0.08) });
        }
    }
    let streak = evidence_of(&[1.0; 8]) >= ENOUGH_EVIDENCE && evidence_of(&[1.0; 7]) < ENOUGH_EVIDENCE;
    rows.push(ResultRow::share("8 wins in a row decide, 7 do not", u32::from(streak), 1, Expected::Value(1.0, 0.0)));
    rows
}

fn intervals(scale: Scale) -> Vec<ResultRow> {
    let runs = scale.of(4_000);
    let mut rows = Vec::new();
    for (n, power) in [(6, 0.36), (8, 0.61), (12, 0.85), (16, 0.94), (24, 1.0)] {
        let holds = |effect: Option<punctual_analysis::paired::Effect>, truth: f64| {
            effect.is_some_and(|effect| holds((effect.lower, effect.upper), truth))
        };
        let shares = [
            ("the interval holds", Expected::AtLeast(0.945)),
            ("the interval holds, heavy tails", Expected::AtLeast(0.956)),
            ("an effect of 1 sd is found", Expected::Share(power, 4_000)),
        ];
        rows.extend(counted(&format!("{n} blocks: "), runs, 2_708, shares, |noise| {
            let effect = hodges_lehmann(&differences(n, 1.0, noise), 0.95);
            let tails: Vec<f64> = (0..n).map(|_| noise.heavy()).collect();
            [holds(effect, 1.0), holds(hodges_lehmann(&tails, 0.95), 0.0), !holds(effect, 0.0)]
        }));
    }
    rows
}
