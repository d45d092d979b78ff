//! Calls that sleep: until an instant, for a duration, or with a timeout.

use crate::{Completion, RtSection, Wait};
use punctual_model::{ClockId, ClockTime, Cycle, Schedule, Span};
use punctual_sys::{futex::Futex, timerfd::Timerfd};
use std::io;

/// `clock_nanosleep(2)` to an absolute instant.
#[derive(Debug)]
pub(crate) struct Sleep(pub(super) ClockId);

impl Wait for Sleep {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        punctual_sys::clock::now(self.0)
    }

    #[inline]
    fn complete(&self, _rt: &RtSection<'_>, due: ClockTime) -> Result<Completion, i32> {
        punctual_sys::clock::sleep_until(self.0, due).map(|()| Completion::Done)
    }
}

/// `clock_nanosleep(2)` for a duration, or `nanosleep(2)`.
#[derive(Debug)]
pub(crate) struct Relative {
    /// `None`: `nanosleep`, which always uses the monotonic clock (kernel/time/hrtimer.c).
    pub(super) clock: Option<ClockId>,
    /// Duration of each sleep.
    pub(super) span: Span,
}

impl Wait for Relative {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        punctual_sys::clock::now(self.clock.unwrap_or_default())
    }

    /// Waits so that the first sleep is due in the first period.
    fn start(&self, rt: &RtSection<'_>, schedule: &Schedule) -> Result<Span, i32> {
        let begin = ClockTime(schedule.first_due.0.saturating_sub(self.span.ns()));
        while self.now(rt) < begin {
            match punctual_sys::clock::sleep_until(self.clock.unwrap_or_default(), begin) {
                Ok(()) | Err(libc::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(Span(0))
    }

    /// The sleep from now on; it counts as the cycle in whose period it is due. Never as an earlier cycle, even if the
    /// clock was set back.
    #[inline]
    fn next(&self, rt: &RtSection<'_>, schedule: &Schedule, cycle: Cycle) -> Cycle {
        let asked = schedule.containing(self.now(rt).plus(self.span));
        Cycle { index: asked.index.max(cycle.index), due: asked.due }
    }

    #[inline]
    fn complete(&self, _rt: &RtSection<'_>, _due: ClockTime) -> Result<Completion, i32> {
        match self.clock {
            Some(clock) => punctual_sys::clock::sleep_for(clock, self.span),
            None => punctual_sys::clock::nanosleep(self.span),
        }
        .map(|()| Completion::Done)
    }

    fn misses_when_late(&self) -> bool {
        false
    }
}

/// A timerfd, armed for each due time.
#[derive(Debug)]
pub(crate) struct TimerFile {
    clock: ClockId,
    file: Timerfd,
}

impl TimerFile {
    pub(super) fn new(clock: ClockId) -> io::Result<TimerFile> {
        Ok(TimerFile { clock, file: Timerfd::new(clock)? })
    }
}

impl Wait for TimerFile {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        punctual_sys::clock::now(self.clock)
    }

    #[inline]
    fn complete(&self, _rt: &RtSection<'_>, due: ClockTime) -> Result<Completion, i32> {
        self.file.arm(due)?;
        self.file.wait().map(|()| Completion::Done)
    }
}

/// A futex wait that ends by its timeout only.
#[derive(Debug)]
pub(crate) struct FutexTimeout {
    clock: ClockId,
    futex: Futex,
}

impl FutexTimeout {
    pub(super) fn new(clock: ClockId) -> FutexTimeout {
        FutexTimeout { clock, futex: Futex::default() }
    }
}

impl Wait for FutexTimeout {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        punctual_sys::clock::now(self.clock)
    }

    #[inline]
    fn complete(&self, _rt: &RtSection<'_>, due: ClockTime) -> Result<Completion, i32> {
        self.futex.wait_until(self.clock, due).map(|()| Completion::Done)
    }
}

/// `ppoll(2)` for the remaining time.
#[derive(Debug)]
pub(crate) struct PollTimeout;

impl Wait for PollTimeout {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        punctual_sys::clock::now(ClockId::Monotonic)
    }

    #[inline]
    fn complete(&self, rt: &RtSection<'_>, due: ClockTime) -> Result<Completion, i32> {
        let left = due.0.saturating_sub(self.now(rt).0);
        punctual_sys::poll::wait(Span(left)).map(|()| Completion::Done)
    }
}

/// `sched_yield(2)` of a deadline thread.
#[derive(Debug)]
pub(crate) struct Yield;

impl Wait for Yield {
    /// The clock that the scheduler's clock follows: its periods are not slewed by NTP (sched_clock,
    /// kernel/sched/clock.c).
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        punctual_sys::clock::now(ClockId::MonotonicRaw)
    }

    /// Sleeps until one period before the first due time. A deadline thread that wakes after its last deadline begins a
    /// new period then (`update_dl_entity`, kernel/sched/deadline.c): between the timer and this thread's wake-up.
    fn start(&self, rt: &RtSection<'_>, schedule: &Schedule) -> Result<Span, i32> {
        let begin = ClockTime(schedule.first_due.0.saturating_sub(schedule.period.ns()));
        loop {
            let left = u64::try_from(begin.since(self.now(rt)).0).unwrap_or(0);
            if left == 0 {
                return Ok(Span(self.now(rt).0.saturating_sub(begin.0)));
            }
            match punctual_sys::clock::sleep_until(
                ClockId::Monotonic,
                punctual_sys::clock::now(ClockId::Monotonic).plus(Span(left)),
            ) {
                Ok(()) | Err(libc::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    #[inline]
    fn complete(&self, _rt: &RtSection<'_>, _due: ClockTime) -> Result<Completion, i32> {
        punctual_sys::sched::yield_now().map(|()| Completion::Done)
    }
}
