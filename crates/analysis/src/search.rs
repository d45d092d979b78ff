//! What to measure next: whether it was enough, and where the limit of a machine lies.

pub(crate) mod enough;
pub mod frontier;
pub(crate) mod shortfall;
