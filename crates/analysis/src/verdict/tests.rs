//! Verdicts of built runs.

use crate::stats::woodruff::Quantile;
use crate::summarise;
use crate::testing::{RunBuilder, cell};
use crate::verdict::Verdict;
use proptest::prelude::*;
use punctual_model::{Ended, Level, Skipped, Span, SplitMix64};

/// Both cells of one block; the second has the latencies `latency_ns`.
fn run(require: &str, latency_ns: impl Fn(u32, u64) -> i64) -> RunBuilder {
    let mut run = RunBuilder::new();
    run.cell("none", "fifo:80").cell("messaging", "fifo:80").require(require);
    run.measure(0, 0, |_, _| 5_000).measure(0, 1, latency_ns);
    run
}

fn verdict(run: &RunBuilder) -> (u8, String) {
    let verdict = summarise(&run.header, &run.entries).verdict;
    (verdict.exit_status(), verdict.to_string())
}

fn own(status: u8, text: &str) -> (u8, String) {
    (status, text.to_owned())
}

/// 5 us, but every 500th wake-up 50 us: p99 is 5 us, p99.9 is 50 us.
fn tail(_: u32, cycle: u64) -> i64 {
    if cycle % 500 == 7 { 50_000 } else { 5_000 }
}

#[test]
fn without_a_requirement_there_is_no_verdict() {
    let mut run = run("max=1ms", tail);
    run.header.plan.require = punctual_model::Requirement::default();
    assert_eq!(verdict(&run), own(0, "Verdict: none (no limit given); add --require max=1ms to get PASS or FAIL."));
}

#[test]
fn a_maximum_is_judged_to_the_nanosecond() {
    let pass = "Verdict: PASS max 50 us <= 50 us (worst: messaging/fifo:80); none later in 2 s of each cell: their \
                rate is below 5 392/h (95 %), not zero";
    assert_eq!(verdict(&run("max=50us", tail)), own(0, pass));
    let fail = "Verdict: FAIL messaging/fifo:80: max 50 us > 30 us";
    assert_eq!(verdict(&run("max=30us", tail)), own(2, fail));
    let close = "Verdict: FAIL messaging/fifo:80: max 50 000 ns > 49 999 ns";
    assert_eq!(verdict(&run("max=49999ns", tail)), own(2, close));
    let both = "Verdict: FAIL messaging/fifo:80: max 50 us > 1 us; none/fifo:80: max 5 us > 1 us";
    assert_eq!(verdict(&run("max=1us", tail)), own(2, both), "the worst first");
}

#[test]
fn a_wait_that_never_ended_fails_or_leaves_it_open() {
    let stuck = |_, cycle| if cycle == 1_500 { i64::MAX } else { 5_000 };
    let fail = "Verdict: FAIL messaging/fifo:80: max at least 500 ms > 100 ms";
    assert_eq!(verdict(&run("max=100ms", stuck)), own(2, fail));
    let open = "Verdict: INCONCLUSIVE: messaging/fifo:80: a wait was still open, 500 ms late so far";
    assert_eq!(verdict(&run("max=1s", stuck)), own(3, open));
    let never = "Verdict: INCONCLUSIVE: messaging/fifo:80: no wake-ups recorded; messaging/fifo:80: a wait was still \
                 open, \
                 2 s late so far";
    assert_eq!(verdict(&run("max=5s", |_, _| i64::MAX)), own(3, never));
}

