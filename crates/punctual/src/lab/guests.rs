//! Several guests at a time, where the clock of each is its own.

use super::{LabError, carry_out};
use model::{Cell, Kernel, Record};
use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

/// Guests that run ahead of who asks for their records: as many as there are CPUs, because each keeps one busy.
///
/// Only virtual time allows that: nothing that another guest does can be seen in it. All end with this value.
#[derive(Debug)]
pub(crate) struct Guests {
    at_once: usize,
    running: VecDeque<Guest>,
    is_over: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Guest {
    cell: Cell,
    block: u32,
    record: JoinHandle<Result<Record, LabError>>,
}

impl Default for Guests {
    fn default() -> Guests {
        let at_once = std::thread::available_parallelism().map_or(1, NonZero::get);
        Guests { at_once, running: VecDeque::new(), is_over: Arc::default() }
    }
}

impl Guests {
    /// Starts what is asked for next, in this order, as far as there is room; `is_asked` ends them.
    pub(crate) fn run_ahead<'a>(&mut self, next: impl Iterator<Item = (&'a Cell, u32)>, is_asked: &Arc<AtomicBool>) {
        for (cell, block) in next.take_while(|(cell, _)| cell.kernel.is_virtual()).take(self.at_once) {
            let is_there = |guest: &Guest| guest.block == block && guest.cell == *cell;
            if self.running.len() < self.at_once && !self.running.iter().any(is_there) {
                let record = self.start(cell.clone(), block, Arc::clone(is_asked));
                self.running.push_back(Guest { cell: cell.clone(), block, record });
            }
        }
    }

    /// The record of a cell in a block, once its guest has ended; started now if it was not before.
    ///
    /// # Errors
    /// When its guest gives none.
    pub(crate) fn record(&mut self, cell: &Cell, block: u32, is_asked: &Arc<AtomicBool>) -> Result<Record, LabError> {
        let place = self.running.iter().position(|guest| guest.block == block && guest.cell == *cell);
        let guest = place.and_then(|place| self.running.remove(place));
        let record = guest.map_or_else(|| self.start(cell.clone(), block, Arc::clone(is_asked)), |guest| guest.record);
        record.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn start(&self, cell: Cell, block: u32, is_asked: Arc<AtomicBool>) -> JoinHandle<Result<Record, LabError>> {
        let is_over = Arc::clone(&self.is_over);
        std::thread::spawn(move || {
            let Kernel::Lab(kernel) = &cell.kernel else {
                return Err(LabError::program("lab", "no kernel of the lab"));
            };
            carry_out(&cell, kernel, block, &|| is_asked.load(Relaxed) || is_over.load(Relaxed))
        })
    }
}

impl Drop for Guests {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        for guest in self.running.drain(..) {
            let _ = guest.record.join();
        }
    }
}
