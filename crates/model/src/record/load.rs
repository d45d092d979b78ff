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

/// Readings shorter than this say too little about a rate.
const LONG_ENOUGH: Span = Span(500_000_000);

impl LoadRecord {
    /// The least of its rates, as a share of its first one: operations, or CPU time where operations are not counted.
    /// `None` with fewer than two readings, or when it began at nothing.
    #[must_use]
    pub fn lowest_share(&self) -> Option<f64> {
        let of = |amount: fn(&LoadSecond) -> Option<u64>| {
            let rate = |second: &LoadSecond| Some(amount(second)? as f64 / second.elapsed.ns() as f64);
            let rates = self.seconds.iter().filter(|second| second.elapsed >= LONG_ENOUGH).map(rate);
            rates.collect::<Option<Vec<f64>>>()
        };
        // A run of a program may take longer than a second; its CPU time does not wait for its end.
        let rates = if self.program.is_some() { of(|second| second.cpu_us) } else { of(|second| second.operations) }?;
        let (first, later) = rates.split_first().filter(|(first, _)| **first > 0.0)?;
        later.iter().map(|rate| rate / first).min_by(f64::total_cmp)
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
        for (program, seconds, share) in [
            (false, &[][..], None),
            (false, &[(1000, Some(100), None)], None),
            (false, &[(1000, Some(100), None), (1000, Some(50), None), (1000, Some(200), None)], Some(0.5)),
            (false, &[(1000, Some(100), None), (2000, Some(50), None)], Some(0.25)),
            (false, &[(1000, Some(100), None), (499, Some(0), None)], None),
            (false, &[(1000, Some(0), None), (1000, Some(5), None)], None),
            (true, &[(1000, None, Some(80)), (1000, None, Some(20))], Some(0.25)),
            (true, &[(1000, None, Some(80)), (1000, None, None)], None),
        ] {
            assert_eq!(record(program, seconds).lowest_share(), share, "{seconds:?}");
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
