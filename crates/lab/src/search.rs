//! Search of late wake-ups: one due time of a cell in virtual time, moved in copies of its guest.

mod approach;
mod calls;
mod clock;
mod film;
mod longest;
mod refine;
mod replay;
mod symbols;

use super::devices::Devices;
use super::machine::{Files, Setup};
use super::one_cpu::OneCpu;
use super::protocol::Job;
use super::qemu::{Limits, QemuError};
use super::{LabError, Monitor, measure};
pub use approach::{Approach, Woken};
pub use longest::Limit;
use punctual_model::{Architecture, Cell, LabClock, LabKernel, Record};
use refine::refine;
use std::sync::Arc;
pub use symbols::Symbols;

/// A cell whose wake-ups are searched.
#[derive(Debug)]
pub struct Search {
    setup: Arc<Setup>,
    cell: Cell,
}

/// A cycle index as part of a job, see [`Job::movable`].
fn movable(cycle: u64) -> Option<String> {
    Some(format!("{cycle:012}"))
}

/// A guest starts its cell so much later than the one before, ns, and begins anew at a prime, so that no phase of the
/// kernel's ticks comes twice: a second of waiting costs 0.09 CPU s.
const LATER_NS: u64 = 201_270_007;
const LATEST_NS: u64 = 10_000_000_019;

/// Warm-up cycles are so many more in each guest, up to the number of steps, which has no common divisor with it.
const WARM_UP_STEP: u64 = 37;
const WARM_UP_STEPS: u64 = 101;

/// A cycle that no cell reaches.
const NO_CYCLE: u64 = 999_999_999_999;

impl Search {
    /// Errors: an unknown kernel, or one whose guests cannot be searched.
    pub fn new(cell: &Cell, kernel: &LabKernel, monitor: Monitor<'_>) -> Result<Search, LabError> {
        let setup = Setup::of(cell.kernel.to_string(), kernel, Devices::of(cell), monitor)?;
        if setup.clock != LabClock::Virtual || setup.architecture() != Architecture::X86_64 {
            return Err(LabError::program("lab", "unsupported: search of guests other than x86-64 in virtual time"));
        }
        Ok(Search { setup, cell: cell.clone() })
    }

    /// The cell in this block: the parts of its load start in another order, so much earlier than the measured ones.
    fn cell_of(&self, block: u32) -> Cell {
        let earlier = u64::from(block) * WARM_UP_STEP % WARM_UP_STEPS;
        let mut cell = Cell { load: self.cell.load.rotated(block), ..self.cell.clone() };
        cell.conditions.warm_up.0 += earlier * cell.period.ns();
        cell
    }

    fn job(&self, block: u32, cycle: u64) -> Job {
        let job = measure::job(&self.cell_of(block), self.setup.clock, 0);
        let later_ns = u64::from(block) * LATER_NS % LATEST_NS;
        let (wait_ns, limit_ns) = (job.wait_ns + later_ns, job.limit_ns + later_ns);
        Job { movable: movable(cycle), wait_ns, limit_ns, ..job }
    }

    /// Measures the cell in this block, which starts later than the one before, with no due time moved.
    pub fn sample(&self, block: u32, monitor: Monitor<'_>) -> Result<Record, LabError> {
        measure::in_virtual_time(&self.setup, &self.job(block, NO_CYCLE), self.limits(monitor))
    }

    /// The error of a guest, or of a QEMU that lacks what is needed: all guests would fail.
    fn failed(&self, files: &Files, gone: QemuError) -> LabError {
        match gone {
            QemuError::Refused(reason) => LabError::program(self.setup.qemu(), reason),
            gone => self.setup.failed(files, gone),
        }
    }

    fn limits<'a>(&self, monitor: Monitor<'a>) -> Limits<'a> {
        measure::limits(&self.cell, monitor)
    }
}
