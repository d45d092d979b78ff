//! A distribution in three figures.

use crate::stats::quantile::quantile;
use punctual_model::Histogram;
use serde::Serialize;

/// A distribution in three figures, ns; `null` without values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct Spread {
    /// Median.
    pub p50_ns: Option<i64>,
    /// 99 % quantile of the values as they are, without an interval.
    pub p99_ns: Option<i64>,
    /// Largest value.
    pub max_ns: Option<i64>,
}

impl Spread {
    pub(super) fn of(histogram: &Histogram) -> Spread {
        Spread { p50_ns: quantile(histogram, 0.5), p99_ns: quantile(histogram, 0.99), max_ns: histogram.max_ns }
    }
}
