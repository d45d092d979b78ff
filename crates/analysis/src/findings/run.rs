//! Findings about the course of the run: missing measurements, and events too rare to see.

use super::{Finding, when};
use crate::stats::rate::visibility_floor;
use crate::summary::cell::CellSummary;
use crate::summary::names;
use crate::wording::{count, duration, things};
use punctual_model::{Ended, Entry, Header, Span};

finding!(
    /// Measurements ended early by a signal.
    pub struct Interrupted {
        /// Number of them.
        pub measurements: u64,
    },
    importance = 1,
    format!(
        "interruption: {} ended early by a signal; only the time until then counts",
        things(*measurements, "measurement")
    ),
    [Interrupted { measurements: 2 }]
);

finding!(
    /// Measurements ended early by a wake-up beyond the limit of `--stop-above`.
    pub struct Stopped {
        /// Number of them.
        pub measurements: u64,
    },
    importance = 1,
    {
        let measurements = things(*measurements, "measurement");
        format!("--stop-above: {measurements} ended early at a wake-up beyond the limit; the rest was not measured")
    },
    [Stopped { measurements: 2 }]
);

finding!(
    /// Fewer measurements are complete than planned.
    pub struct NotAllCellsDone {
        /// Complete measurements.
        pub done: u64,
        /// Planned measurements.
        pub planned: u64,
    },
    importance = 1,
    {
        let (done, planned) = (count(*done), things(*planned, "measurement"));
        format!("incomplete run: {done} of {planned}; a kept run continues with punctual run --resume")
    },
    [NotAllCellsDone { done: 11, planned: 12 }]
);

finding!(
    /// Measurements of a cell that failed at every attempt, for one reason.
    pub struct MeasurementsFailed {
        /// Name of the cell.
        pub cell: String,
        /// Number of them.
        pub measurements: u64,
        /// Reason of the last failure.
        pub reason: String,
    },
    importance = 1,
    format!(
        "failure: {} of {cell}, twice: {reason}; punctual run --resume tries again",
        things(*measurements, "measurement")
    ),
    [MeasurementsFailed {
        cell: "cost/other".into(),
        measurements: 1,
        reason: "guest on debian:6.1: qemu-system-x86_64 exited (signal: 9 (SIGKILL))".into()
    }]
);

finding!(
    /// Combinations of the plan that could not be measured, for one reason.
    pub struct Skipped {
        /// Their names.
        pub cells: Vec<String>,
        /// The reason, and what would allow it.
        pub reason: String,
    },
    importance = 1,
    format!("skipped cells: {}: {reason}", some_of(cells)),
    [Skipped {
        cells: vec!["none/fifo:80".into(), "none/rr:80".into()],
        reason: "fifo:80 needs CAP_SYS_NICE; run as root".into()
    }]
);

finding!(
    /// Events too rare to have been seen.
    pub struct VisibilityFloor {
        /// Measured time of the least measured cell, ns.
        pub measured_ns: u64,
        /// Events rarer than one in this time may have been missed (95 %), ns.
        pub floor_ns: u64,
    },
    importance = 9,
    {
        let (measured, floor) = (duration(*measured_ns as f64), duration(*floor_ns as f64));
        format!("{measured} measured in each cell: events rarer than one in {floor} may have been missed (95 %)")
    },
    [VisibilityFloor { measured_ns: 24_000_000_000, floor_ns: 8_010_000_000 }]
);

/// The first names, and the number of the others.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{shown} and {more} more"),
        _ => shown,
    }
}

/// Complete measurements, and planned ones: for a run that stops once decided or precise enough, those of the blocks
/// that were begun.
pub fn progress(header: &Header, entries: &[Entry]) -> (u64, u64) {
    let done = entries.iter().filter(|entry| entry.record.ended == Ended::Completed).count();
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let begun = entries.iter().map(|entry| u64::from(entry.planned.block) + 1).max().unwrap_or(1);
    let planned = match header.plan.until {
        Some(_) => begun.saturating_mul(count(header.cells.len())),
        None => count(header.n_measurements()),
    };
    (count(done), planned)
}

/// Findings about complete and missing measurements.
pub(super) fn findings(header: &Header, entries: &[Entry], cells: &[CellSummary]) -> Vec<Finding> {
    let mut findings: Vec<_> = skipped(header).into_iter().map(Finding::from).collect();
    let (done, planned) = progress(header, entries);
    let count = |ended| entries.iter().filter(|entry| entry.record.ended == ended).count() as u64;
    let (interrupted, stopped) = (count(Ended::Interrupted), count(Ended::Stopped));
    findings.extend(when(interrupted > 0, Interrupted { measurements: interrupted }));
    findings.extend(when(stopped > 0, Stopped { measurements: stopped }));
    findings.extend(when((entries.len() as u64) < planned, NotAllCellsDone { done, planned }));
    findings.extend(failed(header).into_iter().map(Finding::from));
    let waiting = cells.iter().filter(|cell| cell.cell.task.has_latencies());
    let least = waiting.map(|cell| cell.measured).filter(|measured| *measured > Span(0)).min();
    let floor = least.map(|least| VisibilityFloor { measured_ns: least.ns(), floor_ns: visibility_floor(least).ns() });
    findings.extend(floor.map(Finding::from));
    findings
}

