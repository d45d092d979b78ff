//! Results of other tools, as far as their files contain them: a missing fact is `null`, never a default.

mod load;

use crate::{Histogram, Host, Period, Policy, Requirement, Slice, Span};
pub use load::{ImportedLoad, ImportedLoadError};
use serde::{Deserialize, Serialize};

/// One measurement of another tool, read from its files.
///
/// Not a [`crate::Record`]: there are no due times, so missed ones are unknown unless the tool counted them, and most
/// tools report only the whole distribution, so that its stability in time cannot be judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Imported {
    /// [`crate::RECORD_FORMAT`] of the program that imported it.
    pub format: u32,
    /// Name and version of the program that imported it.
    pub tool: String,
    /// Origin of the data.
    pub source: Source,
    /// Conditions of the measurement.
    pub conditions: StatedConditions,
    /// Wall-clock time of its start, ms since 1970-01-01 UTC.
    #[serde(default, deserialize_with = "crate::words::units::started_if_known")]
    pub started_unix_ms: Option<u64>,
    /// Measured time, ns, where the files give it.
    #[serde(rename = "measured_ns")]
    pub measured: Option<Span>,
    /// Unit of its values, ns: 1000 for whole microseconds. A true value may be larger by less than one unit.
    #[serde(rename = "resolution_ns")]
    pub resolution: Span,
    /// The machine, as far as the files describe it.
    pub host: Host,
    /// One for each measured thread or CPU.
    pub threads: Vec<ImportedThread>,
    /// Caveats of this measurement: sentences without a full stop.
    pub remarks: Vec<String>,
}

impl Imported {
    /// A measurement of wake-ups by this program's import, with values in this unit, ns; all else is unknown.
    pub fn of(source: Source, resolution_ns: u64) -> Imported {
        Imported {
            format: crate::RECORD_FORMAT,
            tool: crate::TOOL.to_owned(),
            source,
            conditions: StatedConditions::of("wake-up"),
            started_unix_ms: None,
            measured: None,
            resolution: Span(resolution_ns),
            host: Host::default(),
            threads: Vec::new(),
            remarks: Vec::new(),
        }
    }
}

/// The first line of `imported.jsonl`; the measurements follow, one a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ImportHeader {
    /// [`crate::RUN_FORMAT`] of the program that wrote it.
    pub format: u32,
    /// Name and version of the program that wrote it.
    pub tool: String,
    /// Time of the import, ms since 1970-01-01 UTC.
    #[serde(deserialize_with = "crate::words::units::imported")]
    pub imported_unix_ms: u64,
    /// Title of the measurements; may be empty.
    pub title: String,
    /// Latency limits.
    pub require: Requirement,
}

/// Origin of a measurement: tool and file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Source {
    /// The tool: `cyclictest`, `jitterdebugger`, `rtla timerlat`.
    pub tool: String,
    /// Version that the tool reports.
    pub version: Option<String>,
    /// The file as named on the command line.
    pub file: String,
    /// Command line of the tool.
    pub command_line: Option<String>,
}

impl Source {
    /// A file of an unknown version of `tool`.
    pub fn of(tool: &str, file: &str) -> Source {
        Source { tool: tool.to_owned(), version: None, file: file.to_owned(), command_line: None }
    }
}

/// Known conditions of the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StatedConditions {
    /// Kind of the latencies, in the tool's words: `wake-up`, `irq`, `thread`, `user`, `noise`.
    pub what: String,
    /// Scheduling policy of the thread.
    pub policy: Option<Policy>,
    /// Priority, 0 to 99, where the policy is unknown.
    pub priority: Option<u32>,
    /// Time between two due times, ns.
    #[serde(rename = "period_ns")]
    pub period: Option<Period>,
    /// Background work.
    pub load: Option<ImportedLoad>,
    /// Conditions that were given at the import: "period", "load".
    pub stated: Vec<String>,
}

impl StatedConditions {
    /// Latencies of kind `what` under unknown conditions.
    pub fn of(what: &str) -> StatedConditions {
        StatedConditions { what: what.to_owned(), ..StatedConditions::default() }
    }
}

/// The measurement of one thread, or one CPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ImportedThread {
    /// Thread number in the tool's numbering.
    pub number: u32,
    /// CPU of the thread; `null` where only the thread number is known.
    pub cpu: Option<u32>,
    /// Number of samples that the tool took.
    pub samples: Option<u64>,
    /// Samples with a known value; `null` where there is no distribution.
    pub histogram: Option<Histogram>,
    /// Samples beyond the tool's histogram; `null` where there can be none.
    pub beyond: Option<Beyond>,
    /// Smallest latency, ns, as the tool reports it.
    pub min_ns: Option<i64>,
    /// Largest latency, ns, as the tool reports it.
    pub max_ns: Option<i64>,
    /// Mean latency, ns, as the tool reports it; most tools truncate it to whole microseconds.
    pub mean_ns: Option<f64>,
    /// Due times that were past before the thread could wait again, where the tool counts them.
    pub missed: Option<u64>,
    /// Histograms of consecutive intervals, where the tool keeps samples; `first_cycle` is the number of the sample.
    pub slices: Vec<Slice>,
}

/// Samples known only to exceed the range of the tool's histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Beyond {
    /// Number of samples; `null` when unknown.
    pub samples: Option<u64>,
    /// Lower bound of their latency, ns.
    pub at_least_ns: i64,
}

impl ImportedThread {
    /// Number of samples of which the file's distribution has neither a value nor a lower bound; 0 without one.
    pub fn missing(&self) -> u64 {
        let known = self.histogram.as_ref().zip(self.samples);
        let beyond = self.beyond.and_then(|beyond| beyond.samples).unwrap_or(0);
        known.map_or(0, |(histogram, samples)| samples.saturating_sub(histogram.n.saturating_add(beyond)))
    }

    /// Whether the counts and values are consistent, whatever their source.
    pub fn is_consistent(&self) -> bool {
        let known = self.histogram.as_ref().map_or(0, |histogram| histogram.n);
        let beyond = self.beyond.and_then(|beyond| beyond.samples).unwrap_or(0);
        let enough = self.samples.is_none_or(|samples| known.checked_add(beyond).is_some_and(|all| all <= samples));
        let ordered = self.min_ns.zip(self.max_ns).is_none_or(|(min, max)| min <= max);
        enough && ordered && self.mean_ns.is_none_or(f64::is_finite)
    }
}