/// As a record of a version that did not see the due times before the release of a thread.
#[test]
fn due_times_that_were_not_seen_are_not_shown_and_a_violation_stays_one() {
    let mut late_start = run("max=1ms", tail);
    let thread = &mut late_start.entries[1].record.threads[0];
    (thread.cycles_due, thread.missed) = (thread.cycles_due + 946, thread.missed + 946);
    assert!(thread.is_consistent());
    let not_seen = "946 of 4 946 due times were not seen, and may be later";
    assert_eq!(verdict(&late_start), own(3, &format!("Verdict: INCONCLUSIVE: messaging/fifo:80: {not_seen}")));
    let summary = summarise(&late_start.header, &late_start.entries);
    let ledger = summary.cells[1].ledger;
    assert!(
        ledger.is_balanced() && ledger.unseen == 946 && summary.cells[1].missed == Some(ledger.missed),
        "{ledger:?}"
    );
    late_start.header.plan.require.max = Some(Span(30_000));
    assert_eq!(verdict(&late_start), own(2, "Verdict: FAIL messaging/fifo:80: max 50 us > 30 us"));

    let mut stopped = run("p99=1ms", tail);
    let thread = &mut stopped.entries[0].record.threads[1];
    (thread.cycles_due, thread.passed_over) = (thread.cycles_due + 2, 2);
    let not_seen = "2 of 4 002 due times were not seen, and may be later";
    assert_eq!(verdict(&stopped), own(3, &format!("Verdict: INCONCLUSIVE: none/fifo:80: {not_seen}")));
}

#[test]
fn what_is_missing_is_not_shown_but_a_violation_stays_one() {
    let mut lost = run("max=1ms", tail);
    lost.entries[1].record.threads[0].lost = 3;
    let text = "Verdict: INCONCLUSIVE: messaging/fifo:80: 3 lost samples, which may be later";
    assert_eq!(verdict(&lost), own(3, text));
    lost.header.plan.require.max = Some(Span(1_000));
    assert_eq!(verdict(&lost).0, 2);

    let mut short = run("max=1ms", tail);
    short.entries.pop();
    assert_eq!(verdict(&short), own(3, "Verdict: INCONCLUSIVE: only 1 of 2 measurements complete"));
    let mut none = run("max=1ms,p99=1ms", tail);
    none.entries.clear();
    assert_eq!(verdict(&none), own(3, "Verdict: INCONCLUSIVE: only 0 of 2 measurements complete"));

    let mut interrupted = run("max=1ms", tail);
    for ended in [Ended::Interrupted, Ended::Stopped] {
        interrupted.entries[0].record.ended = ended;
        assert_eq!(verdict(&interrupted), own(3, "Verdict: INCONCLUSIVE: only 1 of 2 measurements complete"));
    }

    let mut skipped = run("max=1ms", tail);
    skipped.header.skipped = vec![Skipped { cell: cell("none", "fifo:99"), reason: "needs root".to_owned() }];
    assert_eq!(verdict(&skipped), own(3, "Verdict: INCONCLUSIVE: 1 cell not measured: needs root"));
    skipped.header.cells.clear();
    skipped.entries.clear();
    let nothing = "Verdict: INCONCLUSIVE: no measurements; 1 cell not measured: needs root";
    assert_eq!(verdict(&skipped), own(3, nothing));
}

#[test]
fn quantiles_are_judged_by_their_interval() {
    let every = |n: u64| move |_: u32, cycle: u64| if cycle % n == 7 { 50_000 } else { 5_000 };
    let pass = "Verdict: PASS p99 at most 5.02 us <= 10 us (95 %; worst: messaging/fifo:80)";
    assert_eq!(verdict(&run("p99=10us", every(500))), own(0, pass));
    let fail = "Verdict: FAIL messaging/fifo:80: p99 at least 49.9 us (95 %) > 30 us";
    assert_eq!(verdict(&run("p99=30us", every(20))), own(2, fail));
    let (status, text) = verdict(&run("p99=30us", |cpu, cycle| every(100)(cpu, cycle)));
    assert_eq!(status, 3, "one in a hundred is right at p99: {text}");
    assert!(
        text.contains("p99 is between 5.02 us and 50 us") || text.contains("p99 is between 5 us and 50 us"),
        "{text}"
    );
    let few = verdict(&run("p999=30us", every(500)));
    assert_eq!(few.0, 3, "4000 samples have 4 above p99.9: {few:?}");
    assert!(
        few.1.ends_with(
            "messaging/fifo:80: too few samples for p99.9 <= 30 us: 8 of 4 000 later, effective sample size 2 000; \
             measuring longer will not give PASS"
        ),
        "{few:?}"
    );
}

