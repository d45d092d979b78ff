//! Where a load runs, what it counts, and why it does not work.

use punctual_model::{CpuSet, Policy, Span};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The place and the scheduling of a load.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// CPUs that the load may use.
    pub cpus: &'a CpuSet,
    /// The scheduling policy of the load.
    pub policy: Policy,
    /// Limit of a real-time load, which then ends by itself, by the clock or by CPU time, whatever happens to this
    /// program.
    pub at_most: Span,
}

/// The reason that a load does not work.
#[derive(Debug, thiserror::Error)]
#[error("load {load}: {reason}")]
pub struct LoadError {
    /// The load as typed.
    pub(crate) load: String,
    /// The failure, and advice.
    pub(crate) reason: String,
}

/// Counts one operation. The calling worker is the only writer of its counter.
pub(super) fn count_one(count: Option<&AtomicU64>) {
    count_several(count, 1);
}

/// Counts `n` operations, as [`count_one`] does.
pub(super) fn count_several(count: Option<&AtomicU64>, n: u64) {
    if let Some(count) = count {
        count.store(count.load(Relaxed) + n, Relaxed);
    }
}

/// The name of the directory and the control group that supervisor `pid` creates for its load.
pub(super) fn own_name(pid: u32) -> String {
    punctual_host::named("punctual-load", pid)
}
