//! Periodic timers of the kernel that send a signal, which the thread waits for.

use crate::sys::posix_timer::PosixTimer;
use crate::sys::signal::{self, Awaited};
use crate::sys::{self, itimer};
use crate::{Clock, RtSection};
use model::{ClockId, ClockTime, Schedule, Span};
use std::io;

/// Waits for an expiration that is due at or after `due`. The one that is pending may belong to a due time that was
/// already past, and counted as missed, when the wait began.
#[inline]
fn wait_for(
    signal: &Awaited,
    rt: &RtSection<'_>,
    now: impl Fn(&RtSection<'_>) -> ClockTime,
    due: ClockTime,
) -> Result<(), i32> {
    loop {
        signal.wait()?;
        if now(rt) >= due {
            return Ok(());
        }
    }
}

/// `setitimer(2)` with `ITIMER_REAL`: one for each process, in whole microseconds, counting from the call.
#[derive(Debug)]
pub(crate) struct Itimer {
    signal: Awaited,
    period: Span,
}

/// How often the timer is armed at most until the call took less than [`SHORT`].
const TRIES: u32 = 20;
/// A call that nothing interrupted takes less.
const SHORT: Span = Span(1_000);
/// How close to a whole number of microseconds before the first due time the call is made, and after how many looks at
/// the clock whatever is left is taken.
const CLOSE_NS: u64 = 40;
const LOOKS: u32 = 1_000;

impl Itimer {
    pub(super) fn new(period: Span) -> Itimer {
        Itimer { signal: Awaited::new(signal::ALARM), period }
    }
}

impl Clock for Itimer {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        sys::clock::now(ClockId::Monotonic)
    }

    /// Arms it so that it expires at the first due time, and never before. The kernel counts from a moment inside the
    /// call, so the due times are later by up to what the call took.
    fn start(&self, rt: &RtSection<'_>, schedule: &Schedule) -> Result<Span, i32> {
        let mut uncertainty = Span(u64::MAX);
        for _ in 0..TRIES {
            let mut before = self.now(rt);
            let until_due = |at: ClockTime| schedule.first_due.0.saturating_sub(at.0);
            let beyond = |at| until_due(at).next_multiple_of(1000) - until_due(at);
            for _ in 0..LOOKS {
                if beyond(before) <= CLOSE_NS {
                    break;
                }
                before = self.now(rt);
            }
            let first = Span(until_due(before).next_multiple_of(1000).max(1000));
            itimer::arm(first, self.period)?;
            let called = u64::try_from(self.now(rt).since(before).0).unwrap_or(0);
            uncertainty = Span((first.ns() - until_due(before)).saturating_add(called));
            if called <= SHORT.ns() {
                break;
            }
        }
        Ok(uncertainty)
    }

    #[inline]
    fn sleep_until(&self, rt: &RtSection<'_>, due: ClockTime) -> Result<(), i32> {
        wait_for(&self.signal, rt, |rt| self.now(rt), due)
    }
}

impl Drop for Itimer {
    fn drop(&mut self) {
        // A timer that nobody waits for any more would only cost; the signal stays blocked.
        let _ = itimer::arm(Span(0), Span(0));
    }
}

/// A timer of `timer_create(2)` that signals its thread.
#[derive(Debug)]
pub(crate) struct SignalTimer {
    clock: ClockId,
    timer: PosixTimer,
    signal: Awaited,
    period: Span,
}

impl SignalTimer {
    pub(super) fn new(clock: ClockId, period: Span) -> io::Result<SignalTimer> {
        let timer = PosixTimer::for_this_thread(clock)?;
        Ok(SignalTimer { clock, timer, signal: Awaited::new(signal::of_timers()), period })
    }
}

impl Clock for SignalTimer {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        sys::clock::now(self.clock)
    }

    fn start(&self, _rt: &RtSection<'_>, schedule: &Schedule) -> Result<Span, i32> {
        self.timer.arm(schedule.first_due, self.period).map(|()| Span(0))
    }

    #[inline]
    fn sleep_until(&self, rt: &RtSection<'_>, due: ClockTime) -> Result<(), i32> {
        wait_for(&self.signal, rt, |rt| self.now(rt), due)
    }

    #[inline]
    fn overruns(&self, _rt: &RtSection<'_>) -> u64 {
        self.timer.overruns()
    }
}
