//! Activity of a load during the measurement: the proof that it ran.

use super::CostRecord;
use crate::Span;
use serde::{Deserialize, Deserializer, Serialize};

/// Activity of one part of a load during the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LoadRecord {
    /// The part in its typed form; empty in older records, which had one part only.
    #[serde(default)]
    pub load: String,
    /// Name of one operation: "message". For an outside program "run": it exited with status 0 and was started again.
    pub operation: String,
    /// Number of processes that this program started for it.
    pub workers: u64,
    /// The outside program; `null` for built-in loads.
    #[serde(default)]
    pub program: Option<ProgramRecord>,
    /// Time, ns, from the start of the first process until every one had completed an operation; `null` when unknown.
    #[serde(rename = "starting_ns", default)]
    pub starting: Option<Span>,
    /// One row for each reading, about a second apart.
    pub seconds: Vec<LoadSecond>,
    /// Failure of the load; `null` for a load that lasted.
    #[serde(default)]
    pub failure: Option<LoadFailure>,
    /// Costs of its operations in the measured time; `null` for every load but `cost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Box<CostRecord>>,
}

/// The outside program that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProgramRecord {
    /// Path of the executable.
    pub path: String,
    /// Version that it reports; `null` when it reports none.
    pub version: Option<String>,
}

/// Activity of the load between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LoadSecond {
    /// Time since the previous reading, ns.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Span,
    /// Operations in that time; `null` for a program that does not report them.
    pub operations: Option<u64>,
    /// CPU time of its processes in that time, us, summed over the CPUs; `null` when unknown.
    #[serde(default)]
    pub cpu_us: Option<u64>,
}

/// Failure of a load to keep up its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LoadFailure {
    /// Time of detection, ns after the first measured due time; 0 when before it.
    #[serde(rename = "at_ns")]
    pub at: Span,
    /// Description of the event: "process 4120 ended (signal: 9 (SIGKILL))".
    pub reason: String,
}

/// Shortest interval that is compared, three readings: a pause of a second is not a fall.
const MIN_INTERVAL: Span = Span(2_500_000_000);
/// Least number of operations in the first interval. File writes come in bursts: 30 a second, beside other work, varied
/// from 11 to 68 and soon fell to half of the first second's rate; 300 of them never did.
const MIN_OPERATIONS: u64 = 300;
/// Least CPU time of an outside program in the first interval, us: a program that mostly waits uses a little now and
/// then.
const MIN_CPU_US: u64 = 100_000;

/// Number of operations, at the earlier rate, after whose time without any operation a load counts as stalled, at the
/// latest after [`STALLED_FOR`] and never in less than about one reading. A short pause is normal: a load waits for a
/// disk.
const STALLED_AFTER: f64 = 10_000.0;
const STALLED_FOR: Span = Span(10_000_000_000);
const NO_PAUSE: Span = Span(900_000_000);

impl LoadRecord {
    /// The lowest of its rates as a share of the first one: operations, or CPU time for an outside program, whose runs
    /// may be longer than any reading. `None` when there is too little to compare, or the first rate is 0.
    ///
    /// The first interval is the shortest of three readings or more with 300 operations, or 0.1 s of CPU time. It is
    /// compared with every later one of as many readings, so that a fluctuating rate does not count as a fall.
    pub fn lowest_share(&self) -> Option<f64> {
        let is_program = self.program.is_some();
        let amount = |second: &LoadSecond| if is_program { second.cpu_us } else { second.operations };
        let enough = if is_program { MIN_CPU_US } else { MIN_OPERATIONS };
        // Cumulative sums up to each reading, so that an interval is a difference: a cell may last for days.
        let mut until = vec![(0_u64, 0_u64)];
        for second in &self.seconds {
            let (done, ns) = until.last().copied().unwrap_or_default();
            until.push((done.saturating_add(amount(second)?), ns.saturating_add(second.elapsed.ns())));
        }
        let is_first = |&(done, ns): &(u64, u64)| ns >= MIN_INTERVAL.ns() && done >= enough;
        let readings = until.iter().position(is_first)?;
        let (done, ns) = until.get(readings)?;
        let first = *done as f64 / *ns as f64;
        let stretches = until.iter().zip(until.iter().skip(readings)).skip(readings);
        let stretches = stretches.map(|(from, to)| (to.0 - from.0, to.1 - from.1));
        let rates = stretches.filter(|(_, ns)| *ns >= MIN_INTERVAL.ns()).map(|(done, ns)| done as f64 / ns as f64);
        rates.map(|rate| rate / first).min_by(f64::total_cmp)
    }

