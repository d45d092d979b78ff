//! How a measured thread waits and tells the time, replaceable in tests.

use crate::sys::{self, futex::Futex, timerfd::Timerfd};
use crate::{Limits, LogWriter, RtSection, run_cycles};
use model::{Method, MonoTime, Schedule};
use std::io;

/// What a cyclic thread needs: the time, and a way to wait. Monomorphised: no indirect call in the measured path.
pub trait Clock {
    /// The current instant of `CLOCK_MONOTONIC`.
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> MonoTime {
        sys::clock::monotonic()
    }

    /// Returns at or after `due`, unless interrupted.
    ///
    /// # Errors
    /// The errno of the wait; `EINTR` is the caller's to repeat.
    fn sleep_until(&self, rt: &RtSection<'_>, due: MonoTime) -> Result<(), i32>;
}

/// `clock_nanosleep(2)` to an absolute instant.
#[derive(Debug, Clone, Copy)]
pub struct Sleep;

impl Clock for Sleep {
    #[inline]
    fn sleep_until(&self, _rt: &RtSection<'_>, due: MonoTime) -> Result<(), i32> {
        sys::clock::sleep_until(due)
    }
}

impl Clock for Timerfd {
    #[inline]
    fn sleep_until(&self, _rt: &RtSection<'_>, due: MonoTime) -> Result<(), i32> {
        self.arm(due)?;
        self.wait()
    }
}

impl Clock for Futex {
    #[inline]
    fn sleep_until(&self, _rt: &RtSection<'_>, due: MonoTime) -> Result<(), i32> {
        self.wait_until(due)
    }
}

/// A method with what it needs from the kernel, made before the barrier.
#[derive(Debug)]
pub(crate) enum Waiting {
    Sleep(Sleep),
    Timerfd(Timerfd),
    Futex(Futex),
}

impl Waiting {
    /// Makes what `method` needs.
    pub(crate) fn by(method: Method) -> io::Result<Waiting> {
        Ok(match method {
            Method::ClockNanosleep => Waiting::Sleep(Sleep),
            Method::Timerfd => Waiting::Timerfd(Timerfd::new()?),
            Method::Futex => Waiting::Futex(Futex::default()),
        })
    }

    /// Runs the cycles, see [`run_cycles`].
    pub(crate) fn run(
        &self,
        rt: &RtSection<'_>,
        schedule: &Schedule,
        limits: &Limits,
        log: &mut LogWriter,
    ) -> Result<(), i32> {
        match self {
            Waiting::Sleep(clock) => run_cycles(rt, clock, schedule, limits, log),
            Waiting::Timerfd(clock) => run_cycles(rt, clock, schedule, limits, log),
            Waiting::Futex(clock) => run_cycles(rt, clock, schedule, limits, log),
        }
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;

    /// No method returns before its due time, all return for one that is past, and none allocates.
    #[test]
    fn every_method_waits_until_its_due_time() {
        fn check(clock: &impl Clock) {
            let ((), allocations) = RtSection::enter(|rt| {
                for ahead_ns in [2_000_000_i64, 0, -5_000_000] {
                    let due = MonoTime(clock.now(rt).0.saturating_add_signed(ahead_ns));
                    while clock.sleep_until(rt, due) == Err(libc::EINTR) {}
                    assert!(clock.now(rt) >= due);
                }
            });
            assert_eq!(allocations, 0);
        }
        check(&Sleep);
        check(&Timerfd::new().unwrap());
        check(&Futex::default());
    }
}
