//! Normal threads that are late because they share the CPU, shown by a real-time thread under the same load.

use super::Finding;
use crate::summary::cell::{CellSummary, Max};
use crate::summary::pool::Pool;
use crate::wording::{count, duration};
use punctual_model::{Cell, CpuSet, Entry, Host, Kernel, Load, Period, Policy, Prepare, Task};
use std::collections::HashMap;

finding!(
    /// A normal thread was late under a load that left a real-time one on time: it competes with others for the CPU.
    pub struct TakesTurns {
        /// Processes of the load.
        pub processes: u64,
        /// The largest latency, ns.
        pub max_ns: i64,
        /// The real-time policy of the comparison, measured under the same load.
        pub realtime: Policy,
        /// The largest latency with that policy, ns.
        pub realtime_max_ns: i64,
    },
    importance = 2,
    {
        let (max, realtime_max) = (duration(*max_ns as f64), duration(*realtime_max_ns as f64));
        let processes = count(*processes);
        format!(
            "fair scheduling: max {max}, but {realtime_max} with {realtime} under the same load; a normal thread shares \
             the CPU with {processes} load processes"
        )
    },
    [TakesTurns { processes: 400, max_ns: 48_000_000, realtime: "fifo:80".parse().unwrap(), realtime_max_ns: 210_000 }]
);

/// Smallest ratio of the normal thread's largest latency to the real-time thread's: below, it may be chance.
const CLEARLY: i64 = 2;

/// The real-time cells of a run, keyed by the conditions that a comparable normal cell shares: a run may have thousands
/// of both.
#[derive(Debug)]
pub(crate) struct Realtime<'a>(HashMap<Conditions<'a>, Vec<&'a CellSummary>>);

type Conditions<'a> = (&'a Kernel, &'a Load, Period, &'a Task, &'a CpuSet, &'a Prepare);

impl<'a> Realtime<'a> {
    /// Collects them from all cells of a run.
    pub(crate) fn of(run: &'a [CellSummary]) -> Realtime<'a> {
        let mut by: HashMap<_, Vec<_>> = HashMap::new();
        for summary in run.iter().filter(|summary| summary.cell.policy.is_realtime()) {
            by.entry(conditions(&summary.cell)).or_default().push(summary);
        }
        Realtime(by)
    }

    /// The same measurement as `summary` with a real-time policy, measured for at least half as long, because a maximum
    /// grows with time.
    fn beside<'s>(&'s self, summary: &'s CellSummary) -> impl Iterator<Item = &'s CellSummary> {
        let half_ns = summary.measured.ns() / 2;
        let same = self.0.get(&conditions(&summary.cell)).into_iter().flatten().copied();
        same.filter(move |other| other.measured.ns() >= half_ns)
    }
}

fn conditions(cell: &Cell) -> Conditions<'_> {
    (&cell.kernel, &cell.load, cell.period, &cell.task, &cell.cpus, &cell.conditions.prepare)
}

