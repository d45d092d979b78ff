//! The levels of quantiles that summaries show and requirements limit.

use crate::UnknownWord;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The level of a quantile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The median.
    P50,
    /// 99 % of the samples are at most this.
    P99,
    /// 99.9 % of the samples are at most this.
    P999,
    /// 99.99 % of the samples are at most this.
    P9999,
    /// 99.999 % of the samples are at most this.
    P99999,
}

impl Level {
    /// All levels, ascending.
    pub const ALL: [Level; 5] = [Level::P50, Level::P99, Level::P999, Level::P9999, Level::P99999];

    /// Levels that a measurement of usual length can show, ascending. Tables always have them; a finding reports one
    /// that cannot be shown.
    pub const USUAL: [Level; 3] = [Level::P50, Level::P99, Level::P999];

    /// Every level in its typed form.
    pub const KNOWN: &[&str] = &["p50", "p99", "p99.9", "p99.99", "p99.999"];

    /// The share of samples at or below the quantile, 0 to 1.
    #[must_use]
    pub fn p(self) -> f64 {
        match self {
            Level::P50 => 0.5,
            Level::P99 => 0.99,
            Level::P999 => 0.999,
            Level::P9999 => 0.9999,
            Level::P99999 => 0.99999,
        }
    }

    /// The name in limits and JSON: `p999`.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Level::P50 => "p50",
            Level::P99 => "p99",
            Level::P999 => "p999",
            Level::P9999 => "p9999",
            Level::P99999 => "p99999",
        }
    }
}

impl FromStr for Level {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Level, UnknownWord> {
        let is_it = |level: &Level| level.key() == text || level.to_string() == text;
        Level::ALL.into_iter().find(is_it).ok_or_else(|| UnknownWord::new("quantile", text, Level::KNOWN))
    }
}

impl fmt::Display for Level {
    /// The name in table headings: `p99.9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::P50 => "p50",
            Level::P99 => "p99",
            Level::P999 => "p99.9",
            Level::P9999 => "p99.99",
            Level::P99999 => "p99.999",
        })
    }
}