/// On time except for every 300th due time: too few of the wake-ups to move p99.
fn stalls(late_ns: i64) -> RunBuilder {
    let mut run = RunBuilder::new();
    run.cell("messaging", "fifo:80");
    run.header.plan.repetitions = 4;
    for block in 0..4 {
        run.measure(block, 0, |_, cycle| if cycle % 300 == 7 { late_ns } else { 5_000 });
    }
    run
}

fn verdict_with(run: &RunBuilder, p99: Span) -> (u8, String) {
    let mut run = run.clone();
    run.header.plan.require.p99 = Some(p99);
    verdict(&run)
}

#[test]
fn missed_due_times_count_in_a_required_quantile() {
    let run = stalls(81_000_000);
    let cell = &summarise(&run.header, &run.entries).cells[0];
    assert_eq!((cell.missed, cell.samples), (Some(4_480), 11_520), "28 % of the due times");
    let fail = "Verdict: FAIL messaging/fifo:80: p99 by due time at least 77.6 ms (95 %) > 2 ms";
    assert_eq!(verdict_with(&run, Span(2_000_000)), own(2, fail));
    let pass = "Verdict: PASS p99 by due time at most 79.2 ms <= 90 ms (95 %; worst: messaging/fifo:80)";
    assert_eq!(verdict_with(&run, Span(90_000_000)), own(0, pass));
}

/// A run of two blocks with a request every 20 ms for 10 s; `late` as in [`RunBuilder::measure`].
fn answers(link: &str, late: impl Fn(u64) -> i64) -> RunBuilder {
    let mut run = RunBuilder::new();
    run.cell("none", "fifo:80");
    let cell = &mut run.header.cells[0];
    cell.task = format!("response:{link}").parse().unwrap();
    (cell.period, cell.duration) = (Span(20_000_000).try_into().unwrap(), Span(10_000_000_000));
    cell.cpus = "0".parse().unwrap();
    run.header.plan.repetitions = 2;
    for block in 0..2 {
        run.measure(block, 0, |_, cycle| late(cycle));
    }
    run
}

fn verdict_for(run: &RunBuilder, require: &str) -> (u8, String) {
    let mut run = run.clone();
    run.header.plan.require.set_all(require).unwrap();
    verdict(&run)
}

#[test]
fn late_answers_and_those_that_never_come_are_never_a_pass() {
    let late = answers("udp:h:1", |cycle| if cycle % 10 == 3 { 50_000_000 } else { 100_000 });
    let summary = summarise(&late.header, &late.entries);
    let cell = &summary.cells[0];
    assert!(late.entries.iter().all(|entry| entry.record.threads[0].is_consistent()));
    assert_eq!((cell.samples, cell.missed, cell.max.unwrap().latency_ns), (1_000, Some(0), 50_000_000));
    assert_eq!((cell.mean_ns, cell.due_times.n), (Some(5_090_000.0), 1_000), "nothing is filled in");
    let findings: Vec<_> = summary.cell_findings[0].iter().map(ToString::to_string).collect();
    let said = "late answers: 100 of 1 000 triggers answered after the next due time; each counts with its full delay";
    assert!(findings.iter().any(|finding| finding == said), "{findings:?}");
    let wrong = |finding: &String| finding.contains("woke") || finding.contains("fair server stops");
    assert!(!findings.iter().any(wrong), "nothing woke, and 50 ms are the target's: {findings:?}");
    let fail = "Verdict: FAIL none/fifo:80: max 50 ms > 30 ms";
    assert_eq!(verdict_for(&late, "max=30ms"), own(2, fail));
    assert_eq!(verdict_for(&late, "p99=30ms").0, 2);
    assert_eq!(verdict_for(&late, "max=60ms").0, 0);

    let never = answers("udp:h:1", |cycle| if cycle % 10 == 3 { i64::MAX } else { 100_000 });
    let cell = &summarise(&never.header, &never.entries).cells[0];
    assert!(never.entries.iter().all(|entry| entry.record.threads[0].is_consistent()));
    let max = cell.max.unwrap();
    assert_eq!((cell.samples, cell.missed, max.latency_ns, max.at_least), (900, Some(100), 1_000_000_000, true));
    assert_eq!((cell.due_times.n, cell.due_times.at_least), (1_000, true));
    assert_eq!(verdict_for(&never, "max=30ms"), own(2, "Verdict: FAIL none/fifo:80: max at least 1 s > 30 ms"));
    assert_eq!(verdict_for(&never, "p99=30ms").0, 2);
    let open = "Verdict: INCONCLUSIVE: none/fifo:80: 100 triggers without an answer";
    assert_eq!(verdict_for(&never, "max=2s"), own(3, open));
    let (status, text) = verdict_for(&never, "p99=2s");
    assert!(status == 3 && text.starts_with(open), "{text}");
    assert_eq!(verdict_for(&never, "misses_per_hour=100000"), own(3, open));
    // One in a thousand is enough.
    let once = answers("udp:h:1", |cycle| if cycle == 3 { i64::MAX } else { 100_000 });
    assert_eq!(verdict_for(&once, "p99=30ms").0, 3);
}

