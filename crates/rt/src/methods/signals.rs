//! Periodic kernel timers that send a signal, which the thread waits for.

use crate::{Completion, RtSection, Wait};
use punctual_model::{ClockId, ClockTime, Schedule, Span};
use punctual_sys::signal::{self, SignalSet};
use punctual_sys::timers::{PosixTimer, arm_itimer};
use std::io;

/// Waits for an expiration that is due at or after `due`. The pending one may belong to a due time that was already
/// past, and counted as missed, when the wait began.
#[inline]
fn wait_for(
    signal: &SignalSet,
    rt: &RtSection<'_>,
    now: impl Fn(&RtSection<'_>) -> ClockTime,
    due: ClockTime,
) -> Result<Completion, i32> {
    loop {
        signal.wait()?;
        if now(rt) >= due {
            return Ok(Completion::Done);
        }
    }
}

/// `setitimer(2)` with `ITIMER_REAL`: one per process, in whole microseconds, relative to the call.
#[derive(Debug)]
pub(crate) struct Itimer {
    signal: SignalSet,
    period: Span,
}

/// Maximum number of attempts to arm the timer in less than [`SHORT_CALL`].
const MAX_TRIES: u32 = 20;
/// Upper bound of the duration of an uninterrupted call.
const SHORT_CALL: Span = Span(1_000);
/// Maximum distance of the call from a whole number of microseconds before the first due time, and the number of clock
/// readings after which any distance is accepted.
const ALIGNMENT_NS: u64 = 40;
const MAX_CLOCK_READS: u32 = 1_000;

impl Itimer {
    pub(super) fn new(period: Span) -> Itimer {
        Itimer { signal: SignalSet::new(signal::ALARM), period }
    }
}

impl Wait for Itimer {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        punctual_sys::clock::now(ClockId::Monotonic)
    }

    /// Arms the timer so that it expires at the first due time, and never before. The kernel counts from a moment
    /// inside the call, so the due times are later by up to the duration of the call.
    fn start(&self, rt: &RtSection<'_>, schedule: &Schedule) -> Result<Span, i32> {
        let mut uncertainty = Span(u64::MAX);
        for _ in 0..MAX_TRIES {
            let mut before = self.now(rt);
            let until_due = |at: ClockTime| schedule.first_due.0.saturating_sub(at.0);
            let beyond = |at| until_due(at).next_multiple_of(1000) - until_due(at);
            for _ in 0..MAX_CLOCK_READS {
                if beyond(before) <= ALIGNMENT_NS {
                    break;
                }
                before = self.now(rt);
            }
            let first = Span(until_due(before).next_multiple_of(1000).max(1000));
            arm_itimer(first, self.period)?;
            let called = u64::try_from(self.now(rt).since(before).0).unwrap_or(0);
            uncertainty = Span((first.ns() - until_due(before)).saturating_add(called));
            if called <= SHORT_CALL.ns() {
                break;
            }
        }
        Ok(uncertainty)
    }

    #[inline]
    fn complete(&self, rt: &RtSection<'_>, due: ClockTime) -> Result<Completion, i32> {
        wait_for(&self.signal, rt, |rt| self.now(rt), due)
    }
}

impl Drop for Itimer {
    fn drop(&mut self) {
        // Nothing waits for the timer any more; the signal stays blocked.
        let _ = arm_itimer(Span(0), Span(0));
    }
}

/// A timer of `timer_create(2)` that signals its thread.
#[derive(Debug)]
pub(crate) struct SignalTimer {
    clock: ClockId,
    timer: PosixTimer,
    signal: SignalSet,
    period: Span,
}

impl SignalTimer {
    pub(super) fn new(clock: ClockId, period: Span) -> io::Result<SignalTimer> {
        let timer = PosixTimer::for_this_thread(clock)?;
        Ok(SignalTimer { clock, timer, signal: SignalSet::new(signal::of_timers()), period })
    }
}

impl Wait for SignalTimer {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        punctual_sys::clock::now(self.clock)
    }

    fn start(&self, _rt: &RtSection<'_>, schedule: &Schedule) -> Result<Span, i32> {
        self.timer.arm(schedule.first_due, self.period).map(|()| Span(0))
    }

    #[inline]
    fn complete(&self, rt: &RtSection<'_>, due: ClockTime) -> Result<Completion, i32> {
        wait_for(&self.signal, rt, |rt| self.now(rt), due)
    }

    #[inline]
    fn overruns(&self, _rt: &RtSection<'_>) -> u64 {
        self.timer.overruns()
    }
}
