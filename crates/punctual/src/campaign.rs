//! Carrying out a plan: which cells, in which order, one after the other, each in a process of its own.

mod carry_out;
mod child;
mod estimate;
mod executor;
mod expand;
mod header;
mod here_or_lab;
mod kernel_test;
mod lock;
mod order;
mod roles;
mod session;
mod stop;
mod stopping;

pub(crate) use carry_out::{CampaignError, Observer};
pub(crate) use child::Child;
pub(crate) use estimate::expected;
pub(crate) use executor::{CELL_FAILED, Executor};
#[cfg(test)]
pub(crate) use expand::{Machine, expand};
pub(crate) use here_or_lab::HereOrLab;
pub(crate) use kernel_test::{KernelLimits, TestOutcome};
pub(crate) use lock::{recovery_lines, take_lock};
pub(crate) use session::{Request, Session, stamp};
pub(crate) use stop::Stop;
pub(crate) use stopping::{Limits, decision};

#[cfg(test)]
mod tests;
