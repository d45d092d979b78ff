//! What another tool measured, as far as its files say it: a fact that they do not tell is `null`, never a default.

mod load;

use crate::{Histogram, Host, Period, Policy, Requirement, Slice, Span};
pub use load::{ImportedLoad, ImportedLoadError};
use serde::{Deserialize, Serialize};

/// One measurement of another tool, read from its files.
///
/// It is no [`crate::Record`]: there are no due times, so nothing is known of missed ones unless the tool counted them,
/// and most tools tell a distribution only as a whole, so that its stability in time cannot be judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Imported {
    /// [`crate::RECORD_FORMAT`] of the program that imported it.
    pub format: u32,
    /// Name and version of the program that imported it.
    pub tool: String,
    /// Where it comes from.
    pub source: Source,
    /// Under which conditions it was measured.
    pub conditions: StatedConditions,
    /// Wall-clock time of its start, ms since 1970-01-01 UTC.
    #[serde(default, deserialize_with = "crate::date::started_if_known")]
    pub started_unix_ms: Option<u64>,
    /// How long was measured, ns, where the files say it.
    #[serde(rename = "measured_ns")]
    pub measured: Option<Span>,
    /// Unit of its values, ns: 1000 where they are whole microseconds. A value may be larger by less than that.
    #[serde(rename = "resolution_ns")]
    pub resolution: Span,
    /// The machine, as far as the files describe it.
    pub host: Host,
    /// One for each measured thread or CPU.
    pub threads: Vec<ImportedThread>,
    /// What has to be known of this measurement before it is believed: sentences without their full stop.
    pub remarks: Vec<String>,
}

/// The first line of `imported.jsonl`; the measurements follow, one a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImportHeader {
    /// [`crate::RUN_FORMAT`] of the program that wrote it.
    pub format: u32,
    /// Name and version of the program that wrote it.
    pub tool: String,
    /// When it was imported, ms since 1970-01-01 UTC.
    #[serde(deserialize_with = "crate::date::imported")]
    pub imported_unix_ms: u64,
    /// What the measurements are called together; may be empty.
    pub title: String,
    /// What has to be kept.
    pub require: Requirement,
}

/// Which tool wrote which file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// The tool: `cyclictest`, `jitterdebugger`, `rtla timerlat`.
    pub tool: String,
    /// Its version as it says it.
    pub version: Option<String>,
    /// The file as it was named.
    pub file: String,
    /// How the tool was called.
    pub command_line: Option<String>,
}

/// What is known of how it was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatedConditions {
    /// What the latencies are of, in the tool's words: `wake-up`, `irq`, `thread`, `user`, `noise`.
    pub what: String,
    /// How the thread was scheduled.
    pub policy: Option<Policy>,
    /// Its priority, 0 to 99, where the policy is not known.
    pub priority: Option<u32>,
    /// Time between two due times, ns.
    #[serde(rename = "period_ns")]
    pub period: Option<Period>,
    /// Background work.
    pub load: Option<ImportedLoad>,
    /// What whoever imported it added: "period", "load".
    pub stated: Vec<String>,
}

impl StatedConditions {
    /// Latencies of `what`, of whose conditions nothing is known.
    #[must_use]
    pub fn of(what: &str) -> StatedConditions {
        StatedConditions {
            what: what.to_owned(),
            policy: None,
            priority: None,
            period: None,
            load: None,
            stated: Vec::new(),
        }
    }
}

/// What one thread, or one CPU, measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImportedThread {
    /// Its number as the tool counts.
    pub number: u32,
    /// The CPU it was on; `null` where the number is only the thread's.
    pub cpu: Option<u32>,
    /// Samples that the tool says it took.
    pub samples: Option<u64>,
    /// Samples whose value is known, or `null` where there is no distribution.
    pub histogram: Option<Histogram>,
    /// Samples beyond the tool's histogram; `null` where none can be.
    pub beyond: Option<Beyond>,
    /// Smallest latency, ns, as the tool says it.
    pub min_ns: Option<i64>,
    /// Largest latency, ns, as the tool says it.
    pub max_ns: Option<i64>,
    /// Mean latency, ns, as the tool says it; most of them cut it to whole microseconds.
    pub mean_ns: Option<f64>,
    /// Due times that were past before the thread could wait again, where the tool counts them.
    pub missed: Option<u64>,
    /// Histograms of consecutive stretches, where the tool keeps samples; `first_cycle` is the number of the sample.
    pub slices: Vec<Slice>,
}

/// Samples of which it is only known that they were too large for the tool's histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Beyond {
    /// How many; `null` where that is not known.
    pub samples: Option<u64>,
    /// They are at least this large, ns.
    pub at_least_ns: i64,
}

impl ImportedThread {
    /// Whether the counts and values agree with each other, whatever wrote them.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        let known = self.histogram.as_ref().map_or(0, |histogram| histogram.n);
        let beyond = self.beyond.and_then(|beyond| beyond.samples).unwrap_or(0);
        let enough = self.samples.is_none_or(|samples| known.checked_add(beyond).is_some_and(|all| all <= samples));
        let ordered = self.min_ns.zip(self.max_ns).is_none_or(|(min, max)| min <= max);
        enough && ordered && self.mean_ns.is_none_or(f64::is_finite)
    }
}