/// Finding about a normal thread that was later than a period under a load of more processes than CPUs, where a
/// real-time thread of the same run was at most half as late.
///
/// Of several real-time cells the one with the largest latency counts, which is the most conservative comparison.
pub(super) fn finding(host: &Host, pool: &Pool<'_>, summary: &CellSummary, realtime: &Realtime<'_>) -> Option<Finding> {
    if pool.cell.policy.is_realtime() {
        return None;
    }
    let workers = |entry: &&Entry| -> u64 { entry.record.loads.iter().map(|load| load.workers).sum() };
    let processes = pool.entries.iter().map(workers).max()?;
    let cpus = host.cpus_allowed.as_ref().or(host.cpus_online.as_ref()).unwrap_or(&pool.cell.cpus).len();
    let Max { latency_ns: max_ns, cpu, .. } = summary.max?;
    let is_crowded = usize::try_from(processes).is_ok_and(|processes| processes > cpus);
    if !is_crowded || u64::try_from(max_ns).unwrap_or(0) <= pool.cell.period_on(cpu).ns() {
        return None;
    }
    let realtime = realtime.beside(summary).filter_map(|other| {
        let max = other.max.filter(|max| !max.at_least && max.latency_ns.saturating_mul(CLEARLY) <= max_ns)?;
        Some((max.latency_ns, other.cell.policy))
    });
    let (realtime_max_ns, realtime) = realtime.max_by_key(|(max_ns, _)| *max_ns)?;
    Some(TakesTurns { processes, max_ns, realtime, realtime_max_ns }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarise;
    use crate::testing::RunBuilder;
    use punctual_model::{CpuSet, LoadRecord, Period, Span};

    const LATE: i64 = 3_000_000;

    /// A normal cell whose largest latency is `late_ns`, and a real-time one with `realtime_ns`, under a load.
    fn run(late_ns: i64, realtime_ns: i64) -> RunBuilder {
        let mut run = RunBuilder::new();
        run.cell("messaging", "other").cell("messaging", "fifo:80");
        for (cell, late_ns) in [(0, late_ns), (1, realtime_ns)] {
            run.measure(0, cell, |_, cycle| if cycle == 7 { late_ns } else { 5_000 });
        }
        with_load(&mut run);
        run
    }

    fn with_load(run: &mut RunBuilder) {
        for entry in &mut run.entries {
            entry.record.loads = vec![LoadRecord { workers: 400, ..LoadRecord::default() }];
        }
    }

    fn found(run: &RunBuilder) -> Option<Finding> {
        let summary = summarise(&run.header, &run.entries);
        let cells = summary.cells.into_iter().zip(summary.cell_findings);
        let mut turns = cells.flat_map(|(cell, findings)| findings.into_iter().map(move |f| (cell.cell.policy, f)));
        let found = turns.find(|(_, finding)| matches!(finding, Finding::TakesTurns(_)));
        assert!(found.as_ref().is_none_or(|(policy, _)| !policy.is_realtime()));
        found.map(|(_, finding)| finding)
    }

    #[test]
    fn it_takes_a_real_time_thread_that_is_half_as_late_at_most() {
        for (late_ns, realtime_ns, is_found) in [
            (LATE, 5_000, true),
            (LATE, LATE / 2, true),
            (LATE, LATE / 2 + 1, false),
            (LATE, i64::MAX, false),
            (1_000_000, 5_000, false),
            (1_000_001, 5_000, true),
            (i64::MAX, 5_000, true),
        ] {
            assert_eq!(found(&run(late_ns, realtime_ns)).is_some(), is_found, "{late_ns} {realtime_ns}");
        }
    }

    #[test]
    fn the_real_time_cell_differs_in_nothing_else() {
        let changed = |change: fn(&mut Cell)| {
            let mut run = run(LATE, 5_000);
            change(&mut run.header.cells[1]);
            found(&run)
        };
        assert!(changed(|_| ()).is_some());
        assert_eq!(changed(|cell| cell.load = "none".parse().unwrap()), None);
        assert_eq!(changed(|cell| cell.period = Period::try_from(Span(500_000)).unwrap()), None);
        assert_eq!(changed(|cell| cell.cpus = [0].into_iter().collect()), None);
        assert_eq!(changed(|cell| cell.policy = punctual_model::Policy::OTHER), None);

        let mut unmeasured = run(LATE, 5_000);
        unmeasured.entries.pop();
        assert_eq!(found(&unmeasured), None);
        let mut brief = run(LATE, 5_000);
        brief.entries[1].record.measured = Span(999_999_999);
        assert_eq!(found(&brief), None, "less than half of 2 s");
    }

    #[test]
    fn of_several_real_time_cells_the_latest_is_named() {
        let mut run = run(LATE, 5_000);
        run.cell("messaging", "fifo:10").measure(0, 2, |_, cycle| if cycle == 7 { 1_360_000 } else { 5_000 });
        run.cell("messaging", "fifo:20").measure(0, 3, |_, cycle| if cycle == 7 { 2_000_000 } else { 5_000 });
        with_load(&mut run);
        assert_eq!(
            found(&run).map(|finding| finding.to_string()).as_deref(),
            Some(
                "fair scheduling: max 3 ms, but 1.36 ms with fifo:10 under the same load; a normal thread shares the \
                 CPU with 400 load processes"
            )
        );
    }

    #[test]
    fn a_load_with_a_cpu_for_each_process_is_not_crowded() {
        let cpus = |n: u32| Some((0..n).collect::<CpuSet>());
        for (allowed, online, is_found) in [
            (cpus(399), cpus(8), true),
            (cpus(400), cpus(8), false),
            (None, cpus(400), false),
            (None, cpus(399), true),
            (None, None, true),
        ] {
            let mut run = run(LATE, 5_000);
            (run.header.host.cpus_allowed, run.header.host.cpus_online) = (allowed, online);
            assert_eq!(found(&run).is_some(), is_found, "{:?}", run.header.host.cpus_allowed);
        }
    }
}
