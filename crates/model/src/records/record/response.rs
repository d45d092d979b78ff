//! Counts of the ends of a link besides the answers in time.

use crate::{Achieved, Histogram, Host, Link, LoadRecord};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Counts of the logger of a cell: triggers of the measured time, and messages received.
///
/// A trigger without an answer in time is one of the missed ones of the thread: its answer was late, or never came.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ResponseRecord {
    /// Triggers sent.
    pub triggers: u64,
    /// Answers that arrived after the next trigger was due; part of the recorded ones.
    pub late: u64,
    /// Duplicate answers.
    pub duplicate: u64,
    /// Messages of other senders, and messages that are not answers.
    pub foreign: u64,
    /// Receive errors of a serial port, bytes: framing, parity, overrun, break; `null` where there is no such port, or
    /// it does not count them.
    pub line_errors: Option<u64>,
    /// Time of the logger itself, which is part of every answer; `null` where it cannot be measured.
    pub own: Option<OwnExchange>,
    /// The parts of each answer by the kernel's time stamps; `null` where there are none.
    #[serde(default)]
    pub parts: Option<AnswerParts>,
    /// Report of the target at its end; `null` where it was not started by this program.
    #[serde(default)]
    pub target: Option<Box<TargetRecord>>,
}

/// Exchanges of the logger with itself over its own link, before the first trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OwnExchange {
    /// Number of exchanges.
    pub exchanges: u64,
    /// Shortest time, ns.
    pub min_ns: u64,
    /// Median time, ns.
    pub p50_ns: u64,
    /// Longest time, ns.
    pub max_ns: u64,
}

/// Parts of answers by the time stamps of the logger's kernel: over UDP at sending and receiving (SO_TIMESTAMPING, by
/// software), of a GPIO line at its interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AnswerParts {
    /// From the thread's call until the trigger reached the network driver; empty for a GPIO line, where this is
    /// unknown.
    pub sending: Histogram,
    /// From then, or from the call, until the answer came from the driver: the wire and the target.
    pub away: Histogram,
    /// From then until the thread received it.
    pub waking: Histogram,
}

/// Report of a responder at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TargetRecord {
    /// Link that it answered on.
    pub link: Link,
    /// Settings of the answering thread, read back.
    pub achieved: Achieved,
    /// Triggers received.
    pub triggers: u64,
    /// Triggers answered.
    pub answered: u64,
    /// Triggers that never arrived, by gaps in their numbers.
    pub missed: u64,
    /// Duplicate triggers, which are not answered.
    pub duplicate: u64,
    /// Messages of other senders, and messages that are not triggers; not answered.
    pub foreign: u64,
    /// Triggers that followed others too soon to be answered.
    pub too_soon: u64,
    /// Receive errors of a serial port, bytes; `null` where there is no such port, or it does not count them.
    pub line_errors: Option<u64>,
    /// Activity of each part of the load on the target; empty without a load.
    #[serde(default)]
    pub loads: Vec<LoadRecord>,
    /// From the wake-up with a trigger until its answer was sent.
    pub own: Histogram,
    /// From the kernel's reception of a trigger until the thread had it; `null` where the kernel gives no time stamp.
    #[serde(default)]
    pub waking: Option<Histogram>,
    /// Snapshot of the answering machine at its end; `null` in older records.
    #[serde(default)]
    pub host: Option<Arc<Host>>,
}