#[test]
fn unsent_triggers_and_older_records_are_inconclusive() {
    let mut run = answers("udp:h:1", |_| 100_000);
    assert_eq!(verdict_for(&run, "p99=30ms").0, 0);
    // One in a hundred: the allowed share.
    for entry in &mut run.entries {
        let thread = &mut entry.record.threads[0];
        (thread.cycles_due, thread.missed) = (thread.cycles_due + 5, 5);
    }
    let (status, text) = verdict_for(&run, "p99=30ms");
    assert!(status == 3 && text.contains("p99 is unknown: missing triggers: 10 of 1 010 due times had none"), "{text}");
    assert_eq!(verdict_for(&run, "max=30ms").0, 0, "of those that were sent, none was later");

    // As written by versions in which late answers had no sample.
    for entry in &mut run.entries {
        let thread = &mut entry.record.threads[0];
        thread.unanswered = None;
        entry.record.response.as_mut().unwrap().late = 3;
    }
    let cell = &summarise(&run.header, &run.entries).cells[0];
    let response = cell.response.as_ref().unwrap();
    assert_eq!((response.left_out, response.unsent, response.lost), (0, 10, 0), "it is as many as were not sent");
    for entry in &mut run.entries {
        entry.record.response.as_mut().unwrap().triggers += 5;
    }
    let open = "Verdict: INCONCLUSIVE: none/fifo:80: old record: 10 late or missing answers not in its \
                latencies; measure again with this version";
    assert_eq!(verdict_for(&run, "max=30ms"), own(3, open));
    assert_eq!(verdict_for(&run, "p99=30ms").0, 3);
}

#[test]
fn a_quantile_is_judged_at_both_ends_of_both_intervals() {
    for late_ns in [900_000, 3_500_000] {
        let run = stalls(late_ns);
        let cell = &summarise(&run.header, &run.entries).cells[0];
        let ends = |quantile: &Quantile| {
            quantile.interval_ns().map(|(lower, upper)| (lower.unsigned_abs(), upper.unsigned_abs()))
        };
        let by_wakeup = ends(cell.quantiles.at(Level::P99)).unwrap();
        let by_due_time = ends(cell.due_times.quantiles.at(Level::P99)).unwrap();
        assert_eq!(by_wakeup == by_due_time, late_ns < 1_000_000, "{late_ns}: only a period missed sets them apart");
        let (lower, upper) = (by_wakeup.0.max(by_due_time.0), by_wakeup.1.max(by_due_time.1));
        for (limit, status) in [(lower - 1, 2), (lower, 3), (upper - 1, 3), (upper, 0)] {
            let (got, text) = verdict_with(&run, Span(limit));
            assert_eq!(got, status, "{late_ns} {limit}: {text}");
            assert_eq!(text.contains("p99 by due time"), late_ns > 1_000_000, "{text}");
        }
    }
}

