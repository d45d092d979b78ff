//! Concurrent guests, each with its own virtual clock.

use super::{Beside, LabError, Monitor, carry_out};
use punctual_model::{Cell, Kernel, Record};
use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

/// Callback for messages to the user; called from any thread.
pub type MessageSink = Arc<dyn Fn(&str) + Send + Sync>;

/// Guests that are started before their records are needed: one per CPU, because each keeps one busy.
///
/// Only virtual time allows this: guests cannot affect each other's measurements. All end when this value is dropped.
#[expect(missing_debug_implementations, reason = "a closure has nothing to show")]
pub struct Guests {
    at_once: usize,
    say: MessageSink,
    beside: Arc<dyn Beside>,
    running: VecDeque<Guest>,
    is_over: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Guest {
    cell: Cell,
    block: u32,
    record: JoinHandle<Result<Record, LabError>>,
}

impl Guests {
    /// Creates an empty set; `say` receives messages about slow operations, `beside` starts what runs on this machine
    /// beside guests of machine time.
    pub fn new(say: MessageSink, beside: Arc<dyn Beside>) -> Guests {
        let at_once = std::thread::available_parallelism().map_or(1, NonZero::get);
        Guests { at_once, say, beside, running: VecDeque::new(), is_over: Arc::default() }
    }

    /// Starts the `next` cells in this order, up to the limit; `is_asked` stops them.
    pub fn run_ahead<'a>(&mut self, next: impl Iterator<Item = (&'a Cell, u32)>, is_asked: &Arc<AtomicBool>) {
        for (cell, block) in next.take_while(|(cell, _)| cell.kernel.is_virtual()).take(self.at_once) {
            let is_there = |guest: &Guest| guest.block == block && guest.cell == *cell;
            if self.running.len() < self.at_once && !self.running.iter().any(is_there) {
                // If the thread cannot be created, [`Guests::record`] starts the guest later.
                let Ok(record) = self.start(cell.clone(), block, Arc::clone(is_asked)) else { return };
                self.running.push_back(Guest { cell: cell.clone(), block, record });
            }
        }
    }

    /// Returns the record of a cell in a block when its guest has ended; starts the guest if necessary. Errors: if the
    /// guest gives no record.
    pub fn record(&mut self, cell: &Cell, block: u32, is_asked: &Arc<AtomicBool>) -> Result<Record, LabError> {
        let place = self.running.iter().position(|guest| guest.block == block && guest.cell == *cell);
        let guest = place.and_then(|place| self.running.remove(place));
        let record = match guest {
            Some(guest) => guest.record,
            None => self.start(cell.clone(), block, Arc::clone(is_asked))?,
        };
        record.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn start(
        &self,
        cell: Cell,
        block: u32,
        is_asked: Arc<AtomicBool>,
    ) -> Result<JoinHandle<Result<Record, LabError>>, LabError> {
        let (is_over, say, beside) = (Arc::clone(&self.is_over), Arc::clone(&self.say), Arc::clone(&self.beside));
        let record = std::thread::Builder::new().spawn(move || {
            let Kernel::Lab(kernel) = &cell.kernel else {
                return Err(LabError::program("lab", "no kernel of the lab"));
            };
            let is_stopped = || is_asked.load(Relaxed) || is_over.load(Relaxed);
            carry_out(&cell, kernel, block, &*beside, Monitor { is_stopped: &is_stopped, say: &*say })
        });
        record.map_err(|err| LabError::program("lab", punctual_host::no_thread(&err)))
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
