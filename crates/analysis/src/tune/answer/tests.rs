//! Tests of answers on made measurements.

use super::*;
use crate::testing::RunBuilder;
use crate::tune::{ByValue, RatioOfRuns, ScreenedPair, confirmation, knobs};
use punctual_model::{Level, SplitMix64};

fn screening(candidates: &[bool], interval: (f64, f64)) -> Screened {
    let knob =
        |is_candidate: &bool| ScreenedKnob { ratio: 0.8, interval, p: 0.01, is_candidate: *is_candidate, work: None };
    let knobs: Vec<_> = candidates.iter().map(knob).collect();
    Screened { metric: Metric::Quantile(Level::P50), blocks: 2, runs: 4, block_seconds: None, knobs, pairs: None }
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
    let tuned = tuned(
        &knobs,
        screening(&[true, true, true, false], (0.98, 1.03)),
        &[],
        &confirmed(&[0.5, 2.0, 1.0], 12, 50, 3),
        1,
    );
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
    let few = tuned(&one, screening(&[true], (0.5, 0.9)), &[], &confirmed(&[0.5], 5, 50, 3), 1);
    let six = KnobAnswer::Undecided { blocks_needed: Some(6), seconds_needed: Some(36) };
    assert_eq!(few.knobs[0].answer, six, "5 blocks have no interval");
    assert!(few.knobs[0].sentence.ends_with("about 6 blocks, 36 s would probably decide (--confirm 6)"));
    let none = tuned(&one, screening(&[true], (0.5, 0.9)), &[], &[], 1);
    assert!(matches!(none.knobs[0].answer, KnobAnswer::Undecided { .. }));
    let noisy = tuned(&one, screening(&[true], (0.5, 0.9)), &[], &confirmed(&[0.9], 6, 3_000, 3), 1);
    assert!(matches!(noisy.knobs[0].answer, KnobAnswer::Undecided { blocks_needed: Some(7..), .. }), "{noisy:?}");
    let wide = tuned(&one, screening(&[false], (0.5, 1.4)), &[], &[], 1);
    assert_eq!(wide.knobs[0].answer, KnobAnswer::Undecided { blocks_needed: None, seconds_needed: None });
    assert!(wide.knobs[0].sentence.contains("--blocks"));
}

#[test]
fn knobs_that_do_nothing_are_hardly_ever_named() {
    let three = knobs(3);
    let named = (0..100).filter(|seed| {
        let entries = confirmed(&[1.0, 1.0, 1.0], 8, 800, *seed);
        let tuned = tuned(&three, screening(&[true; 3], (0.5, 1.4)), &[], &entries, 1);
        tuned.knobs.iter().any(|knob| matches!(knob.answer, KnobAnswer::Better | KnobAnswer::Worse))
    });
    // At most 5 expected, standard deviation 2.2.
    assert!(named.count() <= 11);
}

#[test]
fn each_value_has_an_answer_and_the_best_is_advised() {
    let mut knobs = knobs(1);
    knobs[0].between.push("half".to_owned());
    let screened = screening(&[true], (0.4, 0.6));
    let mut entries = confirmed(&[0.7, 0.5], 12, 50, 3);
    entries.retain(|entry| entry.planned.cell_index < 3);
    let tuned = tuned(&knobs, screened, &[], &entries, 3);
    let answers: Vec<_> = tuned.knobs.iter().map(|knob| (knob.knob.changed.as_str(), knob.answer)).collect();
    assert_eq!(answers, [("half", KnobAnswer::Better), ("on", KnobAnswer::Better)]);
    let advised: Vec<_> = tuned.advised().iter().map(|knob| knob.knob.changed.clone()).collect();
    assert_eq!((advised, tuned.is_decided()), (vec!["on".to_owned()], true));
    assert_eq!(tuned.together, None);
}

#[test]
fn intervals_over_several_looks_are_wider() {
    let one = knobs(1);
    let entries = confirmed(&[0.8], 12, 300, 3);
    let [once, thrice] = [1, 3].map(|looks| tuned(&one, screening(&[true], (0.5, 0.9)), &[], &entries, looks));
    let ratio = |tuned: &Tuned| tuned.knobs[0].confirmed.as_ref().unwrap().ratio.unwrap();
    let (once, thrice) = (ratio(&once), ratio(&thrice));
    assert!(thrice.interval.0 < once.interval.0 && thrice.interval.1 > once.interval.1, "{once:?} {thrice:?}");
    assert!((thrice.p - (3.0 * once.p).min(1.0)).abs() < 1e-12 && (thrice.value - once.value).abs() < 1e-12);
}

