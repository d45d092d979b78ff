//! Executors of cells: what a campaign asks of them, and how they fail.

use super::stop::Stop;
use model::{Cell, Progress, Record};
use std::io;
use std::path::Path;

/// Carries out cells. The campaign knows nothing else about how that is done.
pub trait Executor {
    /// Learns what it will be asked to measure next, in which blocks, in this order; it may begin with that.
    fn expect(&mut self, _next: &mut dyn Iterator<Item = (&Cell, u32)>, _stop: &Stop) {}

    /// Measures `cell` in block `block`; ends early, with what there is, when asked to stop. `observe` is called now
    /// and then. The raw samples go to the new file `samples`, if it is named.
    ///
    /// # Errors
    /// When the cell was not measured. There is no file of samples then.
    fn execute(
        &mut self,
        cell: &Cell,
        block: u32,
        samples: Option<&Path>,
        stop: &Stop,
        observe: &mut dyn FnMut(&Progress),
    ) -> Result<Record, Failure>;
}

/// The exit status of `punctual cell --progress` when the cell was carried out and failed: another one, or another
/// time, may not. With 1 something is wrong with what was asked.
pub const CELL_FAILED: u8 = 4;

/// Why a cell gave no record.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// What is asked cannot be had here, which no other try changes.
    #[error("{0}")]
    Mistake(String),
    /// It cannot be started or talked to.
    #[error("cannot carry out the cell: {0}")]
    Process(#[from] io::Error),
    /// It said what was wrong.
    #[error("{0}")]
    Said(String),
    /// It ended without a word.
    #[error("the measuring process ended early ({0}); nothing of this cell is recorded")]
    Ended(std::process::ExitStatus),
    /// It answered with something else than a record.
    #[error("the measuring process gave no readable record: {0}")]
    NoRecord(serde_json::Error),
}

impl Failure {
    /// Whether it is the plan's, or this machine's, and not one of the measurement.
    pub(crate) fn is_mistake(&self) -> bool {
        matches!(self, Failure::Mistake(_))
    }
}
