//! The executor of runs: dispatches each cell to its kernel.

use super::child::Child;
use super::executor::{Executor, Failure};
use super::host_side::Companions;
use super::remote::Deliveries;
use super::roles;
use super::stop::Stop;
use punctual_lab::{Guests, LabError, MessageSink, STARTS_GUESTS, left_out};
use punctual_model::{Cell, Kernel, Progress, Record};
use std::path::Path;
use std::sync::Arc;

/// Carries out each cell on its kernel: in a child process, with roles on other machines, or in a lab guest.
#[expect(missing_debug_implementations, reason = "a closure has nothing to show")]
pub struct LocalOrLab {
    /// `None` in a program that starts none.
    guests: Option<Guests>,
    deliveries: Deliveries,
}

impl LocalOrLab {
    /// Creates the executor; `say` receives messages about slow operations of lab guests.
    pub fn new(say: MessageSink) -> LocalOrLab {
        let guests = STARTS_GUESTS.then(|| Guests::new(say, Arc::new(Companions::default())));
        LocalOrLab { guests, deliveries: Deliveries::default() }
    }
}

impl Executor for LocalOrLab {
    fn expect(&mut self, next: &mut dyn Iterator<Item = (&Cell, u32)>, stop: &Stop) {
        if let Some(guests) = &mut self.guests {
            guests.run_ahead(next, stop.flag());
        }
    }

    fn execute(
        &mut self,
        cell: &Cell,
        block: u32,
        samples: Option<&Path>,
        stop: &Stop,
        observe: &mut dyn FnMut(&Progress),
    ) -> Result<Record, Failure> {
        match &cell.kernel {
            Kernel::Running | Kernel::Installed(_) if !cell.conditions.roles.is_empty() => {
                roles::execute(cell, samples, &mut self.deliveries, stop, observe)
            }
            Kernel::Running | Kernel::Installed(_) => Child.execute(cell, block, samples, stop, observe),
            Kernel::Lab(_) => {
                let Some(guests) = &mut self.guests else { return Err(Failure::Unsupported(left_out())) };
                guests.record(cell, block, stop.flag()).map_err(|err| match err {
                    LabError::Guest { .. } => Failure::Reported(err.to_string()),
                    _ => Failure::Unsupported(err.to_string()),
                })
            }
        }
    }
}
