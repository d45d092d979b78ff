//! Every sentence that the statistics print has an example in the documents, with what to do about it.

use crate::comparison::{Answer, Comparison, Measured, Metric, Ratio, Refusal};
use crate::findings::{Changed, Drifted, Finding, ImportedFinding, Limiter};
use crate::search::enough::Outlook;
use crate::search::shortfall::{Lack, Shortfall};
use crate::stats::course::Measure;
use crate::summary::due_time::View;
use crate::testing::cell;
use crate::verdict::{Gap, Kept, Verdict, Violation};
use model::{Level, Preemption, Span};
use std::collections::HashSet;
use std::mem::discriminant;

const FINDINGS: &str = include_str!("../../../docs/findings.md");
const SHOW_SCHEMA: &str = include_str!("../../../schema/show.schema.json");
const STATISTICS: &str = include_str!("../../../docs/statistics.md");
const COMPARE: &str = include_str!("../../../docs/compare.md");

/// A document as one line of words, without its marks.
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

fn changed(what: Measure, block: Option<u32>, second: u64) -> Changed {
    Changed { what, block, second, before_ns: 12_000, after_ns: 18_000 }
}

/// Findings of the statistics.
fn of_statistics() -> Vec<Finding> {
    vec![
        Finding::FewSamples { level: Level::P999, n_eff: 4_098, more_ns: Some(34_600_000_000) },
        Finding::FewSlices { slices: 6, need: 10 },
        Finding::Dependent { samples: 64_000, n_eff: 4_098 },
        Finding::Missed {
            missed: 46,
            stalls: 3,
            longest_ns: 22_000_000,
            at_least: false,
            p99_by_due_time_ns: Some(1_200_000),
        },
        Finding::MaxIsThrottleQuantum {
            max_ns: 949_000_000,
            quantum_us: 950_000,
            limiter: Limiter::Throttling,
            stops_realtime: false,
        },
        Finding::MissStorms { episodes: 14, upper_per_hour: 63.0 },
        Finding::Coincidence { what: "steal time".to_owned(), in_worst: 9, worst: 10, in_others: 3, others: 50 },
        Finding::VisibilityFloor { measured_ns: 24_000_000_000, floor_ns: 8_010_000_000 },
        Finding::ByBlock { level: Level::P99, blocks: 12, least_ns: 38_000, most_ns: 71_000 },
        Finding::LatencyChanged { changes: vec![changed(Measure::P99, None, 37)] },
        Finding::LatencyChanged { changes: vec![changed(Measure::P50, Some(2), 7), changed(Measure::P99, Some(2), 7)] },
        Finding::LatencyChanged { changes: vec![changed(Measure::Maxima, None, 37)] },
        Finding::LatencyDrifts { drifts: vec![Drifted { what: Measure::P99, before_ns: 48_000, after_ns: 77_000 }] },
        Finding::LatencyInWaves { what: vec![Measure::P99, Measure::Maxima] },
        Finding::RegularSpikes { every_ns: 60_000_000_000 },
        Finding::OwnPopulation { seconds: 36, from_ns: 38_000, to_ns: 150_000 },
        Finding::TailLimit { times: 10.0, upper_ns: 96_000 },
    ]
}