    /// Whether it has done nothing for longer than its usual pauses; never true of an outside program, which counts
    /// runs only.
    pub fn has_stalled(&self) -> bool {
        let is_idle = |second: &&LoadSecond| second.operations == Some(0);
        let n_idle = self.seconds.iter().rev().take_while(is_idle).count();
        if n_idle == 0 || self.program.is_some() {
            return false;
        }
        let (before, idle) = self.seconds.split_at(self.seconds.len() - n_idle);
        let time = |seconds: &[LoadSecond]| seconds.iter().map(|second| second.elapsed.ns()).sum::<u64>();
        let done = before.iter().filter_map(|second| second.operations).sum::<u64>();
        let expected = done as f64 / time(before).max(1) as f64 * time(idle) as f64;
        time(idle) >= STALLED_FOR.ns() || time(idle) >= NO_PAUSE.ns() && expected >= STALLED_AFTER
    }

    /// Whether it did nothing in all of the measured time: no operation, or of an outside program no CPU time. False
    /// where that is unknown, or nothing was measured.
    pub fn did_nothing(&self) -> bool {
        let is_program = self.program.is_some();
        let amount = |second: &LoadSecond| if is_program { second.cpu_us } else { second.operations };
        let time: u64 = self.seconds.iter().map(|second| second.elapsed.ns()).sum();
        time > 0 && self.seconds.iter().all(|second| amount(second) == Some(0))
    }

    /// Operations a second over all readings; `None` where they are not counted, or without a reading.
    pub fn per_second(&self) -> Option<f64> {
        let operations = self.seconds.iter().map(|second| second.operations).sum::<Option<u64>>()?;
        self.over_time(operations as f64)
    }

    /// Average number of CPUs that it kept busy, like 1.5; `None` when unknown, or without a reading.
    pub fn cpus_used(&self) -> Option<f64> {
        let us = self.seconds.iter().map(|second| second.cpu_us).sum::<Option<u64>>()?;
        self.over_time(us as f64 / 1e6)
    }

    fn over_time(&self, amount: f64) -> Option<f64> {
        let elapsed_s = self.seconds.iter().map(|second| second.elapsed.ns()).sum::<u64>() as f64 / 1e9;
        (elapsed_s > 0.0).then(|| amount / elapsed_s)
    }
}

