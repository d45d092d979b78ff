//! Findings about the numbers of one cell.

use super::{Finding, coincidence, cost, load, settings, stalls, steadiness, throttling, uncertainty, when};
use crate::summary::cell::CellSummary;
use crate::summary::pool::Pool;
use crate::summary::threads::CobaltThreads;
use crate::wording::{count, duration, things};
use punctual_model::{Header, OnSpikeRecord, SwitchReason, Usage};

finding!(
    /// Threads of Cobalt left its primary mode between two cycles.
    pub struct ModeSwitches {
        /// Number of switches to secondary mode.
        pub switches: u64,
        /// Why the first happened; `null` if Cobalt did not say.
        pub reason: Option<SwitchReason>,
    },
    importance = 1,
    format_args!(
        "mode switches: {} to secondary mode during the cycles{}; those latencies are of Linux, not of Cobalt",
        count(*switches),
        reason.map_or_else(String::new, |reason| format!(", the first because of {reason}"))
    ),
    [ModeSwitches { switches: 3, reason: None }, ModeSwitches { switches: 1, reason: Some(SwitchReason::Watchdog) }]
);

finding!(
    /// Threads of Cobalt whose mode switches were never counted.
    pub struct UnknownModeSwitches {
        /// Number of threads.
        pub threads: u64,
    },
    importance = 1,
    format!("mode switches unknown: {} did not end", things(*threads, "thread")),
    [UnknownModeSwitches { threads: 1 }]
);

finding!(
    /// Wake-ups before their due time that gravity explains.
    pub struct EarlyByGravity {
        /// Number of them.
        pub early: u64,
        /// The earliest, ns before its due time.
        pub earliest_ns: u64,
        /// Gravity for threads of programs, ns; `null` if unknown.
        pub gravity_ns: Option<i64>,
    },
    importance = 5,
    format_args!(
        "early wake-ups: {}, up to {} before the due time; gravity fires the timers of Cobalt early{}",
        count(*early),
        duration(*earliest_ns as f64),
        gravity_ns.map_or_else(|| " (unknown here)".to_owned(), |ns| format!(" ({})", duration(ns as f64)))
    ),
    [EarlyByGravity { early: 12, earliest_ns: 487, gravity_ns: Some(2000) }]
);

finding!(
    /// Memory allocations inside the measured section: a defect of this program.
    pub struct Allocations {
        /// Number of calls.
        pub allocations: u64,
    },
    importance = 0,
    {
        let calls = things(*allocations, "memory allocation");
        format!("bug in punctual: {calls} in the measured section; please report it")
    },
    [Allocations { allocations: 2 }]
);

finding!(
    /// Samples lost because the log was full; they are in no number.
    pub struct Lost {
        /// Number of samples.
        pub lost: u64,
    },
    importance = 0,
    format!("lost samples: {} (log full), missing from all results; measure again", count(*lost)),
    [Lost { lost: 3 }]
);

finding!(
    /// Due times that passed without a wake-up that tells how late; they are in no number.
    pub struct NotSeen {
        /// Number of them.
        pub unseen: u64,
        /// All due times.
        pub due: u64,
    },
    importance = 0,
    {
        let due = count(*due);
        format!("not seen: {} of {due} due times have no wake-up that tells how late they were", count(*unseen))
    },
    [NotSeen { unseen: 3_893, due: 8_000 }]
);

finding!(
    /// Failures of the command that runs at spikes.
    pub struct OnSpikeFailed {
        /// Number of failures.
        pub failed: u64,
        /// Number of runs.
        pub runs: u64,
        /// Reason of the first failure.
        pub reason: String,
    },
    importance = 4,
    {
        let (failed, runs) = (count(*failed), things(*runs, "run"));
        format!("on_spike command failed in {failed} of {runs}: {reason}; the measurement continued")
    },
    [OnSpikeFailed { failed: 1, runs: 3, reason: "exit status: 127: sh: 1: perf: not found".into() }]
);

finding!(
    /// Page faults of a measured thread.
    pub struct PageFaults {
        /// Without I/O.
        pub minor: u64,
        /// With I/O.
        pub major: u64,
    },
    importance = 5,
    format!("page faults in the measured threads: {} minor, {} major (with I/O)", count(*minor), count(*major)),
    [PageFaults { minor: 3, major: 1 }]
);

finding!(
    /// Wake-ups before their due time.
    pub struct Early {
        /// Number of them.
        pub early: u64,
        /// The earliest, ns before its due time.
        pub earliest_ns: u64,
    },
    importance = 5,
    format!(
        "early wake-ups: {}, up to {} before the due time; the clock or the timer is inaccurate",
        count(*early),
        duration(*earliest_ns as f64)
    ),
    [Early { early: 12, earliest_ns: 800 }]
);