/// All others.
fn of_conditions() -> Vec<Finding> {
    let some = |text: &str| Some(text.to_owned());
    let messaging = || "messaging".to_owned();
    vec![
        Finding::VirtualTime { cells: 4 },
        Finding::EmulatedTime { cells: 2 },
        Finding::GuestTime { cells: 2 },
        Finding::LoadFailed {
            load: messaging(),
            reason: "1 of 400 processes ended".to_owned(),
            at_ms: 4_000,
            measurements: 1,
        },
        Finding::LoadFell { load: "io".to_owned(), share: 0.37, measurements: 2 },
        Finding::LoadDidNothing { load: "io".to_owned(), measurements: 2 },
        Finding::Lost { lost: 3 },
        Finding::Allocations { allocations: 2 },
        Finding::HostChanged { fact: "frequency governor", before: some("powersave"), after: some("performance") },
        Finding::SettingLost {
            what: "cpu0/cpufreq/scaling_governor".to_owned(),
            set: "performance".to_owned(),
            found: some("powersave"),
            measurements: 3,
        },
        Finding::BaselineDiffers {
            fact: "kernel",
            baseline: some("6.1.0-30-rt"),
            now: some("6.1.0-56-rt"),
            prevents: false,
        },
        Finding::ClockSet { steps: 1, largest_ns: -1_000_000_000 },
        Finding::Interrupted { measurements: 2 },
        Finding::Stopped { measurements: 2 },
        Finding::OnSpikeFailed { failed: 1, runs: 3, reason: "exit status: 127: sh: 1: perf: not found".to_owned() },
        Finding::OperationsSkipped {
            operations: vec!["ipc/mq".to_owned()],
            reason: "mq_open: Function not implemented".to_owned(),
        },
        Finding::FrequencyChanged { lowest_khz: 1_200_000, highest_khz: 3_400_000 },
        Finding::NotAllCellsDone { done: 11, planned: 12 },
        Finding::MeasurementsFailed {
            cell: "cost/other".to_owned(),
            measurements: 1,
            reason: "the guest on debian:6.1 ended with qemu-system-x86_64 (signal: 9 (SIGKILL))".to_owned(),
        },
        Finding::Skipped {
            cells: vec!["none/fifo:80".to_owned(), "none/rr:80".to_owned()],
            reason: "fifo:80 needs CAP_SYS_NICE; run as root".to_owned(),
        },
        Finding::Starved { waits: 1, at_least_ns: 3_000_000_000, samples: 0 },
        Finding::Starved { waits: 1, at_least_ns: 3_000_000_000, samples: 310 },
        Finding::StarvedOfCpu { woke: 310, due: 1_000 },
        Finding::LateAnswers { late: 51, triggers: 511 },
        Finding::NeverAnswered {
            never: 12,
            triggers: 2_000,
            at_least_ns: Some(1_000_000_000),
            p99_by_due_time_ns: Some(560_000),
        },
        Finding::NotSent { unsent: 37, due: 2_000 },
        Finding::AnswersLeftOut { left_out: 63 },
        Finding::TakesTurns {
            processes: 400,
            max_ns: 48_000_000,
            realtime: "fifo:80".parse().unwrap(),
            realtime_max_ns: 210_000,
        },
        Finding::Drift { periods: 42, due: 1_000 },
        Finding::MaxIsThrottleQuantum {
            max_ns: 50_100_000,
            quantum_us: 50_000,
            limiter: Limiter::FairServer,
            stops_realtime: true,
        },
        Finding::RtThrottling { runtime_us: 950_000, period_us: 1_000_000 },
        Finding::FairServer { runtime_us: 50_000, period_us: 1_000_000 },
        Finding::TimerSlack { slack_ns: 50_000 },
        Finding::Early { early: 12, earliest_ns: 800 },
        Finding::OriginUncertain { at_most_ns: 900 },
        Finding::ClockSource { clock_source: "hpet".to_owned() },
        Finding::MemoryUnlocked,
        Finding::PageFaults { minor: 3, major: 1 },
        Finding::DmaLatencyLeft,
        Finding::Governor { governors: vec!["powersave".to_owned()] },
        Finding::NotRealtimeKernel { preemption: Preemption::Voluntary },
        Finding::VirtualMachine { hypervisor: "KVM".to_owned() },
        Finding::Steal { steal_ms: 10, share: Some(0.0008) },
        Finding::Container { container: "docker".to_owned() },
    ]
}

#[test]
fn findings_have_their_examples() {
    let (of_statistics, of_conditions) = (of_statistics(), of_conditions());
    let sentences = |findings: &[Finding]| findings.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_documented(STATISTICS, &sentences(&of_statistics));
    assert_documented(FINDINGS, &sentences(&of_conditions));
    // Every kind there is: the schema, which a check compares with the types, names each once.
    let remark = SHOW_SCHEMA.split_once("\n    \"Remark\": {").unwrap().1.split_once("\n    }").unwrap().0;
    let kinds: HashSet<_> = of_statistics.iter().chain(&of_conditions).map(discriminant).collect();
    assert_eq!(kinds.len(), remark.matches("\"kind\": {").count());
}

