//! The clock of a measured thread, replaceable in tests.

use crate::RtSection;
use crate::sys;
use model::MonoTime;

/// What a cyclic thread needs of a clock. Monomorphised: no indirect call in the measured path.
pub trait Clock {
    /// The current instant.
    fn now(&self, rt: &RtSection<'_>) -> MonoTime;

    /// Returns at or after `due`, unless interrupted.
    ///
    /// # Errors
    /// The errno of the wait; `EINTR` is the caller's to repeat.
    fn sleep_until(&self, rt: &RtSection<'_>, due: MonoTime) -> Result<(), i32>;
}

/// `CLOCK_MONOTONIC` with `clock_nanosleep(2)` to an absolute instant.
#[derive(Debug, Clone, Copy)]
pub struct Monotonic;

impl Clock for Monotonic {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> MonoTime {
        sys::clock::monotonic()
    }

    #[inline]
    fn sleep_until(&self, _rt: &RtSection<'_>, due: MonoTime) -> Result<(), i32> {
        sys::clock::sleep_until(due)
    }
}
