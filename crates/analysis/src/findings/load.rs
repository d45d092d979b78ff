//! Findings about loads that failed or slowed down.

use super::{Finding, when};
use crate::summary::pool::Pool;
use crate::wording::things;
use punctual_model::{Entry, LoadRecord, Percent};

finding!(
    /// A load failed before the end of the measurement.
    pub struct LoadFailed {
        /// Part of the load.
        pub load: String,
        /// The failure.
        pub reason: String,
        /// Time of the first failure, ms into its measurement.
        pub at_ms: u64,
        /// Number of measurements with it.
        pub measurements: u64,
    },
    importance = 0,
    {
        let (measurements, seconds) = (things(*measurements, "measurement"), *at_ms as f64 / 1e3);
        format!(
            "load failure: {load}: {reason} after {seconds:.1} s in {measurements}; part of the time had no such load, \
             measure again"
        )
    },
    [LoadFailed { load: "messaging".into(), reason: "1 of 400 processes ended".into(), at_ms: 4_000, measurements: 1 }]
);

finding!(
    /// A load slowed down during the measurement.
    pub struct LoadFell {
        /// Part of the load.
        pub load: String,
        /// Its lowest rate, as a share of the first one.
        pub share: f64,
        /// Number of measurements in which it fell below the required share, or half.
        pub measurements: u64,
    },
    importance = 1,
    {
        let (percent, measurements) = ((share * 100.0).floor(), things(*measurements, "measurement"));
        format!(
            "load slowdown: {load} fell to {percent:.0} % of its initial rate in {measurements}; --load-must-hold turns \
             this into an error"
        )
    },
    [LoadFell { load: "io".into(), share: 0.37, measurements: 2 }]
);

finding!(
    /// A load did nothing at all: no operation, or of an outside program no CPU time.
    pub struct LoadDidNothing {
        /// Part of the load.
        pub load: String,
        /// Number of measurements.
        pub measurements: u64,
    },
    importance = 1,
    {
        let measurements = things(*measurements, "measurement");
        format!("load did nothing: {load} in {measurements}, which are without load; try it: punctual load {load}")
    },
    [LoadDidNothing { load: "io".into(), measurements: 2 }]
);

/// Findings about each part of the load, over all measurements of a cell.
pub(super) fn findings(pool: &Pool<'_>) -> Vec<Finding> {
    let parts = pool.entries.iter().map(|entry| loads(entry).count()).max().unwrap_or(0);
    let least = pool.cell.conditions.load_must_hold.unwrap_or(Percent::HALF);
    (0..parts).flat_map(|part| of_part(pool, part, least)).collect()
}

/// The parts of the load, in a guest and beside it.
fn loads(entry: &Entry) -> impl Iterator<Item = &LoadRecord> {
    let host = entry.record.lab.iter().filter_map(|lab| lab.host.as_ref()).flat_map(|host| &host.loads);
    entry.record.loads.iter().chain(host)
}

