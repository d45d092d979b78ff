//! Documentation test: every sentence of the statistics has an example in the documents, with advice.

use crate::comparison::{Comparison, Decision, Measured, Metric, Ratio, Refusal};
use crate::findings::{ImportedFinding, examples};
use crate::search::enough::Outlook;
use crate::search::shortfall::{Lack, Shortfall};
use crate::stats::course::Measure;
use crate::summary::due_time::View;
use crate::testing::cell;
use crate::verdict::{Gap, Kept, Verdict, Violation};
use punctual_model::{Level, OpenActivation, OpenKind, Span};

const FINDINGS: &str = include_str!("../../../docs/findings.md");
const STATISTICS: &str = include_str!("../../../docs/statistics.md");
const COMPARE: &str = include_str!("../../../docs/compare.md");

/// A document as one line of words, without its markup.
fn words(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !matches!(c, '*' | '`')).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn assert_documented(document: &str, sentences: &[String]) {
    let document = words(document);
    let missing: Vec<_> = sentences.iter().filter(|sentence| !document.contains(&words(sentence))).collect();
    assert!(missing.is_empty(), "without an example: {missing:#?}");
}

/// Largest length of a finding, bytes.
const LONG: usize = 180;

#[test]
fn findings_have_their_examples() {
    let (of_statistics, of_others) = (words(STATISTICS), words(FINDINGS));
    for sentence in examples().iter().map(ToString::to_string) {
        let places = [&of_statistics, &of_others].map(|document| document.contains(&words(&sentence)));
        assert!(places[0] != places[1], "it has to stand in one of them: {sentence}");
        assert!(sentence.len() <= LONG && !sentence.contains("  "), "{}: {sentence}", sentence.len());
    }
}

#[test]
fn findings_of_imports_have_their_examples() {
    let findings = [
        ImportedFinding::Beyond { samples: Some(2), at_least_ns: 100_000 },
        ImportedFinding::Beyond { samples: None, at_least_ns: 100_000 },
        ImportedFinding::AbovePeriod { mean_ns: 10_738_000.0, period_ns: 1_000_000 },
        ImportedFinding::SharedCpu { cpu: 0, threads: 2 },
        ImportedFinding::NoCourse,
        ImportedFinding::CourseNotTested,
        ImportedFinding::LatencyChanged { what: Measure::P99, after_percent: 50, before_ns: 12_000, after_ns: 18_000 },
        ImportedFinding::LatencyDrifts { what: Measure::P99, before_ns: 48_000, after_ns: 77_000 },
        ImportedFinding::LatencyInWaves { what: Measure::P50 },
        ImportedFinding::Unknown { facts: vec!["period", "load"] },
        ImportedFinding::Resolution { resolution_ns: 1_000 },
        ImportedFinding::FewSamples { level: Level::P999, n_eff: 2_000 },
    ];
    assert_documented(FINDINGS, &findings.map(|finding| finding.to_string()));
}

/// The cell of the examples.
fn of_cell() -> String {
    "none/fifo:80".to_owned()
}

fn kept() -> [Kept; 5] {
    [
        Kept::Max {
            cell: of_cell(),
            limit_ns: 1_000_000,
            value_ns: 96_000,
            measured_ns: 80_000_000_000,
            upper_per_hour: 135.0,
        },
        Kept::Quantile { cell: of_cell(), level: Level::P99, view: View::Both, limit_ns: 200_000, upper_ns: 48_000 },
        Kept::Late {
            cell: of_cell(),
            level: Level::P99,
            view: View::DueTimes,
            limit_ns: 20_000_000,
            late: 0,
            of: 8_000,
            at_most: 0.0075,
        },
        Kept::MissesPerHour { cell: of_cell(), limit_per_hour: 200.0, upper_per_hour: 135.0 },
        Kept::NotLater {
            cell: of_cell(),
            said: "EQUIVALENT: p99 of none/fifo:80 and of the baseline differ by less than 25 % (95 %, 12 blocks)"
                .to_owned(),
        },
    ]
}

