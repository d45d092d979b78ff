//! What a load did while measuring: the proof that it was there.

use crate::Span;
use serde::{Deserialize, Deserializer, Serialize};

/// What one part of a load did while measuring.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadRecord {
    /// The part as it is typed; empty in older records, which had one part only.
    #[serde(default)]
    pub load: String,
    /// What one operation is: "message". For an outside program "run": it ended in success and was started again.
    pub operation: String,
    /// Processes that this program started for it.
    pub workers: u64,
    /// The outside program; `null` for built-in loads.
    #[serde(default)]
    pub program: Option<ProgramRecord>,
    /// Time, ns, from starting the first process until every one had done something; `null` when it is not known.
    #[serde(rename = "starting_ns", default)]
    pub starting: Option<Span>,
    /// One row for each reading, about a second apart.
    pub seconds: Vec<LoadSecond>,
    /// When it ceased to be what it was; `null` for a load that lasted.
    #[serde(default)]
    pub failure: Option<LoadFailure>,
}

/// An outside program as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramRecord {
    /// Its path.
    pub path: String,
    /// What it says of its version; `null` when it says nothing.
    pub version: Option<String>,
}

/// The load between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadSecond {
    /// Time between this reading and the one before, ns.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Span,
    /// Operations in that time; `null` for a program that does not say.
    pub operations: Option<u64>,
    /// CPU time that its processes used in that time, us, summed over the CPUs; `null` when it cannot be known.
    #[serde(default)]
    pub cpu_us: Option<u64>,
}

/// How a load came to be less than it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadFailure {
    /// When it was noticed, ns after the first measured cycle was due; 0 when before.
    #[serde(rename = "at_ns")]
    pub at: Span,
    /// What happened: "process 4120 ended (signal: 9 (SIGKILL))".
    pub reason: String,
}

/// A stretch shorter than this says too little about a rate.
const LONG_ENOUGH: Span = Span(500_000_000);
/// Operations that a stretch has at the start: chance then moves its rate by a tenth, not by half.
const ENOUGH: u64 = 100;

impl LoadRecord {
    /// The least of its rates, as a share of the one it began with: operations, or CPU time for an outside program, whose
    /// runs may be longer than any reading. `None` when there is too little to compare, or it began at nothing.
    ///
    /// The first stretch is the shortest with 100 operations in it, half a second at least; it is compared with every
    /// later one of as many readings. So a load of few operations a second is not said to fall because they fluctuate.
    #[must_use]
    pub fn lowest_share(&self) -> Option<f64> {
        let is_program = self.program.is_some();
        let amount = |second: &LoadSecond| if is_program { second.cpu_us } else { second.operations };
        let enough = if is_program { 1 } else { ENOUGH };
        let amounts: Vec<(u64, u64)> =
            self.seconds.iter().map(|second| Some((amount(second)?, second.elapsed.ns()))).collect::<Option<_>>()?;
        let sum = |stretch: &[(u64, u64)]| stretch.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let is_whole = |stretch: &[(u64, u64)]| sum(stretch).1 >= LONG_ENOUGH.ns();
        let readings = (1..=amounts.len()).find(|n| is_whole(&amounts[..*n]) && sum(&amounts[..*n]).0 >= enough)?;
        let (first, later) = amounts.split_at(readings);
        let rate = |stretch: &[(u64, u64)]| sum(stretch).0 as f64 / sum(stretch).1 as f64;
        let shares =
            later.windows(readings).filter(|stretch| is_whole(stretch)).map(|stretch| rate(stretch) / rate(first));
        shares.min_by(f64::total_cmp)
    }

    /// Operations a second over all readings; `None` where they are not counted, or without a reading.
    #[must_use]
    pub fn per_second(&self) -> Option<f64> {
        let operations = self.seconds.iter().map(|second| second.operations).sum::<Option<u64>>()?;
        self.over_time(operations as f64)
    }

    /// CPUs that it kept busy on average, like 1.5; `None` when that is not known, or without a reading.
    #[must_use]
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
        for (program, seconds, share) in [
            (false, vec![], None),
            (false, vec![second(100)], None),
            (false, vec![second(100), second(50), second(200)], Some(0.5)),
            (false, vec![second(100), (2000, Some(50), None)], Some(0.25)),
            (false, vec![second(100), (499, Some(0), None)], None),
            (false, vec![second(0), second(5)], None),
            // 4 operations a second fluctuate; over 26 s they do not.
            (false, (0..60).map(|n| second(if n % 2 == 0 { 2 } else { 6 })).collect(), Some(1.0)),
            (false, (0..60).map(|n| second(if n < 30 { 4 } else { 1 })).collect(), Some(0.25)),
            (true, vec![(1000, None, Some(80)), (1000, None, Some(20))], Some(0.25)),
            (true, vec![(1000, None, Some(80)), (1000, None, None)], None),
        ] {
            let found = record(program, &seconds).lowest_share();
            assert_eq!(
                found.map(|share| (share * 100.0).round()),
                share.map(|share: f64| (share * 100.0).round()),
                "{seconds:?}"
            );
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
