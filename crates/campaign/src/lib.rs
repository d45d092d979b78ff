//! Execution of a plan: its cells in random order, one at a time, each in a process of its own.
#![forbid(unsafe_code)]

mod boots;
mod carry_out;
mod child;
mod estimate;
mod executor;
mod expand;
mod forecast;
mod header;
mod host_side;
mod kernel_test;
mod local_or_lab;
mod lock;
mod remote;
mod roles;
mod serve;
mod session;
mod shard;
mod stop;
mod stopping;

pub use boots::NextBoot;
pub use carry_out::{CampaignError, Observer};
pub use child::Child;
pub use estimate::expected;
pub use executor::{CELL_FAILED, Executor};
pub use expand::{Machine, expand};
pub use forecast::{Extent, Forecast, extent, forecast};
pub use header::{drawn_seed, only_cell};
pub use kernel_test::{KernelLimits, TestOutcome};
pub use local_or_lab::LocalOrLab;
pub use lock::{recovery_lines, take_lock};
pub use remote::output_from;
pub use serve::serve;
pub use session::{Request, Session, stamp};
pub use stop::{Interrupted, Stop};
pub use stopping::{Limits, decision};

#[cfg(test)]
mod tests;
