//! Options of explaining late wake-ups.

use super::Captures;
use crate::Span;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Options of explaining the late wake-ups of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Explain {
    /// Latency, ns, above which a wake-up is a spike. `null`: twice the p99 of the cell so far.
    #[serde(rename = "above_ns")]
    pub above: Option<Span>,
    /// Number of explanations to keep: of the latest wake-ups.
    pub keep: u32,
    /// Whether stacks are traced: those of the kernel at each wake-up and switch of a measured thread; of a watched
    /// thread its own, where it leaves the CPU, at page faults and as it runs. It costs some microseconds each.
    #[serde(default)]
    pub stacks: bool,
    /// Period, ns, of an interrupt on every measured CPU that shows intervals with interrupts off. `null`: none.
    #[serde(rename = "witness_ns", default)]
    pub witness: Option<Span>,
    /// Directory to which each kept spike is written, for other programs; it must exist. `null`: none.
    #[serde(default)]
    pub export: Option<PathBuf>,
    /// Whether the host of this guest explains late wake-ups, too: then those are named that the trace does not cover.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_host: bool,
    /// The late wake-ups whose events are kept, to be explained again.
    #[serde(default, skip_serializing_if = "Captures::is_default")]
    pub captures: Captures,
}

impl Explain {
    /// Valid numbers of explanations.
    pub const KEEP: std::ops::RangeInclusive<u32> = 1..=1000;
    /// Most bytes of the captures of a run.
    pub const CAPTURE_BYTES: usize = 20_000_000;
    /// Valid periods of a witness: a shorter one would be a load of its own.
    pub const WITNESS: std::ops::RangeInclusive<Span> = Span(20_000)..=Span(100_000_000);

    /// Checks the ranges of the options.
    pub fn check(&self) -> Result<(), String> {
        if !Self::KEEP.contains(&self.keep) {
            let (min, max) = (Self::KEEP.start(), Self::KEEP.end());
            return Err(format!("invalid number of explanations `{}`: expected {min} to {max}", self.keep));
        }
        if let Some(period) = self.witness.filter(|period| !Self::WITNESS.contains(period)) {
            let (min, max) = (Self::WITNESS.start(), Self::WITNESS.end());
            return Err(format!("invalid witness period `{period}`: expected {min} to {max}"));
        }
        Ok(())
    }
}

impl Default for Explain {
    fn default() -> Self {
        Explain {
            above: None,
            keep: 20,
            stacks: false,
            witness: None,
            export: None,
            for_host: false,
            captures: Captures::default(),
        }
    }
}

impl fmt::Display for Explain {
    /// The options that change the measurement or the kept explanations; all that concerns files and the host does not.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.above {
            Some(above) => write!(f, "above {above}")?,
            None => f.write_str("above auto")?,
        }
        write!(f, " keep {}", self.keep)?;
        f.write_str(if self.stacks { " stacks" } else { "" })?;
        self.witness.map_or(Ok(()), |period| write!(f, " witness {period}"))
    }
}