#[test]
fn a_view_that_cannot_tell_leaves_it_open() {
    let run = run("p99=2ms", |_, cycle| if cycle == 500 { 400_000_000 } else { 5_000 });
    let text = "Verdict: INCONCLUSIVE: messaging/fifo:80: too few samples for p99 by due time <= 2 ms: 798 of 4 000 \
                later, effective sample size 5; measuring longer will not give PASS";
    assert_eq!(verdict(&run), own(3, text), "one stall holds all due times above p99");
}

#[test]
fn a_missed_period_hides_no_late_wake_ups() {
    // 4 000 samples refuse p99.9, with and without a stall that misses two due times.
    let of = |require: &str, base_ns: i64, stall_ns: i64| {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80").require(require);
        run.measure(0, 0, |cpu, cycle| if (cpu, cycle) == (0, 900) { stall_ns } else { base_ns });
        assert_eq!(summarise(&run.header, &run.entries).cells[0].quantiles.at(Level::P999).value_ns(), None);
        verdict(&run)
    };
    for stall_ns in [12_000, 2_500_000] {
        let (status, text) = of("p999=1us", 12_000, stall_ns);
        assert_eq!(status, 2, "all of them are later: {text}");
        assert!(text.contains(" of ") && text.contains(" later, at least 99."), "{text}");
    }
    assert_eq!(of("p999=50ms", 12_000, 12_000).0, 0, "4 000 samples of at most 12 us show it at 12 us");
    for (limit, stall_ns) in [("p999=50ms", 2_500_000), ("p999=3ms", 2_500_000)] {
        let (status, text) = of(limit, 12_000, stall_ns);
        assert_eq!(status, 3, "{text}");
        assert!(text.contains("none of ") && text.contains("; measure about "), "says how long: {text}");
    }
}

#[test]
fn a_cell_that_drifts_violates_what_every_part_of_it_violates() {
    let of = |require: &str| {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80").require(require);
        run.header.cells[0].duration = Span(60_000_000_000);
        run.measure(0, 0, |_, cycle| 20_000 + cycle.cast_signed());
        assert!(!summarise(&run.header, &run.entries).cells[0].steadiness.courses.allows_interval(Level::P99));
        verdict(&run)
    };
    let (status, text) = of("p99=10us");
    assert_eq!((status, text.contains(": 120 000 of 120 000 later, at least ")), (2, true), "{text}");
    let unsteady =
        "Verdict: INCONCLUSIVE: none/fifo:80: latency is not stationary, so no p99 is valid for the whole cell";
    assert_eq!(of("p99=60us"), own(3, unsteady));
}

/// Latencies of a cell with a period of 1 ms: 12 us, more at the cycles that stall, and a step at each `every`-th one.
#[derive(Debug, Clone)]
struct Course {
    stalls: Vec<(u64, i64)>,
    every: u64,
    step_ns: i64,
    duration_ms: u64,
}

impl Course {
    fn any() -> impl Strategy<Value = Course> {
        let stalls = prop::collection::vec((0_u64..2_000, 1_i64..400_000_000), 0..5);
        (stalls, 1_u64..2_000, 0_i64..200_000, 40_u64..2_000).prop_map(|(stalls, every, step_ns, duration_ms)| Course {
            stalls,
            every,
            step_ns,
            duration_ms,
        })
    }

    fn latency_ns(&self, cycle: u64) -> i64 {
        with_stalls(&self.stalls, cycle) + if cycle.is_multiple_of(self.every) { self.step_ns } else { 0 }
    }
}

