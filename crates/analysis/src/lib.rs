//! The statistics of punctual: pure functions of records.
//!
//! Records in, numbers with intervals out. Nothing here reads a file, a clock or the machine, so that new statistics
//! also apply to old runs. The unit is the slice or the episode, never the sample, because consecutive samples of a
//! machine are correlated. A question that the data cannot answer is refused, with the numbers that show why.
#![forbid(unsafe_code)]

pub mod answer;
pub mod comparison;
mod events;
pub mod explain;
pub mod findings;
pub mod history;
mod machine;
pub mod promises;
pub mod recorded;
mod row;
mod run;
mod search;
mod stats;
pub mod study;
mod summary;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tune;
mod verdict;
pub mod watch;
pub mod wording;

/// Cost of operations, and its comparison between configurations.
pub mod cost {
    pub use crate::comparison::costs::*;
    pub use crate::summary::cost::*;
    pub use crate::summary::trade_offs::*;
}

/// Sufficiency of a measurement, and the time still needed.
pub mod enough {
    pub use crate::search::enough::*;
    pub use crate::search::shortfall::*;
    pub use crate::summary::looks::*;
}

pub use answer::{Answer, share as lost_share};
pub use comparison::baseline::{Gate as BaselineGate, RunRef, check_against};
pub use comparison::comparability;
pub use findings::{Finding, ImportedFinding, run_progress};
pub use machine::{config, doctor, facts};
pub use punctual_model::Level;
pub use row::{Origin, Row};
pub use run::{ImportedSummary, RunSummary, on_all_cpus, summarise, summarise_imported};
pub use search::frontier;
pub use stats::course::{Change, Course, Courses, Measure, of_levels as courses, of_maxima};
pub use stats::levels::Quantiles;
pub use stats::order_interval::{median_interval, order_ranks};
pub use stats::quantile::quantile;
pub use stats::rate::{Rate, poisson_interval, visibility_floor, zero_events_upper};
pub use stats::special::{normal_beyond, normal_quantile, share_interval};
pub use stats::woodruff::{CONFIDENCE, MIN_EXCEEDANCES, MIN_SLICES, Quantile, Refusal, Told, estimate, estimate_at};
pub use stats::{factorial, paired, stationarity, tail};
pub use summary::cell::{CellSummary, Max};
pub use summary::curves::{Curves, NewMaximum, Rung, Strip, curves};
pub use summary::due_time::{DueTimes, View, by_due_time, of_record as record_by_due_time};
pub use summary::floor::{
    FLOOR, FLOOR_SETTINGS, FloorArm, FloorSetting, FloorSummary, floor_of, floor_prepare, floor_setting,
};
pub use summary::imported::{ImportedCell, imported_curves, imported_histogram};
pub use summary::intensity::{Busy, LoadRate};
pub use summary::late::share_later;
pub use summary::layers::LayerFloor;
pub use summary::names::of_cells as cell_names;
pub use summary::noise::{CpuNoise, GapRate, NoiseSummary};
pub use summary::open::{Open, lacks};
pub use summary::packets::{PacketStage, PacketSummary};
pub use summary::pool::histograms;
pub use summary::responses::{Part, Response, Target};
pub use summary::spread::Spread as WatchSpread;
pub use summary::steadiness::Steadiness;
pub use summary::threads::{ThreadBlock, ThreadFigures, ThreadSummary};
pub use summary::tracers::{Osnoise, Stages, Timerlat, TracedLatency, Tracers};
pub use summary::watched::{ChainSummary, PhaseSummary, StageSummary, WatchSummary, WatchedSummary};
pub use summary::work::ComparedLoad;
pub use verdict::{CannotPass, Case, Count, Gap, Kept, Verdict, Violation};

#[cfg(test)]
mod tests;
