//! Findings of built cells, and how they read.

use super::super::Limiter;
use super::*;
use crate::summarise;
use crate::testing::RunBuilder;
use model::{Achieved, MachineSecond, ThreadRecord};

/// One cell of one block; `change` is applied to every thread.
fn of(policy: &str, latency_ns: impl Fn(u32, u64) -> i64, change: impl Fn(&mut ThreadRecord)) -> Vec<Finding> {
    let mut run = RunBuilder::new();
    run.cell("none", policy).measure(0, 0, latency_ns);
    run.entries[0].record.threads.iter_mut().for_each(change);
    findings_of(&run)
}

fn findings_of(run: &RunBuilder) -> Vec<Finding> {
    let cell = summarise(&run.header, &run.entries).cells.remove(0);
    // 4000 samples have 4 above p99.9: every short cell says so.
    cell.findings.into_iter().filter(|finding| !matches!(finding, Finding::FewSamples { .. })).collect()
}

fn steady(_: u32, _: u64) -> i64 {
    5_000
}

#[test]
fn a_quiet_cell_has_no_findings() {
    assert_eq!(of("fifo:80", steady, |_| {}), []);
    let mut run = RunBuilder::new();
    run.cell("none", "fifo:80");
    assert_eq!(findings_of(&run), [], "nor has one without records");
}

#[test]
fn normal_threads_have_timer_slack() {
    assert_eq!(of("other", steady, |_| {}), [Finding::TimerSlack { slack_ns: 50_000 }]);
    assert_eq!(of("other", steady, |thread| thread.achieved.timer_slack_ns = 1), []);
    let mut timer = RunBuilder::new();
    timer.cell("none", "other");
    timer.header.cells[0].method = "timerfd".parse().unwrap();
    timer.measure(0, 0, steady);
    assert_eq!(findings_of(&timer), [], "timers have none");
    let unused = of("fifo:80", steady, |thread| thread.achieved.timer_slack_ns = 50_000);
    assert_eq!(unused, [], "older kernels report a value that real-time threads do not use");
}

#[test]
fn a_language_keeps_no_period_and_locks_no_memory() {
    let mut run = RunBuilder::new();
    run.cell("none", "fifo:80");
    run.header.cells[0].method = "clock_nanosleep:relative".parse().unwrap();
    // Every other sleep takes so long that a due time is past.
    run.measure(0, 0, |_, cycle| if cycle % 4 == 0 { 1_500_000 } else { 5_000 });
    run.entries[0].record.threads.iter_mut().for_each(|thread| thread.achieved.memory_locked_bytes = 0);
    let found = findings_of(&run);
    assert!(matches!(found[..], [Finding::Drift { .. }, Finding::MemoryUnlocked]), "{found:?}");
    run.header.cells[0].method = "sleep:c".parse().unwrap();
    assert_eq!(findings_of(&run), []);
}

#[test]
fn settings_and_faults_are_found() {
    let usage = |change: fn(&mut Usage)| {
        move |thread: &mut ThreadRecord| {
            thread.usage.iter_mut().for_each(change);
        }
    };
    let achieved = |change: fn(&mut Achieved)| move |thread: &mut ThreadRecord| change(&mut thread.achieved);
    let fifo = |change: &dyn Fn(&mut ThreadRecord)| of("fifo:80", steady, change);
    assert_eq!(fifo(&usage(|u| u.allocations = 1)), [Finding::Allocations { allocations: 2 }]);
    assert_eq!(fifo(&usage(|u| u.minor_faults = 2)), [Finding::PageFaults { minor: 4, major: 0 }]);
    assert_eq!(fifo(&|thread| thread.lost = 1), [Finding::Lost { lost: 2 }]);
    assert_eq!(fifo(&achieved(|a| a.memory_locked_bytes = 0)), [Finding::MemoryUnlocked]);
    assert_eq!(fifo(&achieved(|a| a.cpu_dma_latency_us = None)), [Finding::DmaLatencyLeft]);
    assert_eq!(fifo(&|thread| thread.slices.truncate(3)), [Finding::FewSlices { slices: 3, need: 10 }]);
}

#[test]
fn a_thread_that_wakes_for_less_than_half_of_its_due_times_is_starved() {
    let found = |late_ns: i64| of("fifo:80", move |_, _| late_ns, |_| {});
    let is_starved = |finding: &Finding| matches!(finding, Finding::StarvedOfCpu { .. });
    assert!(!found(1_900_000).iter().any(is_starved), "every other due time is half of them");
    assert!(found(2_100_000).iter().any(is_starved));
}

