//! How late wake-ups are to be explained.

use crate::Span;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// What is asked of a cell whose late wake-ups are to be explained.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Explain {
    /// Latency, ns, above which a wake-up is a spike. `null`: twice the p99 of the cell so far.
    #[serde(rename = "above_ns")]
    pub above: Option<Span>,
    /// Explanations that are kept: of the worst.
    pub keep: u32,
    /// Whether the kernel's stack is traced where a measured thread is woken and switched in. It costs some microseconds each.
    #[serde(default)]
    pub stacks: bool,
    /// Period, ns, of an interrupt on every measured CPU that shows whether it ran with interrupts on. `null`: none.
    #[serde(rename = "witness_ns", default)]
    pub witness: Option<Span>,
    /// Directory that each kept spike is written to, for other programs. `null`: none is. It must be there.
    #[serde(default)]
    pub export: Option<PathBuf>,
}

impl Explain {
    /// Explanations that can be kept.
    pub const KEEP: std::ops::RangeInclusive<u32> = 1..=1000;
    /// Periods that a witness can have: below, it would be a load of its own.
    pub const WITNESS: std::ops::RangeInclusive<Span> = Span(20_000)..=Span(100_000_000);

    /// What does not make sense.
    ///
    /// # Errors
    /// One line.
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
        Explain { above: None, keep: 20, stacks: false, witness: None, export: None }
    }
}

impl fmt::Display for Explain {
    /// What changes what is measured or kept; where it is written to does neither.
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
