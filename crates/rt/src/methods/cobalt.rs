//! Sleeps in primary mode of Cobalt, the co-kernel of Xenomai.

use crate::{Completion, RtSection, Wait};
use punctual_model::{ClockId, ClockTime, Schedule, Span};
use punctual_sys::cobalt::{self, ThreadCounters, Timerfd};
use std::cell::Cell;
use std::io;

/// `clock_nanosleep` or a timerfd of Cobalt to an absolute instant. The clock is Linux's, read through the vDSO, which
/// does not leave primary mode.
#[derive(Debug)]
pub(crate) struct CobaltSleep {
    tid: u32,
    priority: u32,
    timer: Option<Timerfd>,
    /// Counters after the first sleep, which enters primary mode, and at the end.
    counters: Cell<(Option<ThreadCounters>, Option<ThreadCounters>)>,
    /// Why Cobalt let go of the thread for the first time, at the end.
    reason: Cell<Option<u8>>,
}

/// What Cobalt counted for a thread during its cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CobaltOutcome {
    /// Counters of the cycles alone.
    pub counters: ThreadCounters,
    /// Reason of the first switch to secondary mode, a number of `SIGDEBUG_*`; `None` without a signal of Cobalt.
    pub reason: Option<u8>,
}

impl CobaltSleep {
    /// Binds this process to Cobalt. Errors: in one line: why Cobalt refuses.
    pub(super) fn new(priority: u32, has_timer: bool) -> io::Result<CobaltSleep> {
        cobalt::bind().map_err(io::Error::other)?;
        let timer = has_timer.then(Timerfd::new).transpose().map_err(io::Error::from_raw_os_error)?;
        Ok(CobaltSleep {
            timer,
            tid: punctual_sys::thread::id(),
            priority,
            counters: Cell::default(),
            reason: Cell::default(),
        })
    }

    /// What was counted; `None` before the end.
    pub(crate) fn outcome(&self) -> Option<CobaltOutcome> {
        let (Some(first), Some(last)) = self.counters.get() else { return None };
        let counters = ThreadCounters {
            mode_switches: last.mode_switches.saturating_sub(first.mode_switches),
            context_switches: last.context_switches.saturating_sub(first.context_switches),
            system_calls: last.system_calls.saturating_sub(first.system_calls),
            page_faults: last.page_faults.saturating_sub(first.page_faults),
            status: last.status,
        };
        Some(CobaltOutcome { counters, reason: self.reason.get() })
    }
}

impl Wait for CobaltSleep {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        punctual_sys::clock::now(ClockId::Monotonic)
    }

    /// Makes this thread one of Cobalt and enters primary mode.
    fn start(&self, rt: &RtSection<'_>, _schedule: &Schedule) -> Result<Span, i32> {
        cobalt::become_fifo(self.tid, self.priority)?;
        cobalt::warn_of_switches(true)?;
        // A signal at the moment of the switch interrupts this sleep; in the cycles that would be a finding.
        while let Err(errno) = cobalt::sleep_until(self.now(rt).0) {
            if errno != libc::EINTR {
                return Err(errno);
            }
        }
        self.counters.set((Some(cobalt::counters()?), None));
        Ok(Span(0))
    }

    #[inline]
    fn complete(&self, _rt: &RtSection<'_>, due: ClockTime) -> Result<Completion, i32> {
        let ended = match &self.timer {
            None => cobalt::sleep_until(due.0),
            Some(timer) => timer.wait_until(due.0),
        };
        ended.map(|()| Completion::Done)
    }

    fn finish(&self, _rt: &RtSection<'_>) -> Result<Option<crate::Sample>, i32> {
        self.counters.set((self.counters.get().0, Some(cobalt::counters()?)));
        self.reason.set(cobalt::debug_reason());
        // What follows is of Linux.
        cobalt::warn_of_switches(false)?;
        Ok(None)
    }
}