#[test]
fn relative_waits_drift_and_clocks_that_are_set_are_named() {
    let mut run = RunBuilder::new();
    run.cell("none", "fifo:80");
    run.header.cells[0].method = "nanosleep".parse().unwrap();
    run.measure(0, 0, |_, cycle| if cycle == 9 { 2_500_000 } else { 5_000 });
    let due: u64 = run.entries[0].record.threads.iter().map(|thread| thread.cycles_due).sum();
    let missed: u64 = run.entries[0].record.threads.iter().map(|thread| thread.missed).sum();
    assert_eq!(findings_of(&run), [Finding::Drift { periods: missed, due }]);
    run.entries[0].record.clock_steps = [3, -7, 5].map(|step_ns| model::ClockStep { at: Span(1), step_ns }).to_vec();
    assert_eq!(findings_of(&run)[0], Finding::ClockSet { steps: 3, largest_ns: -7 });
    let uncertain = of("fifo:80", steady, |thread| thread.origin_uncertainty = Some(Span(700)));
    assert_eq!(uncertain, [Finding::OriginUncertain { at_most_ns: 700 }]);
}

#[test]
fn stalls_are_counted() {
    let boundary = of("fifo:80", |_, cycle| if cycle == 9 { 1_000_000 } else { 5_000 }, |_| {});
    assert_eq!(boundary, [], "the next due time is now: nothing missed");
    let just = of("fifo:80", |cpu, cycle| if (cpu, cycle) == (0, 9) { 1_000_001 } else { 5_000 }, |_| {});
    assert_eq!(
        just,
        [Finding::Missed {
            missed: 1,
            stalls: 1,
            longest_ns: 1_000_001,
            at_least: false,
            p99_by_due_time_ns: Some(5_023)
        }]
    );
    let long = of("fifo:80", |_, cycle| if cycle == 9 { 44_000_000 } else { 5_000 }, |_| {});
    assert_eq!(
        long,
        [Finding::Missed { missed: 86, stalls: 2, longest_ns: 44_000_000, at_least: false, p99_by_due_time_ns: None }]
    );
}

#[test]
fn a_thread_that_never_wakes_is_starved() {
    let findings = of("other", |_, _| i64::MAX, |thread| thread.achieved.timer_slack_ns = 1);
    let starved = Finding::Starved { waits: 2, at_least_ns: 2_000_000_000, samples: 0 };
    let missed = Finding::Missed {
        missed: 3_998,
        stalls: 2,
        longest_ns: 2_000_000_000,
        at_least: true,
        p99_by_due_time_ns: None,
    };
    assert_eq!(findings, [starved, missed]);
}

#[test]
fn early_wakeups_are_found() {
    let findings = of("fifo:80", |_, cycle| if cycle == 9 { -40 } else { 5_000 }, |_| {});
    assert_eq!(findings, [Finding::Early { early: 2, earliest_ns: 40 }]);
}

#[test]
fn a_maximum_of_the_throttle_is_no_latency() {
    let (old, new) = ("6.11.0", "6.12.0");
    for (policy, release, runtime_us, max_us, found) in [
        ("fifo:80", old, 950_000, 50_000, Some((50_000, Limiter::Throttling))),
        ("fifo:80", old, 950_000, 50_500, Some((50_000, Limiter::Throttling))),
        ("fifo:80", old, 950_000, 50_501, None),
        ("fifo:80", old, 950_000, 49_500, Some((50_000, Limiter::Throttling))),
        ("fifo:80", old, 950_000, 49_499, None),
        ("fifo:80", old, 950_000, 950_000, None),
        ("fifo:80", old, -1, 50_000, None),
        ("other", old, 950_000, 949_965, Some((950_000, Limiter::Throttling))),
        ("other", old, 950_000, 50_000, None),
        ("fifo:80", new, -1, 50_000, Some((50_000, Limiter::FairServer))),
        ("fifo:80", new, 900_000, 100_000, None),
        ("other", new, -1, 950_000, Some((950_000, Limiter::FairServer))),
    ] {
        let mut run = RunBuilder::new();
        run.header.host.rt_runtime_us = Some(runtime_us);
        run.header.host.kernel_release = Some(release.to_owned());
        let max_ns = max_us * 1_000;
        run.cell("none", policy).measure(0, 0, |_, cycle| if cycle == 9 { max_ns } else { 5_000 });
        let stops_realtime = policy != "other";
        let expected = found.map(|(quantum_us, limiter)| Finding::MaxIsThrottleQuantum {
            max_ns,
            quantum_us,
            limiter,
            stops_realtime,
        });
        let is_throttle = |finding: &Finding| matches!(finding, Finding::MaxIsThrottleQuantum { .. });
        assert_eq!(findings_of(&run).into_iter().find(is_throttle), expected, "{policy} {release} {max_us} us");
    }
}