#[test]
fn what_the_others_add_to_the_best_is_said() {
    let two = knobs(2);
    let mut screened = screening(&[true, true], (0.4, 0.6));
    // `confirmed` multiplies the factors of both: here they add up, below one takes the effect of the other away.
    let entries = confirmed(&[0.5, 0.8], 12, 50, 3);
    let both = tuned(&two, screened.clone(), &[], &entries, 1);
    let added = both.added.as_ref().unwrap();
    assert_eq!((added.best.as_str(), both.knobs[1].answer), ("prepare.k0", KnobAnswer::Better));
    assert!(added.ratio.interval.0 < 0.8 && added.ratio.interval.1 > 0.8, "{added:?}");
    assert!(added.sentence.ends_with("together they are better"), "{added:?}");

    let alone = confirmed(&[0.5, 0.8], 12, 50, 3).into_iter().filter(|entry| entry.planned.cell_index < 3);
    let again = confirmed(&[0.5], 12, 50, 4).into_iter().filter(|entry| entry.planned.cell_index == 1);
    let again = again.map(|mut entry| {
        entry.planned.cell_index = 3;
        entry
    });
    let entries: Vec<Entry> = alone.chain(again).collect();
    let effect = RatioOfRuns { ratio: 0.5, interval: (0.4, 0.6) };
    let by = ByValue { as_is: effect, changed: effect };
    screened.pairs = Some(vec![ScreenedPair { knobs: (0, 1), factor: 1.25, p: 0.01, effects: (by, by) }]);
    let both = tuned(&two, screened, &[], &entries, 1);
    let added = both.added.as_ref().unwrap();
    assert!(added.sentence.contains("no further improvement"), "{added:?}");
    assert!(both.knobs[1].sentence.contains("] with prepare.k0 = leave. Better"), "{:?}", both.knobs[1]);
}

#[test]
fn a_maximum_needs_few_wake_ups() {
    let one = knobs(1);
    let screened = Screened { metric: Metric::Max, ..screening(&[true], (0.4, 0.6)) };
    let mut entries = confirmed(&[0.5], 8, 50, 3);
    let answer = |entries: &[Entry]| tuned(&one, screened.clone(), &[], entries, 1).knobs[0].answer;
    assert_eq!(answer(&entries), KnobAnswer::Better, "100 wake-ups have no p99");
    entries.retain(|entry| entry.planned.block < 5);
    assert_eq!(answer(&entries), KnobAnswer::Undecided { blocks_needed: Some(6), seconds_needed: Some(36) });
}

#[test]
fn the_answer_names_what_helps_or_says_that_nothing_does() {
    let one = knobs(1);
    let answer = |interval, factors: &[f64], noise, blocks| {
        let candidates = vec![true; factors.len()];
        let entries = confirmed(factors, blocks, noise, 3);
        tuned(&knobs(factors.len()), screening(&candidates, interval), &[], &entries, 1).answer().to_string()
    };
    let none = tuned(&one, screening(&[false], (0.98, 1.03)), &[], &[], 1).answer().to_string();
    assert_eq!(none, "no setting found that lowers p50: none of 1 setting tried is better than it is now");
    assert_eq!(answer((0.5, 2.0), &[2.0], 50, 12), none, "worse");
    let few = answer((0.5, 0.9), &[0.5], 50, 5);
    assert!(few.starts_with("cannot tell whether a setting helps: prepare.k0 = on: undecided, p50 "), "{few}");
    assert!(few.ends_with("; about 6 blocks, 36 s would probably decide (--confirm 6)"), "{few}");
    let helps = answer((0.4, 0.6), &[0.5], 50, 12);
    assert!(
        helps.starts_with("prepare.k0 = on lowers p50 to 0.") && helps.ends_with("] times that with leave"),
        "{helps}"
    );
    let both = answer((0.4, 0.6), &[0.8, 0.5], 50, 12);
    assert!(both.starts_with("prepare.k1 = on ") && both.ends_with("; also prepare.k0 = on"), "the best first: {both}");
}
