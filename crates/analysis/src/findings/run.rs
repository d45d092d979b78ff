//! How the run went: what was not measured, and what it could not have seen.

use super::Finding;
use crate::stats::rate::visibility_floor;
use crate::summary::cell::CellSummary;
use crate::summary::names;
use model::{Ended, Entry, Header, Span};

/// Measurements that went on to their end, and how many the plan asks for: of a run that ends when it is decided or
/// enough, those of the blocks that were begun.
pub(crate) fn progress(header: &Header, entries: &[Entry]) -> (u64, u64) {
    let done = entries.iter().filter(|entry| entry.record.ended != Ended::Interrupted).count();
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let begun = entries.iter().map(|entry| u64::from(entry.planned.block) + 1).max().unwrap_or(1);
    let planned = match header.plan.until {
        Some(_) => begun.saturating_mul(count(header.cells.len())),
        None => count(header.n_measurements()),
    };
    (count(done), planned)
}

/// Findings about what was measured and what was not.
pub(super) fn findings(header: &Header, entries: &[Entry], cells: &[CellSummary]) -> Vec<Finding> {
    let mut findings = skipped(header);
    let (done, planned) = progress(header, entries);
    let interrupted = entries.iter().filter(|entry| entry.record.ended == Ended::Interrupted).count();
    if let Ok(measurements @ 1..) = u64::try_from(interrupted) {
        findings.push(Finding::Interrupted { measurements });
    }
    let stopped = entries.iter().filter(|entry| entry.record.ended == Ended::Stopped).count();
    if let Ok(measurements @ 1..) = u64::try_from(stopped) {
        findings.push(Finding::Stopped { measurements });
    }
    if u64::try_from(entries.len()).unwrap_or(u64::MAX) < planned {
        findings.push(Finding::NotAllCellsDone { done, planned });
    }
    findings.extend(failed(header));
    let waiting = cells.iter().filter(|cell| cell.cell.task.has_latencies());
    let least = waiting.map(|cell| cell.measured).filter(|measured| *measured > Span(0)).min();
    findings.extend(least.map(|measured| Finding::VisibilityFloor {
        measured_ns: measured.ns(),
        floor_ns: visibility_floor(measured).ns(),
    }));
    findings
}

/// Measurements that failed, those of a cell with the same reason together.
fn failed(header: &Header) -> Vec<Finding> {
    let names = names::of_cells(&header.cells);
    let mut findings: Vec<(&str, &str, u64)> = Vec::new();
    for failed in &header.failed {
        let cell = names.get(failed.planned.cell_index).map_or("", String::as_str);
        match findings.iter_mut().find(|(other, reason, _)| *other == cell && *reason == failed.reason) {
            Some((.., measurements)) => *measurements += 1,
            None => findings.push((cell, &failed.reason, 1)),
        }
    }
    let finding = |(cell, reason, measurements): (&str, &str, u64)| Finding::MeasurementsFailed {
        cell: cell.to_owned(),
        measurements,
        reason: reason.to_owned(),
    };
    findings.into_iter().map(finding).collect()
}

/// Skipped combinations, those with the same reason together.
fn skipped(header: &Header) -> Vec<Finding> {
    let all: Vec<_> = header.cells.iter().chain(header.skipped.iter().map(|skipped| &skipped.cell)).cloned().collect();
    let names = names::of_cells(&all).into_iter().skip(header.cells.len());
    let mut findings: Vec<(&str, Vec<String>)> = Vec::new();
    for (skipped, name) in header.skipped.iter().zip(names) {
        match findings.iter_mut().find(|(reason, _)| *reason == skipped.reason) {
            Some((_, names)) => names.push(name),
            None => findings.push((&skipped.reason, vec![name])),
        }
    }
    let finding = |(reason, cells): (&str, _)| Finding::Skipped { cells, reason: reason.to_owned() };
    findings.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarise;
    use crate::testing::{RunBuilder, cell};
    use model::{Failed, Planned, Skipped};

    #[test]
    fn a_complete_run_says_only_what_it_could_not_see() {
        let mut run = RunBuilder::new();
        run.cell("none", "other");
        run.header.plan.repetitions = 1;
        run.measure(0, 0, |_, _| 5_000);
        let summary = summarise(&run.header, &run.entries);
        let [Finding::VisibilityFloor { measured_ns, floor_ns }] = summary.findings[..] else {
            panic!("{:?}", summary.findings)
        };
        assert_eq!(measured_ns / floor_ns, 2, "a third of it, rounded up");
    }

    #[test]
    fn what_is_missing_is_said() {
        let mut run = RunBuilder::new();
        run.cell("none", "other");
        run.header.plan.repetitions = 3;
        assert_eq!(findings(&run.header, &[], &[]), [Finding::NotAllCellsDone { done: 0, planned: 3 }]);
        for block in 0..2 {
            run.measure(block, 0, |_, _| 5_000);
        }
        run.entries[1].record.ended = Ended::Interrupted;
        let expected = [Finding::Interrupted { measurements: 1 }, Finding::NotAllCellsDone { done: 1, planned: 3 }];
        assert_eq!(findings(&run.header, &run.entries, &[]), expected);
    }

    #[test]
    fn failed_measurements_are_grouped_by_cell_and_reason_and_no_limit_is_kept_without_them() {
        let mut run = RunBuilder::new();
        run.cell("none", "other").cell("cpu", "other");
        run.header.plan.repetitions = 3;
        run.header.plan.require.max = Some(Span::SECOND);
        run.measure(0, 0, |_, _| 5_000).measure(0, 1, |_, _| 5_000);
        for (block, cell_index, reason) in
            [(1, 0, "no power"), (2, 0, "no power"), (1, 1, "no power"), (2, 1, "no room")]
        {
            let planned = Planned { block, position: 0, cell_index };
            run.header.failed.push(Failed { planned, reason: reason.to_owned() });
        }
        let summary = summarise(&run.header, &run.entries);
        let said: Vec<_> =
            summary.findings.iter().map(ToString::to_string).filter(|said| said.contains("twice")).collect();
        assert_eq!(
            said,
            [
                "2 measurements of none/other failed twice: no power; run --resume tries again",
                "1 measurement of cpu/other failed twice: no power; run --resume tries again",
                "1 measurement of cpu/other failed twice: no room; run --resume tries again",
            ]
        );
        assert_eq!(summary.verdict.exit_status(), 3, "{}", summary.verdict);
    }

    #[test]
    fn skipped_cells_are_grouped_by_reason() {
        let mut run = RunBuilder::new();
        for (load, reason) in [("none", "needs root"), ("cpu", "no such load"), ("messaging", "needs root")] {
            run.header.skipped.push(Skipped { cell: cell(load, "fifo:80"), reason: reason.to_owned() });
        }
        let skipped = |cells: &[&str], reason: &str| Finding::Skipped {
            cells: cells.iter().map(|name| (*name).to_owned()).collect(),
            reason: reason.to_owned(),
        };
        assert_eq!(
            skipped_of(&run),
            [skipped(&["none/fifo:80", "messaging/fifo:80"], "needs root"), skipped(&["cpu/fifo:80"], "no such load")]
        );
    }

    fn skipped_of(run: &RunBuilder) -> Vec<Finding> {
        super::skipped(&run.header)
    }
}
