//! What this machine does for a guest besides running it; the caller of the lab provides it.

use super::LabError;
use punctual_model::{Cell, ClockMark, GuestFile, GuestStop, GuestTids, Record};

/// What the lab has seen of a guest.
#[derive(Debug, Clone, Default)]
pub struct GuestClocks {
    /// Readings of its clock at the start of the cell, and at its end.
    pub marks: [Vec<ClockMark>; 2],
    /// Times for which QEMU had stopped it.
    pub stops: Vec<GuestStop>,
}

/// Starts the load of this machine, and the trace of a guest's threads.
pub trait Beside: Send + Sync {
    /// Files that `cell` needs in its guest, in addition to those of its kernel. Errors: if this machine does not have
    /// them.
    fn files(&self, cell: &Cell) -> Result<Vec<GuestFile>, LabError>;

    /// Starts what `cell` needs beside its guest, which is at rest; `None` if nothing. Without `threads` none are
    /// traced. Errors: if the load does not run.
    fn begin(&self, cell: &Cell, threads: Option<GuestTids>) -> Result<Option<Box<dyn BesideGuest>>, LabError>;
}

/// The running load and trace. Dropping it ends both.
pub trait BesideGuest {
    /// Ends both, and adds what they tell to the record of the guest. Errors: if the load did not last.
    fn finish(self: Box<Self>, clocks: GuestClocks, record: &mut Record) -> Result<(), LabError>;
}
