//! Sleeps in primary mode of Cobalt, the co-kernel of Xenomai.

use crate::{Completion, RtSection, Wait};
use model::{ClockId, ClockTime, Schedule, Span};
use std::cell::Cell;
use std::io;
use sys::cobalt::{self, ThreadCounters};

/// `clock_nanosleep` of Cobalt to an absolute instant. The clock is Linux's, read through the vDSO, which does not
/// leave primary mode.
#[derive(Debug)]
pub(crate) struct CobaltSleep {
    tid: u32,
    priority: u32,
    /// Counters after the first sleep, which enters primary mode, and at the end.
    counters: Cell<(Option<ThreadCounters>, Option<ThreadCounters>)>,
}

impl CobaltSleep {
    /// Binds this process to Cobalt.
    ///
    /// # Errors
    /// In one line: why Cobalt refuses.
    pub(super) fn new(priority: u32) -> io::Result<CobaltSleep> {
        cobalt::bind().map_err(io::Error::other)?;
        Ok(CobaltSleep { tid: sys::thread::id(), priority, counters: Cell::default() })
    }

    /// Counters of the cycles alone; `None` before the end.
    pub(crate) fn counted(&self) -> Option<ThreadCounters> {
        let (Some(first), Some(last)) = self.counters.get() else { return None };
        Some(ThreadCounters {
            mode_switches: last.mode_switches.saturating_sub(first.mode_switches),
            context_switches: last.context_switches.saturating_sub(first.context_switches),
            system_calls: last.system_calls.saturating_sub(first.system_calls),
            page_faults: last.page_faults.saturating_sub(first.page_faults),
            status: last.status,
        })
    }
}

impl Wait for CobaltSleep {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        sys::clock::now(ClockId::Monotonic)
    }

    /// Makes this thread one of Cobalt and enters primary mode.
    fn start(&self, rt: &RtSection<'_>, _schedule: &Schedule) -> Result<Span, i32> {
        cobalt::become_fifo(self.tid, self.priority)?;
        cobalt::sleep_until(self.now(rt).0)?;
        self.counters.set((Some(cobalt::counters()?), None));
        Ok(Span(0))
    }

    #[inline]
    fn complete(&self, _rt: &RtSection<'_>, due: ClockTime) -> Result<Completion, i32> {
        cobalt::sleep_until(due.0).map(|()| Completion::Done)
    }

    fn finish(&self, _rt: &RtSection<'_>) -> Result<Option<crate::Sample>, i32> {
        self.counters.set((self.counters.get().0, Some(cobalt::counters()?)));
        Ok(None)
    }
}