#[test]
fn findings_of_imports_have_their_examples() {
    let findings = [
        ImportedFinding::Beyond { samples: Some(2), at_least_ns: 100_000 },
        ImportedFinding::Beyond { samples: None, at_least_ns: 100_000 },
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

#[test]
fn verdicts_have_their_examples() {
    let cell = || "none/fifo:80".to_owned();
    let kept = [
        Kept::Max {
            cell: cell(),
            limit_ns: 1_000_000,
            value_ns: 96_000,
            measured_ns: 80_000_000_000,
            upper_per_hour: 135.0,
        },
        Kept::Quantile { cell: cell(), level: Level::P99, view: View::Both, limit_ns: 200_000, upper_ns: 48_000 },
        Kept::Late {
            cell: cell(),
            level: Level::P99,
            view: View::DueTimes,
            limit_ns: 20_000_000,
            late: 0,
            of: 8_000,
            at_most: 0.0075,
        },
        Kept::MissesPerHour { cell: cell(), limit_per_hour: 200.0, upper_per_hour: 135.0 },
        Kept::NotLater {
            cell: cell(),
            said: "EQUIVALENT: p99 of none/fifo:80 and of the baseline differ by less than 25 % (95 %, 12 blocks)"
                .to_owned(),
        },
    ];
    let violations = [
        Violation::Max { cell: cell(), limit_ns: 50_000, value_ns: 96_000, at_least: false },
        Violation::Quantile {
            cell: cell(),
            level: Level::P99,
            view: View::DueTimes,
            limit_ns: 30_000,
            value_ns: 44_000,
            lower_ns: 39_000,
        },
        Violation::Late {
            cell: cell(),
            level: Level::P99,
            view: View::DueTimes,
            limit_ns: 20_000_000,
            late: 4_300,
            of: 8_000,
            at_least: 0.013,
        },
        Violation::MissesPerHour { cell: cell(), limit_per_hour: 1.0, episodes: 4, lower_per_hour: 49.0 },
        Violation::Later {
            cell: cell(),
            ratio: 1.8,
            said: "DIFFERENT: p99 of none/fifo:80 is 1.8 times higher than that of the baseline (1.5 to 2.2 times, 95 %, 12 \
                   blocks)"
                .to_owned(),
        },
    ];
    let rate = |episodes, upper_per_hour, hours_needed| Gap::MissesPerHour {
        cell: cell(),
        limit_per_hour: 1.0,
        episodes,
        hours: 80.0 / 3600.0,
        upper_per_hour,
        hours_needed,
    };
    let quantile = |interval_ns| Gap::Quantile {
        cell: cell(),
        level: Level::P99,
        view: View::Both,
        limit_ns: 45_000,
        interval_ns,
        late: None,
    };
    let counted = |late, more_ns| Gap::Quantile {
        cell: cell(),
        level: Level::P99,
        view: View::DueTimes,
        limit_ns: 20_000_000,
        interval_ns: None,
        late: Some(crate::verdict::Count { late, of: 4_000, n_eff: 200, more_ns }),
    };
    let gaps = [
        quantile(Some((39_000, 48_000))),
        quantile(None),
        counted(0, Some(2_000_000_000)),
        counted(60, None),
        Gap::Unsteady { cell: cell(), level: Level::P99 },
        rate(0, 135.0, Some(3.0)),
        rate(1, 251.0, None),
        Gap::Incomplete { done: 11, planned: 12 },
        Gap::Incomplete { done: 0, planned: 0 },
        Gap::Skipped { cells: 2, why: "fifo:80 needs CAP_SYS_NICE; run as root".to_owned() },
        Gap::Untold { cell: cell(), why: "the baseline has no such cell".to_owned() },
        Gap::NoSamples { cell: cell() },
        Gap::Load { cell: cell(), load: "messaging".to_owned(), what: "1 of 400 processes ended".to_owned() },
        Gap::Lost { cell: cell(), lost: 3 },
        Gap::Open { cell: cell(), at_least_ns: 3_000_000_000 },
        Gap::NeverAnswered { cell: cell(), never: 12 },
    ];
    // Named so that a new kind of gap is a mistake here until it has an example, too.
    let is_known = |gap: &Gap| match gap {
        Gap::Incomplete { .. }
        | Gap::Skipped { .. }
        | Gap::Untold { .. }
        | Gap::NoSamples { .. }
        | Gap::Load { .. }
        | Gap::Lost { .. }
        | Gap::Open { .. }
        | Gap::NeverAnswered { .. }
        | Gap::Quantile { .. }
        | Gap::Unsteady { .. }
        | Gap::MissesPerHour { .. } => true,
    };
    assert!(gaps.iter().all(is_known));
    let mut sentences: Vec<String> = Vec::new();
    sentences.extend(kept.map(|kept| Verdict::Pass { kept: vec![kept] }.to_string()));
    sentences.extend(violations.map(|violation| Verdict::Fail { violations: vec![violation] }.to_string()));
    sentences.extend(gaps.map(|gap| Verdict::NotShown { gaps: vec![gap] }.to_string()));
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

/// A comparison of 12 blocks, its ratio with this interval.
fn comparison(answer: Answer, ratio: Option<(f64, f64, f64)>) -> Comparison {
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
        answer,
    }
}

#[test]
fn answers_and_remarks_have_their_examples() {
    let refused = |why| comparison(Answer::Refused { why }, None).sentence();
    let undecided = |blocks_needed| Answer::Undecided { blocks_needed };
    let mut few = comparison(Answer::Refused { why: Refusal::FewExceedances { have: 4, need: 20 } }, None);
    few.primary.metric = Metric::Quantile(Level::P999);
    let mut never = comparison(undecided(None), None);
    never.blocks = 6;
    let different = comparison(Answer::Different, Some((1.0 / 1.8, 1.0 / 2.2, 1.0 / 1.5)));
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
        comparison(Answer::Equivalent, Some((1.0, 0.9, 1.1))).sentence(),
        comparison(undecided(Some(30)), Some((1.0, 0.86, 1.31))).sentence(),
        never.sentence(),
        refused(Refusal::FewBlocks { blocks: 5 }),
        refused(Refusal::Separate),
        refused(Refusal::FewBoots { boots: 1 }),
        few.sentence(),
        refused(Refusal::NotPositive),
    ];
    let small = comparison(Answer::Equivalent, Some((1.1, 1.05, 1.15))).sentence();
    sentences.extend(small.split_once(" (95 %, 12 blocks). ").map(|(_, small)| small.to_owned()));
    assert_eq!(sentences.len(), 10, "{small}");
    sentences.extend(remarked.remarks());
    assert_documented(COMPARE, &sentences);
}