fn of_part(pool: &Pool<'_>, part: usize, least: Percent) -> Vec<Finding> {
    let records: Vec<&LoadRecord> = pool.entries.iter().filter_map(|entry| loads(entry).nth(part)).collect();
    let Some(load) = records.first().map(|record| record.load.clone()) else { return Vec::new() };
    let failures: Vec<_> = records.iter().filter_map(|record| record.failure.as_ref()).collect();
    let failed = failures.first().map(|first| LoadFailed {
        load: load.clone(),
        reason: first.reason.clone(),
        at_ms: first.at.ns() / 1_000_000,
        measurements: failures.len() as u64,
    });
    // A failed load slowed down, too, which adds nothing.
    let lasting = records.iter().filter(|record| record.failure.is_none());
    let shares = lasting.clone().filter_map(|record| record.lowest_share());
    let low: Vec<f64> = shares.filter(|share| (share * 100.0).floor() < f64::from(least.get())).collect();
    let share = low.iter().copied().min_by(f64::total_cmp);
    let fell = share.map(|share| LoadFell { load: load.clone(), share, measurements: low.len() as u64 });
    let measurements = lasting.filter(|record| record.did_nothing()).count() as u64;
    let idle = when(measurements > 0, LoadDidNothing { load, measurements });
    [failed.map(Finding::from), fell.map(Finding::from), idle].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarise;
    use crate::testing::RunBuilder;
    use crate::verdict::Verdict;
    use punctual_model::{LoadFailure, LoadSecond, ProgramRecord, Span};

    fn second(operations: u64, cpu_us: u64) -> LoadSecond {
        LoadSecond { elapsed: Span::SECOND, operations: Some(operations), cpu_us: Some(cpu_us) }
    }

    fn run(change: impl Fn(&mut LoadRecord)) -> RunBuilder {
        let mut run = RunBuilder::new();
        run.cell("messaging", "other").measure(0, 0, |_, _| 5_000).measure(1, 0, |_, _| 5_000);
        for entry in &mut run.entries {
            let mut load = LoadRecord {
                load: "messaging".to_owned(),
                seconds: vec![second(1000, 1_000_000); 6],
                ..LoadRecord::default()
            };
            change(&mut load);
            entry.record.loads = vec![load];
        }
        run
    }

    fn said(run: &RunBuilder) -> Vec<String> {
        let findings = summarise(&run.header, &run.entries).cell_findings.remove(0);
        let of_load = |text: &String| text.starts_with("load ");
        findings.iter().map(ToString::to_string).filter(of_load).collect()
    }

    #[test]
    fn a_load_that_lasted_is_nothing_to_say() {
        assert_eq!(said(&run(|_| ())), Vec::<String>::new());
        let half = |load: &mut LoadRecord| load.seconds[3..].fill(second(500, 0));
        assert_eq!(said(&run(half)), Vec::<String>::new());
    }

    #[test]
    fn a_load_that_failed_or_fell_is_said_once() {
        let failure =
            LoadFailure { at: Span(1_500_000_000), reason: "process 7 ended (signal: 9 (SIGKILL))".to_owned() };
        assert_eq!(
            said(&run(|load| load.failure = Some(failure.clone()))),
            ["load failure: messaging: process 7 ended (signal: 9 (SIGKILL)) after 1.5 s in 2 measurements; part \
                 of the time had no such load, measure again"]
        );
        let mut fell = run(|load| load.seconds[3..].fill(second(499, 0)));
        assert_eq!(
            said(&fell),
            ["load slowdown: messaging fell to 49 % of its initial rate in 2 measurements; --load-must-hold turns \
              this into an error"]
        );
        fell.header.cells[0].conditions.load_must_hold = Percent::new(40);
        assert_eq!(said(&fell), Vec::<String>::new());
    }

    #[test]
    fn a_load_that_did_nothing_is_named() {
        let program = || Some(ProgramRecord { path: "/bin/sleep".to_owned(), version: None });
        for (program, second, is_named) in [
            (program(), second(0, 0), true),
            (program(), second(0, 1), false),
            (program(), LoadSecond { cpu_us: None, ..second(0, 0) }, false),
            (None, second(0, 5), true),
            (None, second(1, 0), false),
        ] {
            let idle = run(|load| (load.program, load.seconds) = (program.clone(), vec![second; 2]));
            let text = "load did nothing: messaging in 2 measurements, which are without load; try it: punctual load \
                        messaging";
            let expected: &[&str] = if is_named { &[text] } else { &[] };
            assert_eq!(said(&idle), expected, "{program:?} {second:?}");
        }
    }

    /// The verdict on a run that is far within its limit, or beyond it.
    fn verdict(change: impl Fn(&mut LoadRecord), limit: Span) -> Verdict {
        let mut run = run(change);
        run.header.plan.require.max = Some(limit);
        summarise(&run.header, &run.entries).verdict
    }

    #[test]
    fn a_failed_load_makes_limits_inconclusive() {
        let failure = LoadFailure { at: Span(0), reason: "8 of 40 workers stalled".to_owned() };
        let failed = |load: &mut LoadRecord| load.failure = Some(failure.clone());
        let idle = |load: &mut LoadRecord| load.seconds.fill(second(0, 0));
        let fell = |load: &mut LoadRecord| load.seconds[3..].fill(second(499, 0));
        let (kept, violated) = (Span(100_000_000), Span(1));
        assert!(matches!(verdict(|_| (), kept), Verdict::Pass { .. }));
        assert!(matches!(verdict(fell, kept), Verdict::Pass { .. }), "less of a load is one all the same");
        for (verdict, why) in [
            (verdict(failed, kept), "load messaging: 8 of 40 workers stalled"),
            (verdict(idle, kept), "load messaging: it did nothing"),
        ] {
            assert!(matches!(verdict, Verdict::Inconclusive { .. }), "{verdict:?}");
            assert!(verdict.to_string().contains(why), "{verdict}");
        }
        assert!(matches!(verdict(failed, violated), Verdict::Fail { .. }), "too late is too late");
    }
}
