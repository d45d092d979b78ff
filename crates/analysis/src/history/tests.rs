//! Tests of histories: known sequences, and sequences without a change.

use super::*;
use crate::summarise;
use crate::testing::RunBuilder;
use punctual_model::SplitMix64;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Normal noise.
fn noise(seed: u64, n: usize) -> Vec<f64> {
    let mut bits = SplitMix64::new(seed);
    let mut uniform = move || ((bits.next_bits() >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
    (0..n).map(|_| (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()).collect()
}

fn nightly(charts: usize) -> f64 {
    threshold(Budget::NIGHTLY, Charts(charts))
}

/// Noise of 10 %, with a step to `times` at `at`.
fn step(seed: u64, at: usize, times: f64, n: usize) -> Vec<f64> {
    let noise = noise(seed, n).into_iter().enumerate();
    noise.map(|(index, z)| 9.0 + 0.1 * z + if index >= at { times.ln() } else { 0.0 }).collect()
}

#[test]
fn a_step_is_found_where_it_is_and_its_size_is_told() {
    for seed in 0..20 {
        let [change] = changes(&step(seed, 200, 1.5, 365), nightly(2))[..] else { panic!("seed {seed}") };
        assert!(change.range.0 <= 200 && 200 <= change.range.1, "{change:?}");
        assert!(change.at.abs_diff(200) <= 1 && (200..212).contains(&change.found), "{change:?}");
        assert!(change.interval.0 <= 1.53 && 1.47 <= change.interval.1, "{change:?}");
        assert!((change.ratio - 1.5).abs() < 0.05, "{change:?}");
    }
}

#[test]
fn a_step_back_is_another_change() {
    let mut logs = step(3, 150, 1.4, 300);
    logs.iter_mut().skip(220).for_each(|log| *log -= 1.4_f64.ln());
    let found = changes(&logs, nightly(2));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].ratio > 1.3 && found[1].ratio < 0.8 && found[1].at.abs_diff(220) <= 1, "{found:?}");
}

#[test]
fn a_year_without_a_change_has_at_most_one_alarm() {
    let alarms: Vec<usize> = (0..300).map(|seed| changes(&noise(1_000 + seed, 365), nightly(2)).len()).collect();
    // 300 years of one series with the budget of one alarm in ten years for two sequences.
    assert!(alarms.iter().all(|n| *n <= 1), "{alarms:?}");
    assert!(alarms.iter().sum::<usize>() <= 40, "{alarms:?}");
    assert!((0..300).any(|seed| !changes(&noise(1_000 + seed, 365), 2.5).is_empty()), "the threshold matters");
}

#[test]
fn a_decision_does_not_change_with_later_runs() {
    let logs = step(5, 100, 1.3, 365);
    let all = changes(&logs, nightly(2));
    let found = all.first().unwrap().found;
    assert_eq!(changes(&logs[..found], nightly(2)), []);
    assert_eq!(changes(&logs[..=found], nightly(2)).len(), 1);
}

#[test]
fn outliers_equal_values_and_short_sequences_are_no_changes() {
    let mut outliers = noise(7, 100);
    [30, 31, 60, 99].into_iter().for_each(|index| outliers[index] = 50.0);
    assert_eq!(changes(&outliers, nightly(2)), []);
    assert_eq!(changes(&[9.0; 100], nightly(2)), []);
    let steps: Vec<f64> = (0..FIRST_TEST - 1).map(|index| if index < 10 { 1.0 } else { 9.0 }).collect();
    assert_eq!(changes(&steps, 0.5), []);
    assert_eq!(changes(&[], 0.5), []);
}

#[test]
fn more_series_need_more_evidence() {
    assert!(nightly(2) > 3.5 && nightly(2) < 4.5, "{}", nightly(2));
    assert!(nightly(2_600) > nightly(52) && nightly(52) > nightly(2));
    assert!(threshold(Budget(1.0), Charts(1)) < threshold(Budget(0.1), Charts(1)));
}

#[test]
fn more_than_two_years_are_looked_at_with_a_window() {
    let found = changes(&step(9, 1_500, 1.3, 1_825), nightly(2));
    assert!(found.iter().any(|change| change.at.abs_diff(1_500) <= 2), "{found:?}");
}

/// Runs a day apart whose p99 and maximum are `ns(day)`, on a kernel that changes on day `update`.
fn series(n: u64, update: u64, ns: impl Fn(u64) -> f64) -> Series {
    let facts: BTreeMap<String, String> = [("turbo".to_owned(), "off".to_owned())].into();
    let (old, mut new) = (Arc::new(facts.clone()), facts);
    new.insert("turbo".to_owned(), "on".to_owned());
    let new = Arc::new(new);
    let point = |day: u64| Point {
        run: day,
        cell_index: 0,
        started_unix_ms: day * 86_400_000,
        kernel_release: Some(if day < update { "6.1" } else { "6.12" }.to_owned()),
        facts: Arc::clone(if day < update { &old } else { &new }),
        p99_ns: None,
        p99_interval_ns: None,
        max_ns: Some(70_000),
        max_at_least: false,
        typical_p99_ns: Some(ns(day)),
        typical_max_ns: Some(70_000.0),
        samples: 1_000,
    };
    Series {
        machine: "board7".to_owned(),
        machine_identity: "1".to_owned(),
        cell: "none/other".to_owned(),
        cell_identity: "2".to_owned(),
        details: String::new(),
        points: (0..n).map(point).collect(),
    }
}

#[test]
fn a_change_coincides_with_what_changed_then() {
    let wave = noise(11, 100);
    let ns =
        |day: u64| 10_000.0 * (0.02 * wave[usize::try_from(day).unwrap()]).exp() * if day < 60 { 1.0 } else { 2.0 };
    let histories =
        of_series(vec![series(100, 60, ns), series(100, 30, |_| 5_000.0), series(10, 5, ns)], Budget::NIGHTLY);
    let [changed, unchanged, short] = &histories[..] else { panic!() };
    assert_eq!(
        histories.iter().map(|one| one.standing).collect::<Vec<_>>(),
        [Standing::Changed, Standing::Unchanged, Standing::TooFew]
    );
    let [change] = &changed.changes[..] else { panic!("{:?}", changed.changes) };
    assert_eq!((change.response, change.direction), (Response::P99, Direction::Later));
    assert_eq!((change.since_unix_ms, change.before_unix_ms), (60 * 86_400_000, 59 * 86_400_000));
    let facts: Vec<_> = change.coincides.iter().map(|mark| (mark.fact.as_str(), mark.after.as_str())).collect();
    assert_eq!(facts, [("kernel", "6.12"), ("turbo", "on")]);
    assert_eq!((unchanged.marks.len(), unchanged.changes.len(), short.changes.len()), (2, 0, 0));
}

/// A run of four blocks with about this p99.
fn run(ns: i64) -> RunBuilder {
    run_of(|cycle| ns + i64::try_from(cycle % 10).unwrap())
}

fn run_of(ns: impl Fn(u64) -> i64 + Copy) -> RunBuilder {
    let mut run = RunBuilder::new();
    run.cell("none", "fifo:80");
    run.header.plan.repetitions = 4;
    for block in 0..4 {
        run.measure(block, 0, move |_, cycle| ns(cycle));
    }
    run
}

fn against(ns: i64, earlier: usize, spread: f64) -> String {
    run_against(&run(ns), earlier, spread)
}

fn run_against(run: &RunBuilder, earlier: usize, spread: f64) -> String {
    let mut summary = summarise(&run.header, &run.entries);
    let noise = noise(13, earlier);
    let history = series(u64::try_from(earlier).unwrap(), 0, |day| {
        10_000.0 * (spread * noise[usize::try_from(day).unwrap()]).exp()
    });
    check_against_history(&mut summary, &run.header, &run.entries, &[history.points], Response::P99, None);
    assert_eq!(summary.cases.last().unwrap().limit, "history");
    summary.verdict.to_string()
}

#[test]
fn a_run_is_compared_with_all_earlier_ones() {
    for (ns, earlier, spread, verdict) in [
        (10_000, 30, 0.03, "PASS none/fifo:80: p99 is 1.0"),
        (14_000, 30, 0.03, "FAIL none/fifo:80: p99 is 1.4"),
        (14_000, 30, 0.5, "INCONCLUSIVE: none/fifo:80: p99 is "),
        (10_000, 7, 0.03, "INCONCLUSIVE: none/fifo:80: the store has 7 earlier runs"),
    ] {
        let told = against(ns, earlier, spread);
        assert!(told.contains(verdict), "{told}");
    }
}

#[test]
fn due_times_that_a_stall_missed_count() {
    // Of 1 000 due times 500 are missed, so that most of those before have left a sample.
    let stalled = run_of(|cycle| if cycle == 100 { 500_000_000 } else { 10_000 });
    assert!(run_against(&stalled, 30, 0.03).starts_with("Verdict: FAIL none/fifo:80: p99 is "));
    let mut short = run(10_000);
    let thread = &mut short.entries[1].record.threads;
    thread.iter_mut().for_each(|thread| thread.histogram = punctual_model::Histogram::of(&[10_000]));
    let said = run_against(&short, 30, 0.03);
    assert!(said.contains("none/fifo:80: p99 of a block of this run is unknown"), "{said}");
}

#[test]
fn blocks_are_the_unit_of_a_run() {
    let mut run = run(5_000);
    run.header.plan.repetitions = 5;
    run.measure(4, 0, |cpu, cycle| if cpu == 1 && cycle == 700 { 8_000_000 } else { 5_000 });
    let blocks = blocks(&run.entries, 0);
    assert_eq!((blocks.len(), blocks[4].block, blocks[4].max_ns), (5, 4, Some(8_000_000)));
    let max = typical(blocks.iter().map(|block| block.max_ns)).unwrap();
    // One block of five: the fifth root of 1600.
    assert!((max / 5_009.0 - (8_000_000.0_f64 / 5_009.0).powf(0.2)).abs() < 0.01, "{max}");
    assert!(super::blocks(&run.entries, 1).is_empty() && typical([]).is_none());
}
