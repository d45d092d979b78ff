//! Reasons that a cell was not measured.

use crate::trace::TraceError;
use punctual_store::StoreError;
use punctual_workload::cost::CostError;
use punctual_workload::instrument::InstrumentError;
use punctual_workload::load::LoadError;
use punctual_workload::runtime::RuntimeError;

/// The reason that a cell was not measured.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// The cell needs something impossible on this machine.
    #[error("{0}")]
    Impossible(String),
    /// A setting of the machine or of this process could not be made, or was not kept.
    #[error("{0}")]
    Setting(String),
    /// A measured thread could not be made ready.
    #[error(transparent)]
    Team(#[from] punctual_rt::TeamError),
    /// The load did not start, or did not last.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A wait failed inside the measured section.
    #[error("CPU {cpu}: {task} failed: {source}")]
    Wait {
        /// The CPU of the thread.
        cpu: u32,
        /// Its method, as a word.
        task: String,
        /// The kernel's reason.
        source: std::io::Error,
    },
    /// The peer of a link does not answer any more.
    #[error("{0}")]
    Silent(String),
    /// More cycles left a trace than were due: a defect of this program.
    #[error(
        "CPU {cpu}: {accounted} cycles recorded, lost or open, but only {cycles_due} due; please report this defect"
    )]
    Unaccounted {
        /// The CPU of the thread.
        cpu: u32,
        /// Due times in the window.
        cycles_due: u64,
        /// Recorded, lost and open ones together.
        accounted: u64,
    },
    /// The kernel cannot be traced.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The samples cannot be kept.
    #[error(transparent)]
    Samples(#[from] StoreError),
    /// The program of a language failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The outside program gave no result.
    #[error(transparent)]
    Program(#[from] InstrumentError),
    /// The driver of Cobalt gave no result.
    #[error("{0}")]
    Driver(String),
    /// The cost suite cannot be run.
    #[error(transparent)]
    Cost(#[from] CostError),
    /// A process that measures one CPU failed.
    #[error("{0}")]
    Child(String),
    /// The kernel's tracers do not do what is requested.
    #[error("tracers: {0}")]
    Tracers(String),
    /// Interrupted before anything was measured.
    #[error("interrupted before the first measured cycle")]
    NothingMeasured,
}

impl CellError {
    /// Whether the error belongs to this measurement, so that the same cell may give a record another time.
    pub fn is_of_this_time(&self) -> bool {
        match self {
            CellError::Load(_)
            | CellError::Wait { .. }
            | CellError::Silent(_)
            | CellError::Runtime(_)
            | CellError::Program(_)
            | CellError::Driver(_)
            | CellError::Child(_)
            | CellError::Team(punctual_rt::TeamError::Starved(_) | punctual_rt::TeamError::Spawn { .. }) => true,
            CellError::Impossible(_)
            | CellError::Setting(_)
            | CellError::Team(punctual_rt::TeamError::Setting { .. })
            | CellError::Unaccounted { .. }
            | CellError::Trace(_)
            | CellError::Samples(_)
            | CellError::Cost(_)
            | CellError::Tracers(_)
            | CellError::NothingMeasured => false,
        }
    }

    /// The error for something that this process could not do.
    pub(super) fn setting(what: &str, err: std::io::Error) -> CellError {
        CellError::Setting(format!("cannot {what}: {err}"))
    }
}
