//! The statistics of punctual: pure functions of records.
//!
//! Records in, numbers with intervals out. Nothing here reads a file, a clock or the machine, so an old run gets
//! tomorrow's statistics. The unit is the slice or the episode, never the sample: samples of one machine resemble
//! their neighbours. A question that the data cannot answer is refused, with the numbers that say why.
#![forbid(unsafe_code)]

mod baseline;
pub mod comparability;
pub mod comparison;
pub mod cost;
mod curves;
pub mod doctor;
mod document;
#[cfg(test)]
mod documented;
mod due_time;
pub mod enough;
pub mod explain;
pub mod factorial;
pub mod facts;
mod finding;
pub mod frontier;
mod imported;
mod lab_check;
mod list;
mod loads;
mod name;
mod order_interval;
pub mod paired;
mod parallel;
mod pool;
mod quantile;
mod ranks;
mod rate;
mod responses;
mod special;
pub mod stationarity;
mod steadiness;
mod summary;
pub mod tail;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tracers;
mod verdict;
mod woodruff;
pub mod wording;

pub use baseline::{RunRef, check_against};
pub use curves::{Curves, NewMaximum, Rung, Strip, curves};
pub use document::{RunDocument, document};
pub use due_time::{DueTimes, by_due_time};
pub use finding::{Finding, Limiter};
pub use imported::{
    ImportedCell, ImportedDocument, ImportedFinding, ImportedSummary, imported_curves, imported_document,
    imported_histogram, summarise_imported,
};
pub use lab_check::{LabCheckDocument, RecordDifference};
pub use list::{List, Listed, Unreadable};
pub use loads::LoadDocument;
pub use name::of_cells as cell_names;
pub use order_interval::{median_interval, order_ranks};
pub use parallel::on_all_cpus;
pub use pool::histograms;
pub use quantile::{Level, quantile};
pub use rate::{Rate, poisson_interval, visibility_floor, zero_events_upper};
pub use responses::{Part, Response, Target};
pub use special::{normal_beyond, normal_quantile};
pub use steadiness::{Change, Steadiness};
pub use summary::{Busy, CellSummary, LoadRate, Max, Open, Quantiles, RunSummary, summarise};
pub use tracers::{Osnoise, Stages, Timerlat, TracedLatency, Tracers};
pub use verdict::{Case, Gap, Kept, Verdict, View, Violation};
pub use woodruff::{CONFIDENCE, MIN_EXCEEDANCES, MIN_SLICES, Quantile, Refusal, estimate, estimate_at};
