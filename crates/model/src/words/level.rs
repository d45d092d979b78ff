//! The levels of quantiles that summaries show and requirements limit.

use crate::UnknownWord;
use crate::words::word::words;
use std::str::FromStr;

words! {
    /// The level of a quantile.
    json Level {
        /// The median.
        P50 = "p50",
        /// 99 % of the samples are at most this.
        P99 = "p99",
        /// 99.9 % of the samples are at most this.
        P999 = "p99.9",
        /// 99.99 % of the samples are at most this.
        P9999 = "p99.99",
        /// 99.999 % of the samples are at most this.
        P99999 = "p99.999",
        /// 99.9999 % of the samples are at most this.
        P999999 = "p99.9999",
    }
}

impl Level {
    /// The key in JSON and plans: `p999`.
    pub fn key(self) -> &'static str {
        ["p50", "p99", "p999", "p9999", "p99999", "p999999"][self as usize]
    }

    /// The share of samples at or below the quantile, 0 to 1.
    pub fn p(self) -> f64 {
        [0.5, 0.99, 0.999, 0.9999, 0.99999, 0.999_999][self as usize]
    }

    /// Levels that a measurement of usual length can show, ascending. Tables always have them; a finding reports one
    /// that cannot be shown.
    pub const USUAL: [Level; 3] = [Level::P50, Level::P99, Level::P999];
}

impl FromStr for Level {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Level, UnknownWord> {
        let is_it = |level: &Level| level.key() == text || level.name() == text;
        Level::ALL.into_iter().find(is_it).ok_or_else(|| UnknownWord::new("quantile", text, Level::KNOWN))
    }
}
