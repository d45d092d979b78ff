//! The answer in two sentences: the worst latency, and its chance of being exceeded.

use punctual_analysis::enough::Shortfall;
use punctual_analysis::wording::duration;
use punctual_analysis::{CellSummary, Max, RunSummary};
use punctual_model::{Policy, Span, Task};
use std::collections::BTreeSet;

/// The largest latency of each policy, where it was, the measured time, and the chance of being exceeded.
pub(crate) fn how_late(summary: &RunSummary) -> String {
    let worst = worst_within(summary, true);
    chance(summary).map_or(worst.clone(), |chance| format!("{worst} {chance}"))
}

/// The largest latency of each policy, and where it was.
pub(crate) fn worst(summary: &RunSummary) -> String {
    worst_within(summary, false)
}

fn worst_within(summary: &RunSummary, has_time: bool) -> String {
    let waiting = || summary.cells.iter().filter(|cell| cell.cell.task.has_latencies());
    if waiting().next().is_none() && !summary.cells.is_empty() {
        return super::cost::answer(summary);
    }
    let times: Vec<_> = waiting().map(|cell| cell.measured).filter(|measured| *measured > Span(0)).collect();
    let parts = by_policy(summary);
    let (Some(measured), false) = (times.iter().min(), parts.is_empty()) else {
        return "Nothing was measured.".to_owned();
    };
    let is_virtual = waiting().all(|cell| cell.cell.kernel.is_virtual());
    let of = if is_virtual { " of virtual time" } else { "" };
    let per_cell = if times.len() == 1 { "" } else { " per cell" };
    let time = format!(" in {}{of}{per_cell}", duration(measured.ns() as f64));
    let event = match () {
        () if waiting().all(|cell| matches!(cell.cell.task, Task::Response(_))) => "response",
        () if waiting().all(|cell| matches!(cell.cell.task, Task::Sleep(_))) => "sleep error",
        () if waiting().all(|cell| matches!(cell.cell.task, Task::Watch(_))) => "response",
        () => "wake-up",
    };
    let s = if parts.len() == 1 { "" } else { "s" };
    let what = if has_time { format!(" {event}{s}{time}") } else { String::new() };
    format!("Worst{what}: {}.", parts.join(", "))
}

/// The chance that a repetition exceeds the maxima. `None` where a repetition is the same to the bit, or nothing was
/// measured.
fn chance(summary: &RunSummary) -> Option<String> {
    let mut waiting = summary.cells.iter().filter(|cell| cell.cell.task.has_latencies());
    let can_differ = waiting.any(|cell| !cell.cell.kernel.is_virtual()) && !by_policy(summary).is_empty();
    // m more seconds exceed the maximum of n with probability m/(n+m) for any stationary distribution.
    can_differ.then(|| "If you measure as long again, expect a new maximum with 50 % probability.".to_owned())
}

/// The worst latency of each policy.
fn by_policy(summary: &RunSummary) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let waiting = summary.cells.iter().filter(|cell| cell.cell.task.has_latencies());
    let policies = waiting.map(|cell| cell.cell.policy).filter(|policy| seen.insert(*policy));
    policies.filter_map(|policy| worst_as(policy, &summary.cells)).collect()
}

/// Result of a run that ends once its numbers are precise enough.
pub(crate) fn enough(shortfalls: &[Shortfall]) -> String {
    const SHOWN: usize = 2;
    let shown: Vec<String> = shortfalls.iter().take(SHOWN).map(ToString::to_string).collect();
    match shortfalls.len().saturating_sub(SHOWN) {
        _ if shown.is_empty() => "Enough: every number asked for is as sure as it has to be.".to_owned(),
        0 => format!("Not enough: {}.", shown.join("; ")),
        more => format!("Not enough: {}; and {more} more.", shown.join("; ")),
    }
}

fn worst_as(policy: Policy, cells: &[CellSummary]) -> Option<String> {
    let of_policy = cells.iter().filter(|cell| cell.cell.policy == policy);
    let maxima = of_policy.filter_map(|cell| Some((cell, cell.max?)));
    let (cell, Max { latency_ns, at_least, cpu, .. }) = maxima.max_by_key(|(_, max)| (max.latency_ns, max.at_least))?;
    let more_than = if at_least { "more than " } else { "" };
    // The policy precedes it.
    let place = cell.name.replacen(&format!("/{policy}"), "", 1);
    Some(format!("{policy} {more_than}{} ({place}, CPU {cpu})", duration(latency_ns as f64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::summarise;
    use punctual_analysis::testing::RunBuilder;

    #[test]
    fn the_answer_is_no_bound() {
        let mut run = RunBuilder::new();
        let answer = |run: &RunBuilder| how_late(&summarise(&run.header, &run.entries));
        assert_eq!(answer(&run), "Nothing was measured.");
        run.cell("none", "other");
        assert_eq!(answer(&run), "Nothing was measured.");
        run.measure(0, 0, |_, _| 60_000);
        assert_eq!(
            answer(&run),
            "Worst wake-up in 2 s: other 60 us (none, CPU 0). If you measure as long again, expect a new maximum with 50 % \
             probability."
        );
        run.cell("none", "fifo:80");
        assert!(answer(&run).starts_with("Worst wake-up in 2 s: "), "the other cell was not measured");
        run.measure(0, 1, |cpu, cycle| if cpu == 1 && cycle > 800 { i64::MAX } else { 5_000 });
        assert_eq!(
            answer(&run),
            "Worst wake-ups in 2 s per cell: other 60 us (none, CPU 0), fifo:80 more than 1.2 s (none, CPU 1). If you \
             measure as long again, expect a new maximum with 50 % probability."
        );
        run.header.cells.iter_mut().for_each(|cell| cell.kernel = "debian:6.1".parse().unwrap());
        let repeated = answer(&run);
        assert!(repeated.contains("of virtual time per cell: ") && !repeated.contains("probability"), "{repeated}");
        run.header.cells[1].kernel = punctual_model::Kernel::Running;
        assert!(answer(&run).ends_with("with 50 % probability."), "one cell is repeated in real time");
        run.entries.iter_mut().for_each(|entry| entry.record.threads.clear());
        assert_eq!(answer(&run), "Nothing was measured.", "time alone is no wake-up");
    }
}
