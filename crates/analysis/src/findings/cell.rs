//! What the records of one cell say about its numbers.

use super::{Finding, coincidence, cost, load, prepared, stalls, steadiness, uncertainty};
use crate::summary::cell::CellSummary;
use crate::summary::pool::Pool;
use model::{Achieved, Header, OnSpikeRecord, Span, Task, Usage};

/// Timer slack below this is no part worth naming: the smallest that can be set is 1 ns.
const SLACK_NS: u64 = 1_000;

/// Findings about one cell.
pub(super) fn findings(header: &Header, pool: &Pool<'_>, summary: &CellSummary) -> Vec<Finding> {
    if !pool.cell.task.has_latencies() {
        return of_costs(header, pool);
    }
    let mut findings = Vec::new();
    let usage = |of: fn(&Usage) -> u64| pool.sum(|thread| thread.usage.as_ref().map_or(0, of));
    let allocations = usage(|usage| usage.allocations);
    if allocations > 0 {
        findings.push(Finding::Allocations { allocations });
    }
    if summary.lost > 0 {
        findings.push(Finding::Lost { lost: summary.lost });
    }
    findings.extend(stalls::stalls(pool, summary));
    findings.extend(stalls::clock(pool));
    findings.extend(stalls::throttled(header, summary));
    findings.extend(steadiness::findings(summary));
    findings.extend(uncertainty::by_block(pool));
    let (minor, major) = (usage(|usage| usage.minor_faults), usage(|usage| usage.major_faults));
    if minor + major > 0 {
        findings.push(Finding::PageFaults { minor, major });
    }
    if let (1.., Some(min_ns @ ..0)) = (summary.early, summary.min_ns) {
        findings.push(Finding::Early { early: summary.early, earliest_ns: min_ns.unsigned_abs() });
    }
    findings.extend(settings(pool));
    findings.extend(load::findings(pool));
    findings.extend(prepared::findings(pool));
    findings.extend(on_spike(pool));
    findings.extend(steal(header, pool));
    findings.extend(coincidence::findings(pool));
    findings.extend(uncertainty::uncertainty(pool, summary));
    findings
}

/// Whether the command that runs at spikes did what it was to do.
fn on_spike(pool: &Pool<'_>) -> Option<Finding> {
    let told = || pool.entries.iter().filter_map(|entry| entry.record.on_spike.as_ref());
    let sum = |of: fn(&OnSpikeRecord) -> u64| told().map(of).sum::<u64>();
    let reason = told().find_map(|record| record.reason.clone())?;
    Some(Finding::OnSpikeFailed { failed: sum(|record| record.failed), runs: sum(|record| record.runs), reason })
}

/// Findings about operations, of which there are no wake-ups.
fn of_costs(header: &Header, pool: &Pool<'_>) -> Vec<Finding> {
    let mut findings = cost::findings(pool);
    findings.extend(load::findings(pool));
    findings.extend(prepared::findings(pool));
    findings.extend(steal(header, pool));
    findings
}

/// Settings of the measured threads that cost time.
fn settings(pool: &Pool<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let achieved = || pool.threads().map(|(_, thread)| &thread.achieved);
    let has_slack = |achieved: &&Achieved| !achieved.policy.is_realtime() && pool.cell.task.has_timer_slack();
    let slack = achieved().filter(has_slack).map(|achieved| achieved.timer_slack_ns);
    findings.extend(slack.max().filter(|ns| *ns >= SLACK_NS).map(|slack_ns| Finding::TimerSlack { slack_ns }));
    // A language's program locks none, and is measured as it is.
    let is_ours = !matches!(pool.cell.task, Task::Sleep(_));
    if is_ours && achieved().any(|achieved| achieved.memory_locked_bytes == 0) {
        findings.push(Finding::MemoryUnlocked);
    }
    if achieved().any(|achieved| achieved.cpu_dma_latency_us.is_none()) {
        findings.push(Finding::DmaLatencyLeft);
    }
    findings
}

/// Time that the hypervisor took within the measured windows.
fn steal(header: &Header, pool: &Pool<'_>) -> Option<Finding> {
    let seconds = || pool.entries.iter().flat_map(|entry| &entry.record.machine).filter(|second| second.at > Span(0));
    let known = || seconds().filter_map(|second| Some((second.steal_ms?, second.elapsed)));
    let steal_ms: u64 = known().map(|(steal_ms, _)| steal_ms).sum();
    let elapsed: f64 = known().map(|(_, elapsed)| elapsed.as_secs_f64()).sum();
    let cpus = header.host.cpus_online.as_ref().map(model::CpuSet::len).filter(|cpus| *cpus > 0);
    let share = cpus.map(|cpus| steal_ms as f64 / 1e3 / elapsed / cpus as f64);
    (steal_ms > 0).then_some(Finding::Steal { steal_ms, share })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::Level;
    use crate::findings::Limiter;
    use crate::summarise;
    use crate::testing::RunBuilder;
    use model::{Achieved, MachineSecond, ThreadRecord};

    /// One cell of one block; `change` is applied to every thread.
    pub(in crate::findings) fn of(
        policy: &str,
        latency_ns: impl Fn(u32, u64) -> i64,
        change: impl Fn(&mut ThreadRecord),
    ) -> Vec<Finding> {
        let mut run = RunBuilder::new();
        run.cell("none", policy).measure(0, 0, latency_ns);
        run.entries[0].record.threads.iter_mut().for_each(change);
        findings_of(&run)
    }

    pub(in crate::findings) fn findings_of(run: &RunBuilder) -> Vec<Finding> {
        let findings = summarise(&run.header, &run.entries).cell_findings.remove(0);
        // 4000 samples have 4 above p99.9: every short cell says so.
        findings.into_iter().filter(|finding| !matches!(finding, Finding::FewSamples { .. })).collect()
    }

    pub(in crate::findings) fn steady(_: u32, _: u64) -> i64 {
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
        timer.header.cells[0].task = "timerfd".parse().unwrap();
        timer.measure(0, 0, steady);
        assert_eq!(findings_of(&timer), [], "timers have none");
        let unused = of("fifo:80", steady, |thread| thread.achieved.timer_slack_ns = 50_000);
        assert_eq!(unused, [], "older kernels report a value that real-time threads do not use");
    }

    #[test]
    fn a_language_keeps_no_period_and_locks_no_memory() {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        run.header.cells[0].task = "clock_nanosleep:relative".parse().unwrap();
        // Every other sleep takes so long that a due time is past.
        run.measure(0, 0, |_, cycle| if cycle % 4 == 0 { 1_500_000 } else { 5_000 });
        run.entries[0].record.threads.iter_mut().for_each(|thread| thread.achieved.memory_locked_bytes = 0);
        let found = findings_of(&run);
        assert!(matches!(found[..], [Finding::Drift { .. }, Finding::MemoryUnlocked]), "{found:?}");
        run.header.cells[0].task = "sleep:c".parse().unwrap();
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
    fn early_wakeups_are_found() {
        let findings = of("fifo:80", |_, cycle| if cycle == 9 { -40 } else { 5_000 }, |_| {});
        assert_eq!(findings, [Finding::Early { early: 2, earliest_ns: 40 }]);
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
}
