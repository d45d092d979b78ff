//! What a watched thread has not finished at the end.
//!
//! It counts with at least its age, and is later than all that ended sooner.

use punctual_model::OpenKind;

/// An activation that is not over, or a wait that no release ended in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) kind: OpenKind,
    /// Its release, or the first due time that passed without one, ns.
    pub(super) due_ns: u64,
    /// Time since then, ns; of an activation that may be several, its share of it.
    pub(super) at_least_ns: u64,
    /// Further due times that passed meanwhile, within the measured time.
    pub(super) behind: u64,
    /// Whether the program has run since the release, so that its latency is known.
    pub(super) has_run: bool,
}

#[cfg(test)]
pub(super) mod tests;
