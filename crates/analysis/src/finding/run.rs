//! How the run went: what was not measured, and what it could not have seen.

use super::Finding;
use crate::name;
use crate::rate::visibility_floor;
use crate::summary::CellSummary;
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
    let waiting = cells.iter().filter(|cell| cell.cell.method.waits());
    let least = waiting.map(|cell| cell.measured).filter(|measured| *measured > Span(0)).min();
    findings.extend(least.map(|measured| Finding::VisibilityFloor {
        measured_ns: measured.ns(),
        floor_ns: visibility_floor(measured).ns(),
    }));
    findings
}

/// Skipped combinations, those with the same reason together.
fn skipped(header: &Header) -> Vec<Finding> {
    let all: Vec<_> = header.cells.iter().chain(header.skipped.iter().map(|skipped| &skipped.cell)).cloned().collect();
    let names = name::of_cells(&all).into_iter().skip(header.cells.len());
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
    use model::Skipped;

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
