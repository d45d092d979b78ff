//! The interface of executors of cells, and their errors.

use super::stop::Stop;
use punctual_model::{Cell, Progress, Record};
use std::io;
use std::path::Path;

/// Carries out cells. It is the only interface of a campaign to measurements.
pub trait Executor {
    /// Announces the next cells with their blocks, in order; the executor may start them early.
    fn expect(&mut self, _next: &mut dyn Iterator<Item = (&Cell, u32)>, _stop: &Stop) {}

    /// Measures `cell` in block `block`; ends early, with a partial record, on a stop request. `observe` is called from
    /// time to time. The raw samples go to the new file `samples`, if given. Errors: if the cell was not measured.
    /// There is no file of samples then.
    fn execute(
        &mut self,
        cell: &Cell,
        block: u32,
        samples: Option<&Path>,
        stop: &Stop,
        observe: &mut dyn FnMut(&Progress),
    ) -> Result<Record, Failure>;
}

/// Exit status of `punctual cell --progress` for a valid cell that failed: another cell, or another attempt, may
/// succeed. Status 1 is an invalid request.
pub const CELL_FAILED: u8 = 4;

/// Reason why a cell gave no record.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request cannot be met on this machine; another attempt does not help.
    #[error("{0}")]
    Unsupported(String),
    /// The process cannot be started, or its pipes failed.
    #[error("cannot carry out the cell: {0}")]
    Process(#[from] io::Error),
    /// The process reported an error.
    #[error("{0}")]
    Reported(String),
    /// The process ended without an error message.
    #[error("the measuring process exited early ({0}); this cell is not recorded")]
    Exited(std::process::ExitStatus),
    /// The output is not a record.
    #[error("invalid record from the measuring process: {0}")]
    NoRecord(serde_json::Error),
}

impl Failure {
    /// Whether the plan or this machine is the cause, and not the measurement.
    pub(crate) fn is_unsupported(&self) -> bool {
        matches!(self, Failure::Unsupported(_))
    }
}
