//! Comparisons of synthetic runs: answers, refusals, sentences.

use super::*;
use crate::testing::RunBuilder;
use proptest::prelude::*;
use punctual_model::{NoiseRecord, Span, SplitMix64, WatchRecord};
use std::sync::Arc;

/// `blocks` blocks of two cells in random order. Latencies of the second are `ratio` times those of the first, with a
/// measurement error of up to `noise`.
fn run(blocks: u32, ratio: f64, noise: f64) -> RunBuilder {
    let mut random = SplitMix64::new(3);
    let mut factor = |ratio: f64| ratio * (noise * (random.below(2_001) as f64 / 1_000.0 - 1.0)).exp();
    let mut run = RunBuilder::new();
    run.cell("messaging", "other").cell("messaging", "fifo:80");
    run.header.plan.repetitions = blocks;
    for block in 0..blocks {
        let mut order = [0, 1];
        if block % 3 == 0 {
            order.swap(0, 1);
        }
        for cell in order {
            let factor = factor(if cell == 1 { ratio } else { 1.0 });
            run.measure(block, cell, |cpu, cycle| {
                let spread = 20_000.0 + ((cycle * 7_919 + u64::from(cpu) * 104_729) % 1_009) as f64 * 10.0;
                i64::try_from(crate::stats::special::whole(spread * factor)).unwrap()
            });
        }
    }
    run
}

fn arm<'a>(run: &'a RunBuilder, cell: usize, name: &str) -> Arm<'a> {
    let entries = run.entries.iter().filter(|entry| entry.planned.cell_index == cell).collect();
    Arm { name: name.to_owned(), entries }
}

fn compared(run: &RunBuilder, question: &Question) -> Comparison {
    compare(&arm(run, 0, "other"), &arm(run, 1, "fifo:80"), None, question)
}

fn asked(run: &RunBuilder) -> Comparison {
    compared(run, &Question::default())
}

#[test]
fn a_large_difference_is_found_and_said_in_times() {
    let found = asked(&run(12, 0.25, 0.1));
    assert_eq!((found.decision.clone(), found.decision.exit_status()), (Decision::Different, 2));
    let ratio = found.primary.ratio.unwrap();
    assert!((ratio.value - 0.25).abs() < 0.03 && ratio.interval.1 < 0.3, "{ratio:?}");
    assert_eq!(found.primary.metric, Metric::Quantile(Level::P99), "4 000 wake-ups have 4 above p99.9");
    let said = found.sentence();
    assert!(said.starts_with("DIFFERENT: fifo:80 is earlier than other: p99 is ") && said.contains(" times lower ("));
    assert!(said.ends_with(" times, 95 %, 12 blocks)."), "{said}");
    assert!(found.remarks().is_empty() && found.secondary.iter().any(|m| m.metric == Metric::Max && m.differs()));
}

#[test]
fn no_difference_is_equivalent_only_when_that_is_shown() {
    let quiet = asked(&run(12, 1.0, 0.02));
    assert_eq!((quiet.decision.clone(), quiet.decision.exit_status()), (Decision::Equivalent, 0));
    assert_eq!(quiet.sentence(), "EQUIVALENT: p99 of fifo:80 and of other differ by less than 25 % (95 %, 12 blocks).");
    let noisy = asked(&run(12, 1.0, 1.0));
    assert!(matches!(noisy.decision, Decision::Undecided { blocks_needed: Some(13..) }), "{:?}", noisy.decision);
    let said = noisy.sentence();
    assert!(said.starts_with("UNDECIDED: p99 of fifo:80 is ") && said.contains("that they are equal. About "));
    assert_eq!(noisy.decision.exit_status(), 3);
}

#[test]
fn what_was_not_seen_may_be_later() {
    let mut lost = run(12, 1.0, 0.02);
    lost.entries[5].record.threads[0].lost = 2_000;
    let mut cut = run(12, 1.0, 0.02);
    cut.entries[5].record.watch = Some(Box::new(WatchRecord { gaps: 1, ..WatchRecord::default() }));
    for run in [lost, cut] {
        let Decision::Refused { why } = asked(&run).decision else { panic!() };
        assert!(matches!(why, Refusal::NotSeen { unseen: 1.. }), "{why:?}");
    }
}

