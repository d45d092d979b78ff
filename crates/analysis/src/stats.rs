//! Pure statistics: quantiles with intervals, rates, tests and tails.
//!
//! Each returns a number, or a refusal with its reason.

pub(crate) mod course;
mod design;
pub mod factorial;
pub(crate) mod histogram;
pub(crate) mod levels;
pub(crate) mod order_interval;
pub mod paired;
pub(crate) mod quantile;
pub(crate) mod rank_sum;
pub(crate) mod ranks;
pub(crate) mod rate;
pub(crate) mod special;
pub mod stationarity;
pub mod tail;
pub(crate) mod woodruff;