/// Failed measurements, grouped by cell and reason.
fn failed(header: &Header) -> Vec<MeasurementsFailed> {
    let names = names::of_cells(&header.cells);
    let mut all: Vec<MeasurementsFailed> = Vec::new();
    for failed in &header.failed {
        let cell = names.get(failed.planned.cell_index).map_or("", String::as_str);
        match all.iter_mut().find(|other| other.cell == cell && other.reason == failed.reason) {
            Some(other) => other.measurements += 1,
            None => {
                let (cell, reason) = (cell.to_owned(), failed.reason.clone());
                all.push(MeasurementsFailed { cell, measurements: 1, reason });
            }
        }
    }
    all
}

/// Skipped combinations, grouped by reason.
pub fn skipped(header: &Header) -> Vec<Skipped> {
    let all: Vec<_> = header.cells.iter().chain(header.skipped.iter().map(|skipped| &skipped.cell)).cloned().collect();
    let names = names::of_cells(&all).into_iter().skip(header.cells.len());
    let mut all: Vec<Skipped> = Vec::new();
    for (skipped, name) in header.skipped.iter().zip(names) {
        match all.iter_mut().find(|other| other.reason == skipped.reason) {
            Some(other) => other.cells.push(name),
            None => all.push(Skipped { cells: vec![name], reason: skipped.reason.clone() }),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarise;
    use crate::testing::{RunBuilder, cell};
    use punctual_model::{Failed, Planned};

    #[test]
    fn a_complete_run_says_only_what_it_could_not_see() {
        let mut run = RunBuilder::new();
        run.cell("none", "other");
        run.header.plan.repetitions = 1;
        run.measure(0, 0, |_, _| 5_000);
        let summary = summarise(&run.header, &run.entries);
        let [Finding::VisibilityFloor(VisibilityFloor { measured_ns, floor_ns })] = summary.findings[..] else {
            panic!("{:?}", summary.findings)
        };
        assert_eq!(measured_ns / floor_ns, 2, "a third of it, rounded up");
    }

    #[test]
    fn what_is_missing_is_said() {
        let mut run = RunBuilder::new();
        run.cell("none", "other");
        run.header.plan.repetitions = 3;
        assert_eq!(findings(&run.header, &[], &[]), [NotAllCellsDone { done: 0, planned: 3 }.into()]);
        for block in 0..2 {
            run.measure(block, 0, |_, _| 5_000);
        }
        run.entries[1].record.ended = Ended::Interrupted;
        let expected = [Interrupted { measurements: 1 }.into(), NotAllCellsDone { done: 1, planned: 3 }.into()];
        assert_eq!(findings(&run.header, &run.entries, &[]), expected);
    }

    #[test]
    fn failed_measurements_are_grouped_and_make_limits_inconclusive() {
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
                "failure: 2 measurements of none/other, twice: no power; punctual run --resume tries again",
                "failure: 1 measurement of cpu/other, twice: no power; punctual run --resume tries again",
                "failure: 1 measurement of cpu/other, twice: no room; punctual run --resume tries again",
            ]
        );
        assert_eq!(summary.verdict.exit_status(), 3, "{}", summary.verdict);
    }

    #[test]
    fn skipped_cells_are_grouped_by_reason() {
        let mut run = RunBuilder::new();
        for (load, reason) in [("none", "needs root"), ("cpu", "no such load"), ("messaging", "needs root")] {
            run.header.skipped.push(punctual_model::Skipped { cell: cell(load, "fifo:80"), reason: reason.to_owned() });
        }
        let skipped = |cells: &[&str], reason: &str| Skipped {
            cells: cells.iter().map(|name| (*name).to_owned()).collect(),
            reason: reason.to_owned(),
        };
        assert_eq!(
            super::skipped(&run.header),
            [skipped(&["none/fifo:80", "messaging/fifo:80"], "needs root"), skipped(&["cpu/fifo:80"], "no such load")]
        );
        let many = skipped(&["a", "b", "c", "d", "e"], "needs root");
        assert_eq!(many.to_string(), "skipped cells: a, b, c and 2 more: needs root");
    }
}
