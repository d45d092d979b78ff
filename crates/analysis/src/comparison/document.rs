//! Serialization of the metrics of a comparison, with the unit in the key.

use super::{Measured, Metric, Ratio};
use serde::Serialize;

/// One metric with the unit in its keys.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(super) struct MeasuredDocument {
    metric: Metric,
    #[serde(flatten)]
    medians: Medians,
    ratio: Option<Ratio>,
}

/// Medians over the blocks of both.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
enum Medians {
    Latencies { a_ns: Option<f64>, b_ns: Option<f64> },
    Episodes { a_episodes: Option<f64>, b_episodes: Option<f64> },
    Shares { a_share: Option<f64>, b_share: Option<f64> },
}

impl From<Measured> for MeasuredDocument {
    fn from(Measured { metric, a, b, ratio }: Measured) -> Self {
        let medians = match metric {
            Metric::Lost => Medians::Shares { a_share: a, b_share: b },
            Metric::Misses => Medians::Episodes { a_episodes: a, b_episodes: b },
            Metric::Quantile(_) | Metric::Max => Medians::Latencies { a_ns: a, b_ns: b },
        };
        MeasuredDocument { metric, medians, ratio }
    }
}
