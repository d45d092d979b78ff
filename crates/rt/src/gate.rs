//! The barrier: measured threads wait here until all are ready, then receive their first due time.
#![expect(clippy::disallowed_methods, reason = "runs before the barrier or after the last cycle")]

use punctual_model::ClockTime;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::thread::{self, Thread};

/// A gate that is closed until [`Gate::open`] or [`Gate::cancel`], and never closed again.
///
/// Unlike with a `Barrier`, the opening side does not wait for the waiting threads: a thread that gets no CPU time
/// cannot hold up the cell.
#[derive(Debug, Default)]
pub(crate) struct Gate(AtomicU64);

const CLOSED: u64 = 0;
const CANCELLED: u64 = u64::MAX;

impl Gate {
    /// Releases the `waiting` threads with the due time of their first cycle.
    pub(crate) fn open<'a>(&self, first_due: ClockTime, waiting: impl Iterator<Item = &'a Thread>) {
        self.0.store(first_due.0, Release);
        waiting.for_each(Thread::unpark);
    }

    /// Cancels: [`Gate::pass`] returns `None` in the `waiting` threads.
    pub(crate) fn cancel<'a>(&self, waiting: impl Iterator<Item = &'a Thread>) {
        self.open(ClockTime(CANCELLED), waiting);
    }

    /// Waits for the gate; `None` when the cell was canceled.
    pub(crate) fn pass(&self) -> Option<ClockTime> {
        loop {
            match self.0.load(Acquire) {
                CLOSED => thread::park(),
                CANCELLED => return None,
                first_due => return Some(ClockTime(first_due)),
            }
        }
    }
}
