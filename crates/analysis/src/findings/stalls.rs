//! Findings about waits that took too long or did not end, and effects that look like one.

use super::{Finding, answers, when};
use crate::summary::cell::CellSummary;
use crate::summary::pool::Pool;
use crate::wording::{count, duration, number, things};
use punctual_model::Task;

finding!(
    /// Threads were still waiting at the end of their block.
    pub struct Starved {
        /// Number of open waits.
        pub waits: u64,
        /// Lateness that the longest had reached, ns.
        pub at_least_ns: u64,
        /// Recorded wake-ups.
        pub samples: u64,
    },
    importance = 2,
    {
        let (waits, late) = (things(*waits, "wait"), duration(*at_least_ns as f64));
        let (how, then) = if *samples == 0 { (" (never woke)", "") } else { ("", "; max is a lower bound") };
        format!("starvation{how}: {waits} still open at the end, more than {late} late{then}")
    },
    [
        Starved { waits: 1, at_least_ns: 3_000_000_000, samples: 0 },
        Starved { waits: 1, at_least_ns: 3_000_000_000, samples: 310 }
    ]
);

finding!(
    /// Threads woke for less than half of their due times: they did not get the CPU.
    pub struct StarvedOfCpu {
        /// Due times they woke for.
        pub woke: u64,
        /// All due times.
        pub due: u64,
    },
    importance = 2,
    format!("starvation: only {} in {}", things(*woke, "wake-up"), things(*due, "period")),
    [StarvedOfCpu { woke: 310, due: 1_000 }]
);

finding!(
    /// Missed periods: due times that passed before the thread could sleep again.
    pub struct Missed {
        /// Number of them.
        pub missed: u64,
        /// Wake-ups later than a period, at the histogram's resolution.
        pub stalls: u64,
        /// The longest, ns.
        pub longest_ns: i64,
        /// Whether the longest was still open.
        pub at_least: bool,
        /// p99 with the missed due times filled in, ns; `None` if refused or only a lower bound.
        pub p99_by_due_time_ns: Option<i64>,
    },
    importance = 2,
    {
        let (missed, stalls) = (count(*missed), things(*stalls, "stall"));
        let (more_than, longest) = (if *at_least { "more than " } else { "" }, duration(*longest_ns as f64));
        let p99 = p99_by_due_time_ns.map(|ns| duration(ns as f64));
        let p99 = p99.map(|p99| format!("; p99 is {p99} with them")).unwrap_or_default();
        format!("missed periods: {missed} in {stalls}, longest {more_than}{longest}{p99}")
    },
    [Missed { missed: 46, stalls: 3, longest_ns: 22_000_000, at_least: false, p99_by_due_time_ns: Some(1_200_000) }]
);

finding!(
    /// Drift: a relative wait begins when the thread is ready, so each period is longer than requested.
    pub struct Drift {
        /// Periods fewer than with absolute due times.
        pub periods: u64,
        /// Periods in the measured time.
        pub due: u64,
    },
    importance = 4,
    {
        let (periods, due) = (count(*periods), things(*due, "period"));
        format!("drift of relative waits: {periods} of {due} lost; wait for absolute due times (TIMER_ABSTIME)")
    },
    [Drift { periods: 42, due: 1_000 }]
);

finding!(
    /// The clock used for waiting was set.
    pub struct ClockSet {
        /// Number of steps.
        pub steps: u64,
        /// The largest step, ns; negative when it was set back.
        pub largest_ns: i64,
    },
    importance = 1,
    {
        let by = duration(largest_ns.unsigned_abs() as f64);
        let way = if *largest_ns < 0 { "back" } else { "forward" };
        let times = if *steps == 1 { "once".to_owned() } else { format!("{} times", count(*steps)) };
        format!("clock step: set {times}, by {by} {way} at most; latencies follow that clock, not elapsed time")
    },
    [ClockSet { steps: 1, largest_ns: -1_000_000_000 }]
);

finding!(
    /// The start of the kernel's due times is not known exactly.
    pub struct OriginUncertain {
        /// Largest error, ns: latencies are smaller than shown by at most this.
        pub at_most_ns: u64,
    },
    importance = 8,
    {
        let by = duration(*at_most_ns as f64);
        format!("timer start known only to {by}: latencies may be smaller by as much")
    },
    [OriginUncertain { at_most_ns: 900 }]
);

finding!(
    /// Deadline misses were clustered.
    pub struct MissStorms {
        /// Number of episodes.
        pub episodes: u64,
        /// Upper limit of their rate at 95 %, from the differences within the run.
        pub upper_per_hour: f64,
    },
    importance = 3,
    {
        let (episodes, upper) = (things(*episodes, "episode"), number(*upper_per_hour));
        format!("clustered misses ({episodes}): their rate is only known to be below {upper}/h (95 %)")
    },
    [MissStorms { episodes: 14, upper_per_hour: 63.0 }]
);