#[test]
fn a_difference_within_the_margin_is_equivalent_and_said() {
    let found = asked(&run(12, 1.08, 0.01));
    assert!(
        found.decision == Decision::Equivalent && found.sentence().ends_with("significant, but smaller than that.")
    );
    let strict = compared(&run(12, 1.08, 0.01), &Question { margin: Some(1.05), ..Question::default() });
    assert_eq!(strict.decision, Decision::Different);
}

#[test]
fn too_few_blocks_are_refused_without_a_ratio() {
    let found = asked(&run(5, 0.25, 0.1));
    assert_eq!(found.decision, Decision::Refused { why: Refusal::FewBlocks { blocks: 5 } });
    assert_eq!((found.primary.ratio, found.secondary.iter().filter(|m| m.ratio.is_some()).count()), (None, 0));
    assert!(found.primary.a.is_some(), "side by side all the same");
    assert!(found.sentence().starts_with("UNDECIDED: 5 blocks with both, 6 are needed "), "{}", found.sentence());
}

#[test]
fn one_after_the_other_cannot_be_told_from_drift() {
    let mut separate = run(8, 0.25, 0.1);
    for entry in separate.entries.iter_mut().filter(|entry| entry.planned.cell_index == 1) {
        entry.record.started_unix_ms += 3_600_000;
    }
    let found = asked(&separate);
    assert_eq!(found.decision, Decision::Refused { why: Refusal::Separate });
    assert!(found.primary.ratio.is_none() && found.sentence().contains("confounded with drift"));
    let forced = compared(&separate, &Question { force: true, ..Question::default() });
    assert_eq!(forced.decision, Decision::Different);
    assert_eq!(
        forced.remarks(),
        ["other was always measured first: carry-over from one to the other is part of the ratio."]
    );
}

#[test]
fn boots_are_units_too() {
    let mut booted = run(8, 0.25, 0.1);
    for entry in booted.entries.iter_mut().filter(|entry| entry.planned.cell_index == 1) {
        Arc::make_mut(&mut entry.record.host_before).boot_id = Some(format!("b{}", entry.planned.block / 2));
    }
    assert_eq!(asked(&booted).decision, Decision::Refused { why: Refusal::FewBoots { boots: 1 } });
    for entry in &mut booted.entries {
        Arc::make_mut(&mut entry.record.host_before).boot_id =
            Some(format!("{}{}", entry.planned.cell_index, entry.planned.block));
    }
    assert_eq!(asked(&booted).decision, Decision::Different, "8 boots of each");
    booted.entries.iter_mut().for_each(|entry| Arc::make_mut(&mut entry.record.host_before).boot_id = None);
    assert_eq!(asked(&booted).decision, Decision::Different, "not known");
}

#[test]
fn a_quantile_needs_wake_ups_above_it_in_every_measurement() {
    let found = compared(&run(8, 0.25, 0.1), &Question { metric: Some(Level::P999), ..Question::default() });
    assert_eq!(found.decision, Decision::Refused { why: Refusal::FewExceedances { have: 4, need: 20 } });
    assert_eq!(
        found.sentence(),
        "UNDECIDED: a measurement has only 4 wake-ups above p99.9, 20 are needed: measure 5 times as long in each \
         block, or use a lower quantile (--metric)."
    );
    let secondary: Vec<_> = found.secondary.iter().map(|m| m.metric).collect();
    assert!(!secondary.contains(&Metric::Quantile(Level::P999)) && secondary.len() == 3);
}

