//! The levels of quantiles that summaries show and requirements limit.

use crate::UnknownWord;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

macro_rules! levels {
    ($($(#[$doc:meta])* $level:ident $key:literal $heading:literal $p:literal,)*) => {
        /// The level of a quantile.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Level {
            $($(#[$doc])* $level,)*
        }

        impl Level {
            /// All levels, ascending.
            pub const ALL: [Level; Level::KNOWN.len()] = [$(Level::$level,)*];

            /// Every level in its typed form, that of table headings.
            pub const KNOWN: &[&str] = &[$($heading,)*];

            /// The share of samples at or below the quantile, 0 to 1.
            pub fn p(self) -> f64 {
                match self {
                    $(Level::$level => $p,)*
                }
            }

            /// The name in limits and JSON: `p999`.
            pub fn key(self) -> &'static str {
                match self {
                    $(Level::$level => $key,)*
                }
            }

            /// The name in table headings: `p99.9`.
            pub fn heading(self) -> &'static str {
                match self {
                    $(Level::$level => $heading,)*
                }
            }
        }
    };
}

levels! {
    /// The median.
    P50 "p50" "p50" 0.5,
    /// 99 % of the samples are at most this.
    P99 "p99" "p99" 0.99,
    /// 99.9 % of the samples are at most this.
    P999 "p999" "p99.9" 0.999,
    /// 99.99 % of the samples are at most this.
    P9999 "p9999" "p99.99" 0.9999,
    /// 99.999 % of the samples are at most this.
    P99999 "p99999" "p99.999" 0.99999,
    /// 99.9999 % of the samples are at most this.
    P999999 "p999999" "p99.9999" 0.999_999,
}

impl Level {
    /// Levels that a measurement of usual length can show, ascending. Tables always have them; a finding reports one
    /// that cannot be shown.
    pub const USUAL: [Level; 3] = [Level::P50, Level::P99, Level::P999];
}

impl FromStr for Level {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Level, UnknownWord> {
        let is_it = |level: &Level| level.key() == text || level.heading() == text;
        Level::ALL.into_iter().find(is_it).ok_or_else(|| UnknownWord::new("quantile", text, Level::KNOWN))
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.heading())
    }
}