/// 12 us, and more at the cycles that stall.
fn with_stalls(stalls: &[(u64, i64)], cycle: u64) -> i64 {
    stalls.iter().find(|(at, _)| *at == cycle).map_or(12_000, |(_, late_ns)| 12_000 + late_ns)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Where every wake-up is later than the limit, every limit on a quantile is violated: whatever else was missed,
    /// and whether or not the quantile can be shown.
    #[test]
    fn limits_below_every_wake_up_are_violated(
        stalls in prop::collection::vec((0_u64..2_000, 1_i64..400_000_000), 0..4),
        duration_ms in 40_u64..2_000,
    ) {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80").require("p99=1us,p999=1us");
        run.header.cells[0].duration = Span(duration_ms * 1_000_000);
        let late = |cycle| with_stalls(&stalls, cycle);
        run.measure(0, 0, |_, cycle| late(cycle));
        let recorded: u64 = run.entries[0].record.threads.iter().map(|thread| thread.recorded).sum();
        let summary = summarise(&run.header, &run.entries);
        for case in summary.cases.iter().filter(|case| case.cell.is_some()) {
            let status = case.verdict.exit_status();
            prop_assert!(status != 0, "{} {}", case.limit, case.verdict);
            if recorded >= 200 {
                prop_assert_eq!(status, 2, "{} of {}: {}", &case.limit, recorded, &case.verdict);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// PASS at a limit is PASS at every larger one, and FAIL at every smaller one.
    #[test]
    fn verdicts_follow_the_limit(
        course in Course::any(),
        is_open in any::<bool>(),
    ) {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        run.header.cells[0].duration = Span(course.duration_ms * 1_000_000);
        let last = |cycle| is_open && cycle + 9 > course.duration_ms;
        run.measure(0, 0, |_, cycle| if last(cycle) { i64::MAX } else { course.latency_ns(cycle) });
        for what in ["max", "p99", "p999", "p9999"] {
            let mut before: Option<u8> = None;
            for limit in ["1us", "12us", "13us", "50us", "200us", "1ms", "3ms", "20ms", "100ms", "1s", "10s"] {
                run.header.plan.require = punctual_model::Requirement::default();
                run.require(&format!("{what}={limit}"));
                let verdict = summarise(&run.header, &run.entries).verdict;
                let status = verdict.exit_status();
                let (has_passed, fails) = (before == Some(0), status == 2);
                prop_assert!(!has_passed || status == 0, "{what}={limit}: {verdict}");
                prop_assert!(!fails || before.is_none_or(|before| before == 2), "{what}={limit}: {verdict}");
                before = Some(status);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Wake-ups later than the limit that follow a run never make it pass, and a violated maximum stays violated. They
    /// are not late by a period: of the due times that one misses, the last ones would be within the limit. A quantile
    /// whose violation is barely shown may become inconclusive; see `a_burst_takes_no_violation_back`.
    #[test]
    fn later_wake_ups_never_make_a_run_pass(
        course in Course::any(),
        more_ms in 1_u64..2_000,
        beyond_ns in 1_i64..700_000,
    ) {
        for what in ["max", "p99", "p999", "p9999"] {
            for limit in ["1us", "12us", "13us", "50us", "200us"] {
                let beyond = i64::try_from(limit.parse::<Span>().unwrap().ns()).unwrap() + beyond_ns;
                let of = |ms: u64| {
                    let mut run = RunBuilder::new();
                    run.cell("none", "fifo:80").require(&format!("{what}={limit}"));
                    run.header.cells[0].duration = Span(ms * 1_000_000);
                    let is_more = |cycle| cycle >= course.duration_ms;
                    run.measure(0, 0, |_, cycle| if is_more(cycle) { beyond } else { course.latency_ns(cycle) });
                    summarise(&run.header, &run.entries).verdict
                };
                let (before, after) = (of(course.duration_ms), of(course.duration_ms + more_ms));
                let keeps = (what == "max") <= (before.word() != "FAIL" || after.word() == "FAIL");
                prop_assert!(keeps, "{what}={limit}: {before}\n{after}");
                prop_assert!(after.word() != "PASS" || before.word() == "PASS", "{what}={limit}: {before}\n{after}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A quantile that is violated all the time stays violated, whatever burst of late wake-ups follows.
    #[test]
    fn a_burst_takes_no_violation_back(seed in any::<u64>(), late_in in 20_usize..60, more_ms in 1_u64..4_000) {
        let of = |ms: u64| {
            let mut run = RunBuilder::new();
            run.cell("none", "fifo:80").require("p99=200us");
            run.header.cells[0].duration = Span(ms * 1_000_000);
            run.measure(0, 0, |cpu, cycle| {
                let mut random = SplitMix64::new(seed ^ u64::from(cpu) << 32 ^ cycle);
                if cycle >= 2_000 || random.below(late_in) == 0 { 250_000 } else { 12_000 }
            });
            summarise(&run.header, &run.entries).verdict
        };
        let (before, after) = (of(2_000), of(2_000 + more_ms));
        prop_assert!(before.word() != "FAIL" || after.word() == "FAIL", "{before}\n{after}");
    }
}

/// 8 blocks of 1 s on one CPU, two of them with 15 stalls of 9.79 ms.
fn rough_blocks() -> RunBuilder {
    let mut run = RunBuilder::new();
    run.cell("none", "fifo:80");
    (run.header.plan.repetitions, run.header.cells[0].duration) = (8, Span(1_000_000_000));
    run.header.cells[0].cpus = [0].into_iter().collect();
    for block in 0..8 {
        run.measure(block, 0, |_, cycle| if block % 5 == 2 && cycle % 60 == 7 { 9_790_000 } else { 5_000 });
    }
    run
}

#[test]
fn a_limit_far_away_is_kept_by_as_many_samples_as_that_takes() {
    let run = rough_blocks();
    let cell = &summarise(&run.header, &run.entries).cells[0];
    assert_eq!(
        cell.due_times.quantiles.at(Level::P99).value_ns(),
        None,
        "too few independent ones for p99 by due time"
    );
    let (status, text) = verdict_with(&run, Span(10_000_000));
    assert_eq!(status, 0, "{text}");
    assert!(
        text.contains("PASS") && text.contains("p99 by due time <= 10 ms: none of 8 000 later, at most 0."),
        "{text}"
    );
    assert_eq!(verdict_with(&run, Span(30_000_000)).0, 0, "what meets 10 ms meets 30 ms");
    // A wait of 29 ms covers 29 due times: 8 000 of them count as 276, and 299 are needed.
    let mut longer = rough_blocks();
    longer.entries.pop();
    longer.measure(7, 0, |_, cycle| if cycle == 500 { 29_000_000 } else { 5_000 });
    let (status, text) = verdict_with(&longer, Span(30_000_000));
    assert_eq!(status, 3, "{text}");
    assert!(text.contains("none of 8 000 later, effective sample size 27"), "{text}");
    assert!(text.contains("; measure about ") && text.ends_with(" longer"), "{text}");
    // A limit exceeded by many is neither met nor, with two rough blocks, violated beyond chance.
    assert_eq!(verdict_with(&run, Span(5_000_000)).0, 3);
}

#[test]
fn a_rate_is_judged_by_its_interval() {
    let late = |_, cycle| if cycle == 100 { 3_000_000 } else { 5_000 };
    let never = "Verdict: INCONCLUSIVE: none/fifo:80: 0 misses in 2 s allow up to 5 392/h (95 %); 1/h needs 3 h in \
                 all; \
                 messaging/fifo:80: 0 misses in 2 s allow up to 5 392/h (95 %); 1/h needs 3 h in all";
    assert_eq!(verdict(&run("misses_per_hour=1", |_, _| 5_000)), own(3, never));
    let pass = "Verdict: PASS misses at most 5 392/h <= 6 000/h (95 %; worst: messaging/fifo:80)";
    assert_eq!(verdict(&run("misses_per_hour=6000", |_, _| 5_000)), own(0, pass));
    let fail = "Verdict: FAIL messaging/fifo:80: 1 episode of misses, at least 45.6/h (95 %) > 1/h";
    assert_eq!(verdict(&run("misses_per_hour=1", late)), own(2, fail));
}

#[test]
fn limits_are_judged_together() {
    let (status, text) = verdict(&run("max=1ms,p99=1ms,misses_per_hour=6000", tail));
    assert_eq!((status, text.matches(" <= ").count()), (0, 3), "{text}");
    assert_eq!(verdict(&run("max=1us,p999=30us", tail)).0, 2, "a violation outweighs what is not shown");
    assert!(matches!(summarise(&run("max=1us", tail).header, &[]).verdict, Verdict::Inconclusive { .. }));
}

#[test]
fn a_limit_beyond_the_tail_is_kept_however_usual_latencies_differ_from_block_to_block() {
    let mut run = RunBuilder::new();
    run.cell("none", "fifo:80").require("p999=200us");
    (run.header.plan.repetitions, run.header.cells[0].duration) = (12, Span(1_000_000_000));
    for block in 0..12 {
        run.measure(block, 0, |cpu, cycle| {
            let random = |cycle| SplitMix64::new(u64::from(block) << 40 | u64::from(cpu) << 32 | cycle);
            // Five consecutive wake-ups beside the same work: too few independent ones for p99.9.
            let (mut own, mut of_five) = (random(cycle), random(cycle / 5 + 7_000_000));
            let (is_late, late, usual) = (of_five.below(40) == 0, of_five.below(10_000), own.below(4_000));
            let shift = 300 * usize::try_from(block * 7 % 12).unwrap();
            let latency_ns = if is_late { 20_000 + late } else { 5_000 + shift + usual };
            i64::try_from(latency_ns).unwrap()
        });
    }
    let cell = &summarise(&run.header, &run.entries).cells[0];
    assert_eq!(cell.quantiles.at(Level::P999).value_ns(), None, "{:?}", cell.quantiles.at(Level::P999));
    let (status, text) = verdict(&run);
    assert!(status == 0 && text.contains("none of 24 000 later"), "{text}");
}

/// The gate that docs/ci.md has numbers of: 12 blocks of 1 s at 1 ms on two CPUs, 24 000 wake-ups, of which one in
/// `late_in` is 250 us late.
fn gate(late_in: usize) -> RunBuilder {
    let mut run = RunBuilder::new();
    run.cell("none", "fifo:80").require("max=1ms,p999=200us");
    (run.header.plan.repetitions, run.header.cells[0].duration) = (12, Span(1_000_000_000));
    for block in 0..12 {
        run.measure(block, 0, |cpu, cycle| {
            let mut random = SplitMix64::new(u64::from(block) << 40 | u64::from(cpu) << 32 | cycle);
            let (usual, place) = (random.below(20_000), random.below(late_in));
            if place == 0 { 250_000 } else { 5_000 + i64::try_from(usual).unwrap() }
        });
    }
    run
}

#[test]
fn the_gate_of_the_documentation_passes_on_a_good_machine_and_fails_on_a_bad_one() {
    assert_eq!(verdict(&gate(1_000_000)).0, 0, "{}", verdict(&gate(1_000_000)).1);
    assert_eq!(verdict(&gate(6_000)).0, 0, "{}", verdict(&gate(6_000)).1);
    assert_eq!(verdict(&gate(300)).0, 2, "{}", verdict(&gate(300)).1);
    // One in a thousand is neither.
    assert_eq!(verdict(&gate(1_000)).0, 3, "{}", verdict(&gate(1_000)).1);
}

#[test]
fn costs_alone_show_nothing_of_latencies() {
    let mut run = RunBuilder::new();
    run.cell("none", "other").require("max=1ms").measure(0, 0, |_, _| 5_000);
    (run.header.cells[0].task, run.entries[0].record.cell.task) = ("cost".parse().unwrap(), "cost".parse().unwrap());
    let summary = summarise(&run.header, &run.entries);
    assert_eq!(summary.verdict.to_string(), "Verdict: INCONCLUSIVE: no measurements");
    assert_eq!(summary.cases[0].verdict.exit_status(), 3);
}