#[test]
fn looked_at_after_every_block_it_takes_more_evidence() {
    let sequential = Question { looked_at_every_block: true, ..Question::default() };
    assert_eq!(compared(&run(6, 0.25, 0.1), &Question::default()).decision, Decision::Different);
    let early = compared(&run(6, 0.25, 0.1), &sequential);
    assert!(matches!(early.decision, Decision::Undecided { .. }) && early.primary.ratio.is_none(), "{early:?}");
    assert!(early.sentence().starts_with("UNDECIDED: no ratio is excluded after 6 blocks."), "{}", early.sentence());
    let later = compared(&run(8, 0.25, 0.1), &sequential);
    assert_eq!(later.decision, Decision::Different);
    assert!((later.primary.ratio.unwrap().p - 1.0 / 28.444_4).abs() < 1e-4);
}

#[test]
fn exchanging_arms_inverts_the_ratio_and_block_numbers_do_not_matter() {
    let mut built = run(10, 0.7, 0.2);
    let (there, back) =
        (asked(&built), compare(&arm(&built, 1, "b"), &arm(&built, 0, "a"), None, &Question::default()));
    let (there, back) = (there.primary.ratio.unwrap(), back.primary.ratio.unwrap());
    assert!((there.value * back.value - 1.0).abs() < 1e-12 && (there.interval.0 * back.interval.1 - 1.0).abs() < 1e-12);
    built.entries.iter_mut().for_each(|entry| entry.planned.block = (entry.planned.block * 3 + 1) % 10);
    assert_eq!(asked(&built).primary.ratio, Some(there));
}

#[test]
fn the_noise_floor_is_the_first_against_itself() {
    let built = run(12, 1.0, 0.1);
    let (a, b) = (arm(&built, 0, "other"), arm(&built, 1, "again"));
    let found = compare(&a, &b, Some(&b), &Question::default());
    let ratio = found.primary.ratio.unwrap();
    assert_eq!(found.noise_floor, Some(ratio.interval));
    assert!(found.remarks()[0].starts_with("Noise floor: two measurements of other differ by 0."));
}

#[test]
fn what_the_machine_was_is_compared_too() {
    let mut built = run(6, 0.25, 0.1);
    for entry in built.entries.iter_mut().filter(|entry| entry.planned.cell_index == 1) {
        Arc::make_mut(&mut entry.record.host_before).governors = vec!["powersave".to_owned()];
    }
    assert_eq!(asked(&built).remarks(), ["Also different: frequency governor (performance and powersave)."]);
}

#[test]
fn missed_due_times_count() {
    // A thread that misses most due times has few late wake-ups, but many late due times.
    let mut built = RunBuilder::new();
    built.cell("none", "other").cell("none", "fifo:80");
    for block in 0..6 {
        built.measure(block, 0, |_, cycle| if cycle % 400 == 0 { 90_000_000 } else { 10_000 });
        built.measure(block, 1, |_, _| 10_000);
    }
    let found = compare(&arm(&built, 1, "fifo:80"), &arm(&built, 0, "other"), None, &Question::default());
    assert!(found.decision == Decision::Different && found.primary.b.unwrap() > 80e6, "{:?}", found.primary);
}

#[test]
fn a_measurement_whose_threads_never_woke_is_the_latest_of_all() {
    let mut built = RunBuilder::new();
    built.cell("none", "idle").cell("none", "fifo:80");
    for block in 0..8 {
        built.measure(block, 0, |_, _| if block == 4 { i64::MAX } else { 70_000_000 });
        built.measure(block, 1, |_, _| 25_000);
    }
    for level in [Level::P50, Level::P99] {
        let question = Question { metric: Some(level), ..Question::default() };
        let found = compare(&arm(&built, 0, "idle"), &arm(&built, 1, "fifo:80"), None, &question);
        assert_eq!(found.decision, Decision::Different, "{level}: {}", found.sentence());
        let starved = built.entries.iter().find(|entry| entry.record.threads[0].recorded == 0).unwrap();
        assert!(response(Metric::Quantile(level), starved).unwrap() > 400e6, "half of a second at least");
    }
}

