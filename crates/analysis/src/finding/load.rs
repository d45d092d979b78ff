//! Whether the load was what it says.

use super::Finding;
use crate::pool::Pool;
use model::{LoadRecord, Percent};

/// Findings about each part of the load, over all measurements of a cell.
pub(super) fn findings(pool: &Pool<'_>) -> Vec<Finding> {
    let parts = pool.entries.iter().map(|entry| entry.record.loads.len()).max().unwrap_or(0);
    let least = pool.cell.load_must_hold.unwrap_or(Percent::HALF);
    (0..parts).flat_map(|part| of_part(pool, part, least)).collect()
}

fn of_part(pool: &Pool<'_>, part: usize, least: Percent) -> Vec<Finding> {
    let records: Vec<&LoadRecord> = pool.entries.iter().filter_map(|entry| entry.record.loads.get(part)).collect();
    let Some(load) = records.first().map(|record| record.load.clone()) else { return Vec::new() };
    let mut findings = Vec::new();
    let failures: Vec<_> = records.iter().filter_map(|record| record.failure.as_ref()).collect();
    if let Some(first) = failures.first() {
        findings.push(Finding::LoadFailed {
            load: load.clone(),
            reason: first.reason.clone(),
            at_ms: first.at.ns() / 1_000_000,
            measurements: failures.len() as u64,
        });
    }
    // One that failed has fallen, too, which says no more.
    let lasting = records.iter().filter(|record| record.failure.is_none());
    let shares = lasting.clone().filter_map(|record| record.lowest_share());
    let low: Vec<f64> = shares.filter(|share| share * 100.0 < f64::from(least.get())).collect();
    if let Some(share) = low.iter().copied().min_by(f64::total_cmp) {
        findings.push(Finding::LoadFell { load: load.clone(), share, measurements: low.len() as u64 });
    }
    let mut programs = lasting.filter(|record| record.program.is_some() && !record.seconds.is_empty());
    if programs.any(|record| record.cpus_used() == Some(0.0)) {
        findings.push(Finding::LoadDidNothing { load });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::summarise;
    use crate::testing::RunBuilder;
    use model::{LoadFailure, LoadSecond, ProgramRecord, Span};

    fn second(operations: u64, cpu_us: u64) -> LoadSecond {
        LoadSecond { elapsed: Span::SECOND, operations: Some(operations), cpu_us: Some(cpu_us) }
    }

    fn run(change: impl Fn(&mut LoadRecord)) -> RunBuilder {
        let mut run = RunBuilder::new();
        run.cell("messaging", "other").measure(0, 0, |_, _| 5_000).measure(1, 0, |_, _| 5_000);
        for entry in &mut run.entries {
            let mut load = LoadRecord {
                load: "messaging".to_owned(),
                seconds: vec![second(1000, 1_000_000); 2],
                ..LoadRecord::default()
            };
            change(&mut load);
            entry.record.loads = vec![load];
        }
        run
    }

    fn said(run: &RunBuilder) -> Vec<String> {
        let cell = summarise(&run.header, &run.entries).cells.remove(0);
        let of_load = |text: &String| text.starts_with("load ");
        cell.findings.iter().map(ToString::to_string).filter(of_load).collect()
    }

    #[test]
    fn a_load_that_lasted_is_nothing_to_say() {
        assert_eq!(said(&run(|_| ())), Vec::<String>::new());
        assert_eq!(said(&run(|load| load.seconds[1].operations = Some(500))), Vec::<String>::new());
    }

    #[test]
    fn a_load_that_failed_or_fell_is_said_once() {
        let failure =
            LoadFailure { at: Span(1_500_000_000), reason: "process 7 ended (signal: 9 (SIGKILL))".to_owned() };
        assert_eq!(
            said(&run(|load| load.failure = Some(failure.clone()))),
            [
                "load messaging: process 7 ended (signal: 9 (SIGKILL)) after 1.5 s in 2 measurements: not all of the time was \
              measured under it; measure again"
            ]
        );
        let mut fell = run(|load| load.seconds[1].operations = Some(499));
        assert_eq!(
            said(&fell),
            ["load messaging fell to 50 % of its rate at the start in 2 measurements: see what else ran, or ask for \
              --load-must-hold"]
        );
        fell.header.cells[0].load_must_hold = Percent::new(40);
        assert_eq!(said(&fell), Vec::<String>::new());
    }

    #[test]
    fn a_program_that_used_no_cpu_time_is_named() {
        let idle = run(|load| {
            load.program = Some(ProgramRecord { path: "/bin/sleep".to_owned(), version: None });
            load.seconds = vec![second(0, 0); 2];
        });
        assert_eq!(said(&idle).len(), 1);
    }

    #[test]
    fn a_requirement_is_not_shown_to_be_kept_under_a_load_that_failed() {
        let failure = LoadFailure { at: Span(0), reason: "8 of 40 workers stalled".to_owned() };
        let mut run = run(|load| load.failure = Some(failure.clone()));
        run.header.plan.require.max = Some(Span(100_000_000));
        let verdict = summarise(&run.header, &run.entries).verdict;
        assert!(matches!(verdict, Verdict::NotShown { .. }), "{verdict:?}");
        assert!(verdict.to_string().contains("load messaging: 8 of 40 workers stalled"), "{verdict}");
    }
}