fn violations() -> [Violation; 5] {
    [
        Violation::Max { cell: of_cell(), limit_ns: 50_000, value_ns: 96_000, at_least: false },
        Violation::Quantile {
            cell: of_cell(),
            level: Level::P99,
            view: View::DueTimes,
            limit_ns: 30_000,
            value_ns: 44_000,
            lower_ns: 39_000,
        },
        Violation::Late {
            cell: of_cell(),
            level: Level::P99,
            view: View::DueTimes,
            limit_ns: 20_000_000,
            late: 4_300,
            of: 8_000,
            at_least: 0.013,
        },
        Violation::MissesPerHour { cell: of_cell(), limit_per_hour: 1.0, episodes: 4, lower_per_hour: 49.0 },
        Violation::Later {
            cell: of_cell(),
            ratio: 1.8,
            said: "DIFFERENT: none/fifo:80 is later than the baseline: p99 is 1.8 times higher (1.5 to 2.2 times, 95 %, 12 \
                   blocks)"
                .to_owned(),
        },
    ]
}

fn gaps() -> Vec<Gap> {
    let rate = |episodes, upper_per_hour, hours_needed| Gap::MissesPerHour {
        cell: of_cell(),
        limit_per_hour: 1.0,
        episodes,
        hours: 80.0 / 3600.0,
        upper_per_hour,
        hours_needed,
    };
    let quantile = |interval_ns| Gap::Quantile {
        cell: of_cell(),
        level: Level::P99,
        view: View::Both,
        limit_ns: 45_000,
        interval_ns,
        late: None,
    };
    let counted = |late, more_ns| Gap::Quantile {
        cell: of_cell(),
        level: Level::P99,
        view: View::DueTimes,
        limit_ns: 20_000_000,
        interval_ns: None,
        late: Some(crate::verdict::Count { late, of: 4_000, n_eff: 200, more_ns }),
    };
    vec![
        quantile(Some((39_000, 48_000))),
        quantile(None),
        counted(0, Some(2_000_000_000)),
        counted(60, None),
        Gap::Unsteady { cell: of_cell(), level: Level::P99 },
        rate(0, 135.0, Some(3.0)),
        rate(1, 251.0, None),
        Gap::Incomplete { done: 11, planned: 12 },
        Gap::Incomplete { done: 0, planned: 0 },
        Gap::Skipped { cells: 2, why: "fifo:80 needs CAP_SYS_NICE; run as root".to_owned() },
        Gap::Untold { cell: of_cell(), why: "the baseline has no cell like it".to_owned() },
        Gap::NoSamples { cell: of_cell() },
        Gap::Load { cell: of_cell(), load: "messaging".to_owned(), what: "1 of 400 processes ended".to_owned() },
        Gap::Lost { cell: of_cell(), lost: 3 },
        Gap::NotSeen { cell: of_cell(), unseen: 3_893, due: 8_000 },
        Gap::Open { cell: of_cell(), at_least_ns: 3_000_000_000 },
        Gap::NeverAnswered { cell: of_cell(), never: 12 },
        Gap::Unfinished {
            cell: of_cell(),
            thread: "control".to_owned(),
            open: OpenActivation {
                kind: OpenKind::Activation,
                at_least: Span(6_000_000_000),
                doing: "sleeps in futex".to_owned(),
            },
        },
        Gap::Ended {
            cell: of_cell(),
            what: "the program ended after 1.85 s of 8 s (signal: 11 (SIGSEGV) (core dumped))".to_owned(),
        },
    ]
}

#[test]
fn verdicts_have_their_examples() {
    let (kept, violations, gaps) = (kept(), violations(), gaps());
    // The match is exhaustive, so that a new kind of gap does not compile here without an example.
    let is_known = |gap: &Gap| match gap {
        Gap::Incomplete { .. }
        | Gap::Skipped { .. }
        | Gap::Untold { .. }
        | Gap::NoSamples { .. }
        | Gap::Load { .. }
        | Gap::Lost { .. }
        | Gap::NotSeen { .. }
        | Gap::Open { .. }
        | Gap::Unfinished { .. }
        | Gap::Ended { .. }
        | Gap::NeverAnswered { .. }
        | Gap::Quantile { .. }
        | Gap::Unsteady { .. }
        | Gap::MissesPerHour { .. } => true,
    };
    assert!(gaps.iter().all(is_known));
    let mut sentences: Vec<String> = Vec::new();
    sentences.extend(kept.map(|kept| Verdict::Pass { kept: vec![kept] }.to_string()));
    sentences.extend(violations.map(|violation| Verdict::Fail { violations: vec![violation] }.to_string()));
    sentences.extend(gaps.into_iter().map(|gap| Verdict::Inconclusive { gaps: vec![gap] }.to_string()));
    assert_documented(STATISTICS, &sentences);
}

