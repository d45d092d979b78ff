//! What the records of one cell say about its numbers.

use super::machine::Share;
use super::{Finding, coincidence, cost, load, machine, prepared, steadiness};
use crate::Level;
use crate::pool::Pool;
use crate::summary::CellSummary;
use crate::woodruff::{MIN_SLICES, Quantile, Refusal};
use model::{Achieved, Header, Method, OnSpikeRecord, Span, Usage};

/// Timer slack below this is no part worth naming: the smallest that can be set is 1 ns.
const SLACK_NS: u64 = 1_000;

/// Samples worth fewer independent ones than this share are remarked on.
const DEPENDENT: u64 = 10;

/// How near to a limiter's time a maximum must be to be suspected, percent.
const NEAR: u64 = 1;

/// Findings about one cell.
pub(super) fn findings(header: &Header, pool: &Pool<'_>, summary: &CellSummary) -> Vec<Finding> {
    if !pool.cell.method.waits() {
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
    findings.extend(stalls(pool, summary));
    findings.extend(clock(pool));
    findings.extend(throttled(header, summary));
    findings.extend(steadiness::findings(summary));
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
    findings.extend(uncertainty(pool, summary));
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

/// Waits that took longer than a period, or did not end at all.
fn stalls(pool: &Pool<'_>, summary: &CellSummary) -> Vec<Finding> {
    let mut findings = Vec::new();
    let samples = summary.samples;
    findings.extend(summary.censored.map(|open| Finding::Starved {
        waits: open.waits,
        at_least_ns: open.at_least_ns,
        samples,
    }));
    if pool.cell.method.is_relative() {
        // A program that sleeps again and again is not meant to keep a period.
        let is_periodic = !matches!(pool.cell.method, Method::Sleep(_));
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
    let has_deadline = pool.cell.deadline.is_some() || !matches!(pool.cell.method, Method::Sleep(_));
    let storms = summary.misses.filter(|rate| rate.storms && has_deadline);
    findings.extend(
        storms.map(|rate| Finding::MissStorms { episodes: rate.episodes, upper_per_hour: rate.upper_per_hour }),
    );
    findings
}

/// What the clock that was waited by did.
fn clock(pool: &Pool<'_>) -> Vec<Finding> {
    let steps = || pool.entries.iter().flat_map(|entry| &entry.record.clock_steps);
    let largest = steps().map(|step| step.step_ns).max_by_key(|step_ns| step_ns.unsigned_abs());
    let set = largest.map(|largest_ns| Finding::ClockSet { steps: steps().count() as u64, largest_ns });
    let uncertain = pool.threads().filter_map(|(_, thread)| thread.origin_uncertainty).max();
    let uncertain = uncertain.map(|span| Finding::OriginUncertain { at_most_ns: span.ns() });
    set.into_iter().chain(uncertain).collect()
}

/// A maximum that is the time for which something keeps a thread from running, rather than a latency.
fn throttled(header: &Header, summary: &CellSummary) -> Option<Finding> {
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

/// Settings of the measured threads that cost time.
fn settings(pool: &Pool<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let achieved = || pool.threads().map(|(_, thread)| &thread.achieved);
    let has_slack = |achieved: &&Achieved| !achieved.policy.is_realtime() && pool.cell.method.has_timer_slack();
    let slack = achieved().filter(has_slack).map(|achieved| achieved.timer_slack_ns);
    findings.extend(slack.max().filter(|ns| *ns >= SLACK_NS).map(|slack_ns| Finding::TimerSlack { slack_ns }));
    // A language's program locks none, and is measured as it is.
    let is_ours = !matches!(pool.cell.method, Method::Sleep(_));
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

/// Quantiles that are refused, or that have no interval, or rest on few independent samples.
fn uncertainty(pool: &Pool<'_>, summary: &CellSummary) -> Vec<Finding> {
    let few = |level: Level| match summary.quantiles.at(level) {
        Quantile::Refused(Refusal::FewExceedances { n_eff, times_as_long, .. }) => {
            let more = summary.measured.as_secs_f64() * (times_as_long - 1.0) * 1e9;
            let more_ns = (more > 0.0).then(|| crate::special::whole(more));
            Some(Finding::FewSamples { level, n_eff: *n_eff, more_ns })
        }
        _ => None,
    };
    // Of a cell that changed they would be numbers about a mixture.
    let is_steady = summary.steadiness.allows_intervals();
    // Of sleeps the tail beyond is not shown.
    let is_shown = |level: &Level| *level != Level::P999 || !matches!(pool.cell.method, Method::Sleep(_));
    // The lowest that is refused says it for those above.
    let refused = Level::ALL.into_iter().filter(is_shown).find_map(few);
    let mut findings: Vec<_> = refused.into_iter().filter(|_| is_steady).collect();
    let slices = pool.n_slices();
    if slices < MIN_SLICES && summary.samples > 0 {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        findings.push(Finding::FewSlices { slices: count(slices), need: count(MIN_SLICES) });
    }
    let n_eff = summary.n_eff.filter(|_| is_steady);
    let dependent = n_eff.filter(|n_eff| n_eff.saturating_mul(DEPENDENT) < summary.samples);
    findings.extend(dependent.map(|n_eff| Finding::Dependent { samples: summary.samples, n_eff }));
    findings
}

#[cfg(test)]
mod tests;