#[test]
fn steal_counts_within_the_window_only() {
    let mut run = RunBuilder::new();
    run.cell("none", "fifo:80").measure(0, 0, steady);
    let second =
        |at, steal_ms| MachineSecond { at: Span(at), elapsed: Span::SECOND, steal_ms, ..MachineSecond::default() };
    run.entries[0].record.machine =
        vec![second(0, Some(500)), second(1_000_000_000, Some(30)), second(2_000_000_000, None)];
    assert_eq!(
        findings_of(&run),
        [Finding::Steal { steal_ms: 30, share: Some(0.015) }],
        "a row that is not known has no part in the share"
    );
}

#[test]
fn findings_read_as_one_line_of_plain_words() {
    for (finding, text) in [
        (
            Finding::TimerSlack { slack_ns: 50_000 },
            "up to 50 us of each wake-up is timer slack (prctl PR_SET_TIMERSLACK), not scheduling",
        ),
        (
            Finding::Missed {
                missed: 2_788,
                stalls: 14,
                longest_ns: 44_000_000,
                at_least: false,
                p99_by_due_time_ns: Some(1_900_000),
            },
            "2 788 due times missed in 14 stalls; longest 44 ms; p99 is 1.9 ms when they count too",
        ),
        (
            Finding::Missed {
                missed: 1,
                stalls: 1,
                longest_ns: 9_300_000_000,
                at_least: true,
                p99_by_due_time_ns: None,
            },
            "1 due time missed in 1 stall; longest more than 9.3 s",
        ),
        (
            Finding::RtThrottling { runtime_us: 950_000, period_us: 1_000_000 },
            "real-time throttling is on: threads that use 950 ms of a 1 s period may be stopped for 50 ms (sched_rt_runtime_us)",
        ),
        (
            Finding::FairServer { runtime_us: 50_000, period_us: 1_000_000 },
            "the fair server is on by default (since Linux 6.12; not read back): normal threads get up to 50 ms of each second from real-time ones that keep a CPU busy",
        ),
        (
            Finding::MaxIsThrottleQuantum {
                max_ns: 50_100_000,
                quantum_us: 50_000,
                limiter: Limiter::FairServer,
                stops_realtime: true,
            },
            "max 50.1 ms is within 1 % of the 50 ms for which the fair server stops real-time threads: probably they kept the CPU busy",
        ),
        (
            Finding::MaxIsThrottleQuantum {
                max_ns: 950_000_000,
                quantum_us: 950_000,
                limiter: Limiter::Throttling,
                stops_realtime: false,
            },
            "max 950 ms is within 1 % of the 950 ms after which real-time throttling lets normal threads run: probably a real-time one kept the CPU busy",
        ),
        (
            Finding::VisibilityFloor { measured_ns: 8_000_000_000, floor_ns: 2_670_000_000 },
            "8 s measured in each cell: a cause rarer than once per 2.67 s has more than a 5 % chance of not having been seen",
        ),
        (
            Finding::FewSamples { level: Level::P999, n_eff: 4_000, more_ns: Some(3_000_000_000) },
            "p99.9 not shown: worth only 4 000 independent samples; about 3 s more would do",
        ),
        (
            Finding::Steal { steal_ms: 412, share: Some(0.021) },
            "the hypervisor took 412 ms of CPU time while this was measured (2.1 %); a coincidence, not a proven cause",
        ),
        (
            Finding::Skipped {
                cells: ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec(),
                reason: "needs root".into(),
            },
            "not measured: a, b, c and 2 more: needs root",
        ),
    ] {
        assert_eq!(finding.to_string(), text);
        assert!(text.len() <= 160);
    }
}
