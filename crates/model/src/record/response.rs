//! What the ends of a link count beside the answers that were in time.

use crate::{Achieved, Histogram, Host, Link, LoadRecord};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What the logger of a cell counted: triggers of the measured time, and what came for them.
///
/// A trigger without an answer in time is among the missed ones of the thread. Its answer was late, or never came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResponseRecord {
    /// Triggers that were sent.
    pub triggers: u64,
    /// Answers that came when the next trigger was due already; they are among the recorded.
    pub late: u64,
    /// Answers that came once more.
    pub duplicate: u64,
    /// What came from somebody else, or was no answer.
    pub foreign: u64,
    /// Bytes that a serial port received wrongly: framing, parity, overrun, break; `null` where there is no such port, or it
    /// does not say.
    pub line_errors: Option<u64>,
    /// What the logger itself takes, which is in every answer; `null` where that cannot be measured.
    pub own: Option<OwnExchange>,
    /// The parts of each answer by the kernel's time stamps; `null` where it makes none.
    #[serde(default)]
    pub parts: Option<AnswerParts>,
    /// What the target said when it had ended; `null` where this program has not started it.
    #[serde(default)]
    pub target: Option<Box<TargetRecord>>,
}

/// A logger that exchanges messages with itself over its own link, before the first trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnExchange {
    /// How often.
    pub exchanges: u64,
    /// The shortest, ns.
    pub min_ns: u64,
    /// The median, ns.
    pub p50_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
}

/// The parts of answers by the time stamps of the logger's kernel: over UDP when it sent and received (SO_TIMESTAMPING, by
/// software), of a GPIO line when its interrupt came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerParts {
    /// From the thread's call until the trigger was handed to the network's driver; empty for a GPIO line, of which nobody
    /// knows.
    pub sending: Histogram,
    /// From then, or from the call, until the answer came from the driver: the wire and the target.
    pub away: Histogram,
    /// From then until the thread had it.
    pub waking: Histogram,
}

/// What a responder did until it was ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetRecord {
    /// What it answered on.
    pub link: Link,
    /// The settings of the thread that answers, read back.
    pub achieved: Achieved,
    /// Triggers that came.
    pub triggers: u64,
    /// Those of them that were answered.
    pub answered: u64,
    /// Triggers that never came, by the gaps in their numbers.
    pub missed: u64,
    /// Triggers that came once more, which are not answered.
    pub duplicate: u64,
    /// What came from somebody else, or was no trigger; it is not answered.
    pub foreign: u64,
    /// Triggers that came too soon after others to be answered.
    pub too_soon: u64,
    /// Bytes that a serial port received wrongly; `null` where there is no such port, or it does not say.
    pub line_errors: Option<u64>,
    /// What each part of the load beside it did; empty without one.
    #[serde(default)]
    pub loads: Vec<LoadRecord>,
    /// From when it woke with a trigger until its answer was sent.
    pub own: Histogram,
    /// From when the kernel saw a trigger until the thread had it; `null` where it does not say when that was.
    #[serde(default)]
    pub waking: Option<Histogram>,
    /// The machine that answers, when it had ended; `null` in older records.
    #[serde(default)]
    pub host: Option<Arc<Host>>,
}
