//! The statistics of punctual: pure functions of records.
//!
//! Records in, numbers with intervals out. Nothing here reads a file, a clock or the machine, so an old run gets
//! tomorrow's statistics. The unit is the slice or the episode, never the sample: samples of one machine resemble
//! their neighbours. A question that the data cannot answer is refused, with the numbers that say why.
#![forbid(unsafe_code)]

mod curves;
mod due_time;
mod finding;
pub mod frontier;
mod name;
mod order_interval;
mod pool;
mod quantile;
mod rate;
mod special;
mod summary;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod verdict;
mod woodruff;
pub mod wording;

pub use curves::{Curves, NewMaximum, Rung, Strip, curves};
pub use due_time::{DueTimes, by_due_time};
pub use finding::{Finding, Limiter};
pub use name::of_cells as cell_names;
pub use order_interval::{median_interval, order_ranks};
pub use quantile::{Level, quantile};
pub use rate::{Rate, visibility_floor, zero_events_upper};
pub use summary::{Busy, CellSummary, LoadRate, Max, Open, Quantiles, RunSummary, summarise};
pub use verdict::{Gap, Kept, Verdict, View, Violation};
pub use woodruff::{CONFIDENCE, MIN_EXCEEDANCES, MIN_SLICES, Quantile, Refusal, estimate};
