//! Waits that took too long or did not end, and what only looks like one.

use super::Finding;
use super::machine::{self, Share};
use crate::summary::cell::CellSummary;
use crate::summary::pool::Pool;
use crate::summary::responses::Response;
use model::{Header, Task};

/// How near to a limiter's time a maximum must be to be suspected, percent.
const NEAR: u64 = 1;

/// Waits that took longer than a period, or did not end at all.
pub(super) fn stalls(pool: &Pool<'_>, summary: &CellSummary) -> Vec<Finding> {
    let mut findings = Vec::new();
    let samples = summary.samples;
    findings.extend(summary.censored.map(|open| Finding::Starved {
        waits: open.waits,
        at_least_ns: open.at_least_ns,
        samples,
    }));
    if let Some(response) = &summary.response {
        findings.extend(answers(pool, summary, response));
    } else if pool.cell.task.is_relative() {
        // A program that sleeps again and again is not meant to keep a period.
        let is_periodic = !matches!(pool.cell.task, Task::Sleep(_));
        let due = pool.sum(|thread| thread.cycles_due);
        let drifted = summary.missed > 0 && is_periodic;
        findings.extend(drifted.then_some(Finding::Drift { periods: summary.missed, due }));
    } else if let (1.., Some(max)) = (summary.missed, summary.max) {
        let due = pool.sum(|thread| thread.cycles_due);
        // One that is still waiting has been said to be starved above.
        let is_starved = summary.missed > due / 2 && summary.censored.is_none();
        findings.extend(is_starved.then_some(Finding::StarvedOfCpu { woke: summary.samples, due }));
        let over = pool.sum(|thread| thread.histogram.count_above(pool.cell.period.ns()));
        let open = summary.censored.map_or(0, |open| open.waits);
        // A stall just longer than the period may share a bucket with shorter waits: at least one there was.
        let stalls = (over + open).clamp(1, summary.missed.max(1));
        findings.push(Finding::Missed {
            missed: summary.missed,
            stalls,
            longest_ns: max.latency_ns,
            at_least: max.at_least,
            p99_by_due_time_ns: summary.due_times.quantiles.p99.value_ns().filter(|_| !summary.due_times.at_least),
        });
    }
    // Longer than twice the time asked is no miss of a sleep that has no deadline.
    let has_deadline = pool.cell.deadline.is_some() || !matches!(pool.cell.task, Task::Sleep(_));
    let storms = summary.misses.filter(|rate| rate.storms && has_deadline);
    findings.extend(
        storms.map(|rate| Finding::MissStorms { episodes: rate.episodes, upper_per_hour: rate.upper_per_hour }),
    );
    findings
}

/// Answers that came late or never, and triggers that were not sent.
fn answers(pool: &Pool<'_>, summary: &CellSummary, response: &Response) -> Vec<Finding> {
    let Response { triggers, late, lost, lost_at_least_ns, unsent, left_out, .. } = *response;
    if left_out > 0 {
        return vec![Finding::AnswersLeftOut { left_out }];
    }
    let due = pool.sum(|thread| thread.cycles_due);
    let p99_by_due_time_ns = summary.due_times.quantiles.p99.value_ns();
    let never = Finding::NeverAnswered { never: lost, triggers, at_least_ns: lost_at_least_ns, p99_by_due_time_ns };
    [
        (lost > 0).then_some(never),
        (late > 0).then_some(Finding::LateAnswers { late, triggers }),
        (unsent > 0).then_some(Finding::NotSent { unsent, due }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What the clock that was waited by did.
pub(super) fn clock(pool: &Pool<'_>) -> Vec<Finding> {
    let steps = || pool.entries.iter().flat_map(|entry| &entry.record.clock_steps);
    let largest = steps().map(|step| step.step_ns).max_by_key(|step_ns| step_ns.unsigned_abs());
    let set = largest.map(|largest_ns| Finding::ClockSet { steps: steps().count() as u64, largest_ns });
    let uncertain = pool.threads().filter_map(|(_, thread)| thread.origin_uncertainty).max();
    let uncertain = uncertain.map(|span| Finding::OriginUncertain { at_most_ns: span.ns() });
    set.into_iter().chain(uncertain).collect()
}

/// A maximum that is the time for which something keeps a thread from running, rather than a latency.
pub(super) fn throttled(header: &Header, summary: &CellSummary) -> Option<Finding> {
    // An answer is late for reasons of the target and of the way to it.
    if summary.response.is_some() {
        return None;
    }
    let Share { runtime_us, period_us, limiter } = machine::realtime_share(&header.host)?;
    let max_ns = summary.max?.latency_ns;
    // A real-time thread waits until the period ends, a normal one until real-time threads have had their share.
    let stops_realtime = summary.cell.policy.is_realtime();
    let quantum_us = if stops_realtime { period_us - runtime_us } else { runtime_us };
    let quantum_ns = quantum_us.saturating_mul(1_000);
    let distance = u64::try_from(max_ns).unwrap_or(0).abs_diff(quantum_ns);
    let is_near = distance.saturating_mul(100) <= quantum_ns.saturating_mul(NEAR) && quantum_ns > 0;
    is_near.then_some(Finding::MaxIsThrottleQuantum { max_ns, quantum_us, limiter, stops_realtime })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Limiter;
    use crate::findings::cell::tests::{findings_of, of, steady};
    use crate::testing::RunBuilder;
    use model::Span;

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
        run.header.cells[0].task = "nanosleep".parse().unwrap();
        run.measure(0, 0, |_, cycle| if cycle == 9 { 2_500_000 } else { 5_000 });
        let due: u64 = run.entries[0].record.threads.iter().map(|thread| thread.cycles_due).sum();
        let missed: u64 = run.entries[0].record.threads.iter().map(|thread| thread.missed).sum();
        assert_eq!(findings_of(&run), [Finding::Drift { periods: missed, due }]);
        run.entries[0].record.clock_steps =
            [3, -7, 5].map(|step_ns| model::ClockStep { at: Span(1), step_ns }).to_vec();
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
            [Finding::Missed {
                missed: 86,
                stalls: 2,
                longest_ns: 44_000_000,
                at_least: false,
                p99_by_due_time_ns: None
            }]
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
}