/// Older records hold one part, or `null`.
pub(super) fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<LoadRecord>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Loads {
        Many(Vec<LoadRecord>),
        One(Box<LoadRecord>),
    }
    Ok(match Option::<Loads>::deserialize(deserializer)? {
        None => Vec::new(),
        Some(Loads::Many(loads)) => loads,
        Some(Loads::One(load)) => vec![*load],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(program: bool, seconds: &[(u64, Option<u64>, Option<u64>)]) -> LoadRecord {
        let second = |&(ms, operations, cpu_us)| LoadSecond { elapsed: Span(ms * 1_000_000), operations, cpu_us };
        LoadRecord {
            program: program.then(|| ProgramRecord { path: "/bin/x".to_owned(), version: None }),
            seconds: seconds.iter().map(second).collect(),
            ..LoadRecord::default()
        }
    }

    #[test]
    fn the_lowest_share_compares_with_the_start() {
        let second = |operations: u64| (1000, Some(operations), None);
        let program = |cpu_ms: u64| (1000, None, Some(cpu_ms * 1000));
        let of = |operations: &[u64]| operations.iter().map(|n| second(*n)).collect::<Vec<_>>();
        for (is_program, seconds, share) in [
            (false, vec![], None),
            (false, of(&[100, 100, 100, 100, 100]), None),
            (false, of(&[100, 100, 99, 50, 50, 49]), None),
            (false, of(&[100, 100, 100, 50, 50, 50]), Some(50)),
            (false, of(&[100, 100, 100, 50, 50, 50, 20, 20, 20, 300, 300, 300]), Some(20)),
            // One second without any operation is a pause, three are a fall.
            (false, of(&[100, 100, 100, 100, 0, 100, 100]), Some(67)),
            (false, of(&[100, 100, 100, 0, 0, 0]), Some(0)),
            // Readings of other lengths are compared by time, not by number.
            (false, vec![second(300), (2000, Some(600), None), (4000, Some(600), None), (1, Some(0), None)], Some(50)),
            (false, vec![second(300), (1500, Some(450), None), (1000, Some(0), None), (1499, Some(0), None)], None),
            (false, of(&[0, 0, 0, 0, 0, 0]), None),
            // 4 operations a second fluctuate; over 76 s they do not.
            (false, (0..160).map(|n| second(if n % 2 == 0 { 2 } else { 6 })).collect(), Some(100)),
            (false, (0..160).map(|n| second(if n < 75 { 4 } else { 1 })).collect(), Some(25)),
            (true, [program(80), program(80), program(80), program(20), program(20), program(20)].to_vec(), Some(25)),
            (true, vec![program(80), program(80), program(80), (1000, None, None)], None),
            // A millisecond now and then is not a rate.
            (true, vec![program(1), program(0), program(1), program(0), program(0), program(0)], None),
        ] {
            let found = record(is_program, &seconds).lowest_share();
            assert_eq!(found.map(|share| (share * 100.0).round()), share.map(f64::from), "{seconds:?}");
        }
    }

    #[test]
    fn a_load_has_stalled_when_it_is_idle_for_longer_than_it_pauses() {
        let of = |operations: &[u64]| operations.iter().map(|n| (1000, Some(*n), None)).collect::<Vec<_>>();
        let slow = |idle: usize| [vec![4; 5], vec![0; idle]].concat();
        for (program, seconds, stalled) in [
            (false, vec![], false),
            (false, of(&[10_000, 0]), true),
            (false, of(&[9_999, 0]), false),
            (false, of(&[9_999, 0, 0]), true),
            (false, of(&[10_000, 0, 1]), false),
            (false, vec![(1000, Some(1_000_000), None), (899, Some(0), None)], false),
            (false, of(&slow(9)), false),
            (false, of(&slow(10)), true),
            (false, of(&[0; 9]), false),
            (false, of(&[0; 10]), true),
            (true, of(&[10_000, 0]), false),
        ] {
            assert_eq!(record(program, &seconds).has_stalled(), stalled, "{seconds:?}");
        }
    }

    #[test]
    fn a_load_did_nothing_when_that_is_known_of_all_the_time() {
        let idle = (1000, Some(0), Some(0));
        for (program, seconds, nothing) in [
            (false, vec![], false),
            (false, vec![(0, Some(0), None)], false),
            (false, vec![(300, Some(0), None)], true),
            (false, vec![(300, Some(1), None)], false),
            (false, vec![idle, idle], true),
            (false, vec![idle, (1000, Some(1), None)], false),
            (true, vec![(1000, None, Some(0))], true),
            (true, vec![(1000, Some(5), Some(1))], false),
            (true, vec![idle, (1000, Some(0), None)], false),
        ] {
            assert_eq!(record(program, &seconds).did_nothing(), nothing, "{seconds:?}");
        }
    }

    #[test]
    fn rates_are_over_all_readings_or_unknown() {
        let load = record(false, &[(1000, Some(100), Some(500_000)), (3000, Some(500), Some(1_500_000))]);
        assert_eq!((load.per_second(), load.cpus_used()), (Some(150.0), Some(0.5)));
        let load = record(true, &[(1000, None, None)]);
        assert_eq!((load.per_second(), load.cpus_used()), (None, None));
        assert_eq!(record(false, &[]).per_second(), None);
    }

    #[test]
    fn older_records_are_read() {
        #[derive(Deserialize)]
        struct Old {
            #[serde(alias = "load", default, deserialize_with = "one_or_many")]
            loads: Vec<LoadRecord>,
        }
        let n =
            |json: &str| serde_json::from_str::<Old>(json).map(|old| old.loads.len()).map_err(|err| err.to_string());
        let row = r#"{"operation":"message","workers":40,"seconds":[{"elapsed_ns":5,"operations":7}]}"#;
        assert_eq!(n("{}"), Ok(0));
        assert_eq!(n(r#"{"load":null}"#), Ok(0));
        assert_eq!(n(&format!(r#"{{"load":{row}}}"#)), Ok(1));
        assert_eq!(n(&format!(r#"{{"loads":[{row},{row}]}}"#)), Ok(2));
    }
}
