//! The question in two sentences: how late this machine was, and how little of a bound that is.

use analysis::enough::Shortfall;
use analysis::wording::duration;
use analysis::{CellSummary, Max, RunSummary};
use model::{Policy, Span};
use std::collections::BTreeSet;

/// The largest latency of each policy that was measured, where it was, and its chance of being exceeded.
pub(crate) fn how_late(summary: &RunSummary) -> String {
    let waiting = || summary.cells.iter().filter(|cell| cell.cell.task.has_latencies());
    if waiting().next().is_none() && !summary.cells.is_empty() {
        return super::cost::answer(summary);
    }
    let times: Vec<_> = waiting().map(|cell| cell.measured).filter(|measured| *measured > Span(0)).collect();
    let mut seen = BTreeSet::new();
    let policies = waiting().map(|cell| cell.cell.policy).filter(|policy| seen.insert(*policy));
    let parts: Vec<_> = policies.filter_map(|policy| worst_as(policy, &summary.cells)).collect();
    let (Some(measured), false) = (times.iter().min(), parts.is_empty()) else {
        return "Nothing was measured.".to_owned();
    };
    let is_virtual = waiting().all(|cell| cell.cell.kernel.is_virtual());
    let time = match (is_virtual, times.len()) {
        (true, 1) => " of virtual time",
        (true, _) => " of virtual time of each cell",
        (false, 1) => "",
        (false, _) => " of each cell",
    };
    let (wake_ups, each) = if parts.len() == 1 { ("wake-up", "it") } else { ("wake-ups", "each") };
    let latest = format!("Latest {wake_ups} in {}{time}: {}.", duration(measured.ns() as f64), parts.join(", "));
    if is_virtual {
        // A repetition is the same to the bit.
        return latest;
    }
    // m more seconds exceed the maximum of n with probability m/(n+m) when nothing changes, whatever the distribution.
    format!("{latest} Measured as long again, {each} is exceeded with a chance of one half.")
}

/// Whether a run that was to end when its numbers are sure enough has come to that.
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
    // The policy was just named.
    let place = cell.name.replacen(&format!("/{policy}"), "", 1);
    Some(format!("{policy} {more_than}{} ({place}, CPU {cpu})", duration(latency_ns as f64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::summarise;
    use analysis::testing::RunBuilder;

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
            "Latest wake-up in 2 s: other 60 us (none, CPU 0). Measured as long again, it is exceeded with a chance of \
             one half."
        );
        run.cell("none", "fifo:80");
        assert!(answer(&run).starts_with("Latest wake-up in 2 s: "), "the other cell was not measured");
        run.measure(0, 1, |cpu, cycle| if cpu == 1 && cycle > 800 { i64::MAX } else { 5_000 });
        assert_eq!(
            answer(&run),
            "Latest wake-ups in 2 s of each cell: other 60 us (none, CPU 0), fifo:80 more than 1.2 s (none, CPU 1). \
             Measured as long again, each is exceeded with a chance of one half."
        );
        run.header.cells.iter_mut().for_each(|cell| cell.kernel = "debian:6.1".parse().unwrap());
        let repeated = answer(&run);
        assert!(repeated.contains("of virtual time of each cell: ") && !repeated.contains("chance"), "{repeated}");
        run.header.cells[1].kernel = model::Kernel::Running;
        assert!(
            answer(&run).ends_with("each is exceeded with a chance of one half."),
            "one cell is repeated in real time"
        );
        run.entries.iter_mut().for_each(|entry| entry.record.threads.clear());
        assert_eq!(answer(&run), "Nothing was measured.", "time alone is no wake-up");
    }
}
