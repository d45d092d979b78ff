//! Measuring time: whether a run was long enough, and the search for the smallest period of a machine.

pub(crate) mod enough;
pub mod frontier;
pub(crate) mod shortfall;