#[test]
fn as_many_episodes_in_every_block_have_no_ratio_that_is_certain() {
    // Long series of misses, each of which is one episode, however many due times it contains.
    let of_both = |episodes: fn(u32) -> u64| {
        let mut built = RunBuilder::new();
        built.cell("none", "other").cell("none", "fifo:80");
        for block in 0..6 {
            for cell in 0..2 {
                built.measure(block, cell, |_, cycle| 10_000 + i64::try_from(cycle % 97).unwrap() + i64::from(block));
                let entry = built.entries.last_mut().unwrap();
                entry.record.threads[0].episodes.count = if cell == 0 { episodes(block) } else { 1 };
            }
        }
        let found = asked(&built);
        found.secondary.into_iter().find(|metric| metric.metric == Metric::Misses).unwrap()
    };
    let same = of_both(|_| 1);
    assert_eq!((same.a, same.b, same.ratio), (Some(1.0), Some(1.0), None));
    let unlike = of_both(|block| 1 + u64::from(block % 3)).ratio.unwrap();
    assert!(unlike.interval.0 < unlike.interval.1, "{unlike:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The numbers of blocks and their order in the file do not change the answer.
    #[test]
    fn the_names_of_blocks_do_not_matter(seed in any::<u64>(), ratio in 0.5..2.0f64) {
        let before = run(9, ratio, 0.2);
        let mut renamed: Vec<u32> = (0..9).map(|block| block * 3 + 1).collect();
        SplitMix64::new(seed).shuffle(&mut renamed);
        let mut after = before.clone();
        for entry in &mut after.entries {
            entry.planned.block = renamed[usize::try_from(entry.planned.block).unwrap()];
        }
        SplitMix64::new(seed ^ 1).shuffle(&mut after.entries);
        prop_assert_eq!(asked(&after), asked(&before));
    }

    /// Exchanging the cells inverts the ratio and its interval.
    #[test]
    fn exchanging_the_cells_inverts_the_ratio(ratio in 0.5..2.0f64, noise in 0.0..0.4f64) {
        let run = run(9, ratio, noise);
        let one = asked(&run).primary.ratio.unwrap();
        let other = compare(&arm(&run, 1, "fifo:80"), &arm(&run, 0, "other"), None, &Question::default());
        let other = other.primary.ratio.unwrap();
        prop_assert!(one.interval.0 <= one.value && one.value <= one.interval.1);
        let product = [one.value * other.value, one.interval.0 * other.interval.1, one.interval.1 * other.interval.0];
        prop_assert!(product.iter().all(|product| (product - 1.0).abs() < 1e-9), "{one:?} {other:?}");
    }
}

#[test]
fn what_is_of_something_else_is_refused_first_of_all_unless_forced() {
    let mut built = run(12, 0.25, 0.1);
    for entry in built.entries.iter_mut().filter(|entry| entry.planned.cell_index == 1) {
        entry.record.cell.period = "2ms".parse().unwrap();
        Arc::make_mut(&mut entry.record.host_before).cpu_model = Some("Cortex-A76".to_owned());
    }
    let refused = asked(&built);
    assert_eq!(
        (refused.decision.clone(), refused.decision.exit_status()),
        (Decision::Refused { why: Refusal::Incomparable }, 1)
    );
    assert_eq!(
        refused.why_not().unwrap(),
        "not comparable: they differ in period (1ms and 2ms), CPU model (Cortex-A53 and Cortex-A76), so a ratio would \
         be meaningless; --force compares anyway"
    );
    assert!(refused.primary.ratio.is_none() && refused.secondary.iter().all(|metric| metric.ratio.is_none()));
    // With few blocks, or with none, the pair is still refused as incomparable.
    built.entries.retain(|entry| entry.planned.block % 2 == u32::try_from(entry.planned.cell_index).unwrap());
    let (a, b) = (arm(&built, 0, "a"), arm(&built, 1, "b"));
    let apart = compare(&a, &b, None, &Question::default());
    assert_eq!((apart.blocks, apart.why_not().is_some()), (0, true));

    let forced = compared(&run_apart(), &Question { force: true, ..Question::default() });
    assert_eq!((forced.decision.clone(), forced.why_not()), (Decision::Different, None));
    assert_eq!(
        forced.remarks(),
        ["Not comparable (forced): period (1ms and 2ms).", "Also different: deadline (1ms and 2ms)."]
    );
    let asked_for = compared(&run_apart(), &Question { asked: &["period", "policy"], ..Question::default() });
    assert_eq!(asked_for.decision, Decision::Different);
    assert_eq!(asked_for.remarks()[0], "They differ in policy and period: the ratio is their combined effect.");
}

/// Cells of 1 ms and of 2 ms.
fn run_apart() -> RunBuilder {
    let mut built = run(12, 0.25, 0.1);
    let second = built.entries.iter_mut().filter(|entry| entry.planned.cell_index == 1);
    second.for_each(|entry| entry.record.cell.period = "2ms".parse().unwrap());
    built
}

#[test]
fn what_a_plan_varies_is_its_question() {
    let mut built = run_apart();
    built.header.cells[1].period = "2ms".parse().unwrap();
    let found = compare_cells(&built.header, &built.entries, 0, 1, &Question::default());
    assert_eq!((found.decision.clone(), found.why_not()), (Decision::Different, None));
    // A change of the machine between blocks is not an axis of the plan.
    Arc::make_mut(&mut built.entries[15].record.host_before).hypervisor = Some("KVM".to_owned());
    let found = compare_cells(&built.header, &built.entries, 0, 1, &Question::default());
    assert!(found.why_not().unwrap().starts_with("not comparable: they differ in hypervisor ("), "{found:?}");
}

/// Blocks of two loops that never wait: the gaps of the second take `times` as much.
fn noises(times: u64) -> RunBuilder {
    let mut run = run(12, 1.0, 0.1);
    let task = punctual_model::Task::Cyclic(punctual_model::Method::Noise { threshold: None });
    run.header.cells.iter_mut().for_each(|cell| cell.task = task.clone());
    for entry in &mut run.entries {
        entry.record.cell.task = task.clone();
        let lost = (1_000_000 + 10_000 * u64::from(entry.planned.block % 5)) * [1, times][entry.planned.cell_index];
        for thread in &mut entry.record.threads {
            thread.noise = Some(NoiseRecord {
                threshold: Span(1_000),
                lost: Span(lost),
                observed: Span::SECOND,
                ..NoiseRecord::default()
            });
        }
    }
    run
}

#[test]
fn loops_that_never_wait_are_compared_by_what_they_lost() {
    let found = asked(&noises(3));
    let primary = found.primary;
    assert_eq!((primary.metric, found.decision.clone()), (Metric::Lost, Decision::Different));
    assert!(primary.a.is_some_and(|a| (0.001..0.00105).contains(&a)), "{primary:?}");
    assert!(
        found.sentence().starts_with("DIFFERENT: fifo:80 is noisier than other: lost is 3 times higher"),
        "{found:?}"
    );
    assert_eq!(found.secondary.iter().map(|other| other.metric).collect::<Vec<_>>(), [Metric::Max]);
    assert_eq!(asked(&noises(1)).decision, Decision::Equivalent);
    let why = |change: fn(&mut punctual_model::ThreadRecord), metric: Option<Level>| {
        let mut run = noises(3);
        change(&mut run.entries[5].record.threads[0]);
        compared(&run, &Question { metric, ..Question::default() }).sentence()
    };
    assert!(why(|thread| thread.noise = None, None).contains("a thread that never waits did not end"));
    let threshold = why(|thread| thread.noise.as_mut().unwrap().threshold = Span(2_000), None);
    assert!(threshold.contains("UNDECIDED: gaps count above ") && threshold.contains("2 us"), "{threshold}");
    assert!(why(|_| {}, Some(Level::P99)).contains("compare what is lost (without --metric)"));
    let nothing = asked(&noises(0)).sentence();
    assert!(nothing.starts_with("UNDECIDED: a measurement has no gap above the threshold"), "{nothing}");
}
