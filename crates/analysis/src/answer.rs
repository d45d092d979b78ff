//! The answer of each command in one sentence, the same in every format.
//!
//! Answers of runs are made here; those of other experiments stand beside their results.

mod floor;
mod kept;
mod late;
mod noise;
mod run;
mod sentence;

pub(crate) use floor::of_floor;
pub(crate) use kept::of_imported;
pub use late::of_threads;
pub use noise::share;
pub(crate) use run::of_run;
pub use sentence::Answer;

#[cfg(test)]
mod tests;