#[test]
fn what_is_said_before_and_what_is_missing_have_their_examples() {
    let mut cell = cell("none", "other");
    cell.duration = Span(10_000_000_000);
    let minutes = |minutes: u64| Some(minutes * 60_000_000_000);
    let lacks = [
        Lack::Quantile { level: Level::P99, half_width: Some(0.23), time_needed_ns: minutes(12) },
        Lack::Quantile { level: Level::P999, half_width: None, time_needed_ns: minutes(5) },
        Lack::Rate { time_needed_ns: minutes(180) },
        Lack::Rate { time_needed_ns: None },
        Lack::Steadiness,
    ];
    let shortfall = |lack| Shortfall { cell: "messaging/other".to_owned(), lack }.to_string();
    let mut sentences = vec![Outlook::of(&cell, 1).to_string()];
    sentences.extend(lacks.map(shortfall));
    assert_documented(STATISTICS, &sentences);
}

/// A comparison of 12 blocks with this ratio and interval.
fn comparison(decision: Decision, ratio: Option<(f64, f64, f64)>) -> Comparison {
    let ratio = ratio.map(|(value, lower, upper)| Ratio { value, interval: (lower, upper), p: 0.01 });
    Comparison {
        a: "none/rr:80".to_owned(),
        b: "none/fifo:80".to_owned(),
        blocks: 12,
        a_first: 6,
        is_again: false,
        margin: 1.25,
        primary: Measured { metric: Metric::Quantile(Level::P99), a: Some(1.0), b: Some(1.0), ratio },
        ratios: Vec::new(),
        secondary: Vec::new(),
        noise_floor: None,
        differences: Vec::new(),
        causes: Vec::new(),
        accounts: Vec::new(),
        stages: Vec::new(),
        loads: Vec::new(),
        kernels: None,
        decision,
    }
}

#[test]
fn answers_and_remarks_have_their_examples() {
    let refused = |why| comparison(Decision::Refused { why }, None).sentence();
    let undecided = |blocks_needed| Decision::Undecided { blocks_needed };
    let mut few = comparison(Decision::Refused { why: Refusal::FewExceedances { have: 4, need: 20 } }, None);
    few.primary.metric = Metric::Quantile(Level::P999);
    let mut never = comparison(undecided(None), None);
    never.blocks = 6;
    let different = comparison(Decision::Different, Some((1.0 / 1.8, 1.0 / 2.2, 1.0 / 1.5)));
    let mut remarked = Comparison { a: "none/other".to_owned(), ..different };
    (remarked.noise_floor, remarked.a_first, remarked.is_again) = (Some((0.86, 1.2)), 12, true);
    let governor = |governor: &str| Some(governor.to_owned());
    remarked.differences = vec![crate::comparison::comparability::Difference {
        fact: "frequency governor",
        a: governor("performance"),
        b: governor("powersave"),
        role: crate::comparison::comparability::Role::Beside,
    }];
    let mut sentences = vec![
        remarked.sentence(),
        comparison(Decision::Equivalent, Some((1.0, 0.9, 1.1))).sentence(),
        comparison(undecided(Some(30)), Some((1.0, 0.86, 1.31))).sentence(),
        never.sentence(),
        refused(Refusal::FewBlocks { blocks: 5 }),
        refused(Refusal::Separate),
        refused(Refusal::FewBoots { boots: 1 }),
        few.sentence(),
        refused(Refusal::NotSeen { unseen: 3_893 }),
        refused(Refusal::NotPositive),
    ];
    let small = comparison(Decision::Equivalent, Some((1.1, 1.05, 1.15))).sentence();
    sentences.extend(small.split_once(" (95 %, 12 blocks). ").map(|(_, small)| small.to_owned()));
    assert_eq!(sentences.len(), 11, "{small}");
    sentences.extend(remarked.remarks());
    assert_documented(COMPARE, &sentences);
}