/// Findings about one cell.
pub(super) fn findings(header: &Header, pool: &Pool<'_>, summary: &CellSummary) -> Vec<Finding> {
    if !pool.cell.task.has_latencies() {
        return of_costs(header, pool);
    }
    let mut findings = Vec::new();
    let usage = |of: fn(&Usage) -> u64| pool.sum(|thread| thread.usage.as_ref().map_or(0, of));
    let allocations = usage(|usage| usage.allocations);
    findings.extend(when(allocations > 0, Allocations { allocations }));
    findings.extend(summary.lost.filter(|lost| *lost > 0).map(|lost| Finding::from(Lost { lost })));
    let unseen = summary.ledger.not_seen();
    findings.extend(when(unseen > 0, NotSeen { unseen, due: summary.ledger.due }));
    if let Some(CobaltThreads { mode_switches: switches, reason, unknown, .. }) = summary.cobalt {
        findings.extend(when(switches > 0, ModeSwitches { switches, reason }));
        findings.extend(when(unknown > 0, UnknownModeSwitches { threads: unknown }));
    }
    findings.extend(cost::of_load(summary));
    findings.extend(stalls::findings(pool, summary));
    findings.extend(stalls::clock(pool));
    findings.extend(throttling::of_cell(header, summary));
    // Of gaps those speak that count, not their quantiles, which depend on the threshold.
    if !pool.cell.task.is_noise() {
        findings.extend(steadiness::findings(summary));
        findings.extend(uncertainty::by_block(pool));
        findings.extend(uncertainty::uncertainty(pool, summary));
    }
    let (minor, major) = (usage(|usage| usage.minor_faults), usage(|usage| usage.major_faults));
    findings.extend(when(minor + major > 0, PageFaults { minor, major }));
    if let (Some(n @ 1..), Some(min_ns @ ..0)) = (summary.early, summary.min_ns) {
        findings.push(early(summary, n, min_ns));
    }
    findings.extend(settings::of_threads(pool));
    findings.extend(load::findings(pool));
    findings.extend(settings::lost(pool));
    findings.extend(on_spike(pool));
    findings.extend(coincidence::steal(header, pool));
    findings.extend(coincidence::findings(pool));
    findings
}

/// Early wake-ups, by gravity where it can explain the earliest.
fn early(summary: &CellSummary, early: u64, min_ns: i64) -> Finding {
    let earliest_ns = min_ns.unsigned_abs();
    match summary.cobalt.map(|cobalt| cobalt.gravity_ns) {
        Some(gravity_ns) if gravity_ns.is_none_or(|gravity| gravity >= min_ns.saturating_neg()) => {
            EarlyByGravity { early, earliest_ns, gravity_ns }.into()
        }
        _ => Early { early, earliest_ns }.into(),
    }
}

/// Failures of the command that runs at spikes, if there were any.
fn on_spike(pool: &Pool<'_>) -> Option<Finding> {
    let told = || pool.entries.iter().filter_map(|entry| entry.record.on_spike.as_ref());
    let sum = |of: fn(&OnSpikeRecord) -> u64| told().map(of).sum::<u64>();
    let reason = told().find_map(|record| record.reason.clone())?;
    Some(OnSpikeFailed { failed: sum(|record| record.failed), runs: sum(|record| record.runs), reason }.into())
}

/// Findings about operations, which have no wake-ups.
fn of_costs(header: &Header, pool: &Pool<'_>) -> Vec<Finding> {
    let mut findings = cost::findings(pool);
    findings.extend(load::findings(pool));
    findings.extend(settings::lost(pool));
    findings.extend(coincidence::steal(header, pool));
    findings
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::findings::{DmaLatencyLeft, FewSlices, MemoryUnlocked};
    use crate::summarise;
    use crate::testing::RunBuilder;
    use punctual_model::{Achieved, ThreadRecord};

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
        // 4000 samples have 4 above p99.9, so every short cell has that finding.
        findings.into_iter().filter(|finding| !matches!(finding, Finding::FewSamples(_))).collect()
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
    fn settings_and_faults_are_found() {
        let usage = |change: fn(&mut Usage)| {
            move |thread: &mut ThreadRecord| {
                thread.usage.iter_mut().for_each(change);
            }
        };
        let achieved = |change: fn(&mut Achieved)| move |thread: &mut ThreadRecord| change(&mut thread.achieved);
        let fifo = |change: &dyn Fn(&mut ThreadRecord)| of("fifo:80", steady, change);
        assert_eq!(fifo(&usage(|u| u.allocations = 1)), [Allocations { allocations: 2 }.into()]);
        assert_eq!(fifo(&usage(|u| u.minor_faults = 2)), [PageFaults { minor: 4, major: 0 }.into()]);
        assert_eq!(fifo(&|thread| thread.lost = 1), [Lost { lost: 2 }.into()]);
        assert_eq!(fifo(&achieved(|a| a.memory_locked_bytes = 0)), [MemoryUnlocked {}.into()]);
        assert_eq!(fifo(&achieved(|a| a.cpu_dma_latency_us = None)), [DmaLatencyLeft {}.into()]);
        assert_eq!(fifo(&|thread| thread.slices.truncate(3)), [FewSlices { slices: 3, need: 10 }.into()]);
    }

    #[test]
    fn early_wakeups_are_found() {
        let findings = of("fifo:80", |_, cycle| if cycle == 9 { -40 } else { 5_000 }, |_| {});
        assert_eq!(findings, [Early { early: 2, earliest_ns: 40 }.into()]);
    }
}
