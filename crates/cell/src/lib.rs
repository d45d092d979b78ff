//! Measurement of one cell: `Cell → Prepared → Armed → Measured → Record`, each phase a type.
//!
//! Every phase owns the results of the phase before it. Dropping it, at any exit, stops the loads and restores the
//! host.
#![forbid(unsafe_code)]

mod armed;
pub mod child;
mod children;
mod collector;
mod costs;
mod endless;
mod error;
mod explainer;
mod gaps;
pub mod host_side;
mod link;
mod measured;
mod measurers;
mod observed;
mod on_spike;
mod prepared;
mod program;
mod readings;
mod recording;
mod sleepers;
mod steps;
mod threads;
mod timerbench;
pub mod trace;
mod trace_lines;
mod tracers;
mod watch;
mod worst_spikes;

pub use endless::EndlessExplainer;
pub use error::CellError;
pub use explainer::SpikeReport;
pub use prepared::Prepared;
pub use punctual_import::{READS_RESULTS, left_out as reads_no_results};
pub use recording::Recording;
pub use tracers::check as check_tracers;