/// Findings about waits that took longer than a period, or did not end.
pub(super) fn findings(pool: &Pool<'_>, summary: &CellSummary) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (samples, missed) = (summary.samples, summary.missed.unwrap_or(0));
    // Watched threads have a finding of their own.
    let censored = summary.censored.filter(|_| summary.watch.is_none());
    let starved = censored.map(|open| Starved { waits: open.waits, at_least_ns: open.at_least_ns, samples });
    findings.extend(starved.map(Finding::from));
    let due = pool.sum(|thread| thread.cycles_due);
    if summary.instrument.is_some() {
        // An outside program tells nothing about single waits.
        return Vec::new();
    }
    if let Some(response) = &summary.response {
        findings.extend(answers::findings(due, summary, response));
    } else if pool.cell.task.is_relative() {
        // A program of consecutive sleeps has no period to meet.
        let is_periodic = !matches!(pool.cell.task, Task::Sleep(_));
        findings.extend(when(missed > 0 && is_periodic, Drift { periods: missed, due }));
    } else if let (1.., Some(max)) = (missed, summary.max) {
        // A thread that is still waiting has the finding above.
        let is_starved = missed > due / 2 && summary.censored.is_none();
        findings.extend(when(is_starved, StarvedOfCpu { woke: samples, due }));
        let over = pool.sum(|thread| thread.histogram.count_above(thread.period_in(pool.cell).ns()));
        let open = summary.censored.map_or(0, |open| open.waits);
        let missed = Missed {
            missed,
            // A stall just longer than the period may share a bucket with shorter waits: there was at least one.
            stalls: (over + open).clamp(1, missed.max(1)),
            longest_ns: max.latency_ns,
            at_least: max.at_least,
            p99_by_due_time_ns: summary
                .due_times
                .quantiles
                .at(punctual_model::Level::P99)
                .value_ns()
                .filter(|_| !summary.due_times.at_least),
        };
        findings.push(missed.into());
    }
    // Twice the requested time is no miss for a sleep without a deadline.
    let has_deadline = pool.cell.deadline.is_some() || !matches!(pool.cell.task, Task::Sleep(_));
    let storms = summary.misses.filter(|rate| rate.storms && has_deadline);
    let storms = storms.map(|rate| MissStorms { episodes: rate.episodes, upper_per_hour: rate.upper_per_hour });
    findings.extend(storms.map(Finding::from));
    findings
}

/// Findings about the clock used for waiting.
pub(super) fn clock(pool: &Pool<'_>) -> Vec<Finding> {
    let steps = || pool.entries.iter().flat_map(|entry| &entry.record.clock_steps);
    let largest = steps().map(|step| step.step_ns).max_by_key(|step_ns| step_ns.unsigned_abs());
    let set = largest.map(|largest_ns| ClockSet { steps: steps().count() as u64, largest_ns }.into());
    let uncertain = pool.threads().filter_map(|(_, thread)| thread.origin_uncertainty).max();
    let uncertain = uncertain.map(|span| OriginUncertain { at_most_ns: span.ns() }.into());
    set.into_iter().chain(uncertain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::cell::tests::{findings_of, of, steady};
    use crate::testing::RunBuilder;
    use punctual_model::Span;

    #[test]
    fn a_thread_that_wakes_for_less_than_half_of_its_due_times_is_starved() {
        let found = |late_ns: i64| of("fifo:80", move |_, _| late_ns, |_| {});
        let is_starved = |finding: &Finding| matches!(finding, Finding::StarvedOfCpu(_));
        assert!(!found(1_900_000).iter().any(is_starved), "every other due time is half of them");
        assert!(found(2_100_000).iter().any(is_starved));
    }

    #[test]
    fn relative_waits_drift_and_clocks_that_are_set_are_named() {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        run.header.cells[0].task = "nanosleep".parse().unwrap();
        run.measure(0, 0, |_, cycle| if cycle == 9 { 2_500_000 } else { 5_000 });
        let due: u64 = run.entries[0].record.threads.iter().map(|thread| thread.cycles_due).sum();
        let missed: u64 = run.entries[0].record.threads.iter().map(|thread| thread.missed).sum();
        assert_eq!(findings_of(&run), [Drift { periods: missed, due }.into()]);
        run.entries[0].record.clock_steps =
            [3, -7, 5].map(|step_ns| punctual_model::ClockStep { at: Span(1), step_ns }).to_vec();
        assert_eq!(findings_of(&run)[0], ClockSet { steps: 3, largest_ns: -7 }.into());
        let uncertain = of("fifo:80", steady, |thread| thread.origin_uncertainty = Some(Span(700)));
        assert_eq!(uncertain, [OriginUncertain { at_most_ns: 700 }.into()]);
    }

    #[test]
    fn stalls_are_counted() {
        let boundary = of("fifo:80", |_, cycle| if cycle == 9 { 1_000_000 } else { 5_000 }, |_| {});
        assert_eq!(boundary, [], "the next due time is now: nothing missed");
        let just = of("fifo:80", |cpu, cycle| if (cpu, cycle) == (0, 9) { 1_000_001 } else { 5_000 }, |_| {});
        assert_eq!(
            just,
            [Missed { missed: 1, stalls: 1, longest_ns: 1_000_001, at_least: false, p99_by_due_time_ns: Some(5_023) }
                .into()]
        );
        let long = of("fifo:80", |_, cycle| if cycle == 9 { 44_000_000 } else { 5_000 }, |_| {});
        assert_eq!(
            long,
            [Missed { missed: 86, stalls: 2, longest_ns: 44_000_000, at_least: false, p99_by_due_time_ns: None }
                .into()]
        );
    }

    #[test]
    fn a_thread_that_never_wakes_is_starved() {
        let findings = of("other", |_, _| i64::MAX, |thread| thread.achieved.timer_slack_ns = 1);
        let starved = Finding::from(Starved { waits: 2, at_least_ns: 2_000_000_000, samples: 0 });
        let missed = Finding::from(Missed {
            missed: 3_998,
            stalls: 2,
            longest_ns: 2_000_000_000,
            at_least: true,
            p99_by_due_time_ns: None,
        });
        assert_eq!(missed.to_string(), "missed periods: 3 998 in 2 stalls, longest more than 2 s");
        assert_eq!(findings, [starved, missed]);
    }
}
