//! What the measured loop needs of a way to wait; replaceable in tests.

use crate::RtSection;
use model::{ClockTime, Cycle, Schedule, Span};

/// The errno of a wait for something that did not come in time.
pub const NOTHING_CAME: i32 = libc::ETIME;

/// What a cyclic thread needs: the time, and a way to wait. Monomorphised: no indirect call in the measured path.
pub trait Clock {
    /// The current instant of the clock that the due times are on.
    fn now(&self, rt: &RtSection<'_>) -> ClockTime;

    /// Gets ready for the first wait, before it is due. Returns how much later than `schedule` says the due times may all
    /// be: 0 where each is given to the kernel as an instant.
    ///
    /// # Errors
    /// The errno.
    fn start(&self, _rt: &RtSection<'_>, _schedule: &Schedule) -> Result<Span, i32> {
        Ok(Span(0))
    }

    /// What the next wait is for: `cycle`, the first that is not yet past, unless the method only knows how long from now.
    #[inline]
    fn next(&self, _rt: &RtSection<'_>, _schedule: &Schedule, cycle: Cycle) -> Cycle {
        cycle
    }

    /// What makes a wait begin: sends a trigger, when it is due. Returns the cycle that is waited for, due from when it was
    /// sent; for most methods nothing has to be done.
    ///
    /// # Errors
    /// The errno.
    #[inline]
    fn begin(&self, _rt: &RtSection<'_>, _schedule: &Schedule, cycle: Cycle) -> Result<Cycle, i32> {
        Ok(cycle)
    }

    /// Returns at or after `due`, unless interrupted.
    ///
    /// # Errors
    /// The errno of the wait; `EINTR` is the caller's to repeat, and [`NOTHING_CAME`] leaves no sample: what was waited for
    /// has not come before the next due time.
    fn sleep_until(&self, rt: &RtSection<'_>, due: ClockTime) -> Result<(), i32>;

    /// Expirations that the kernel itself counted as overrun by the last wait. Asked after a wake-up later than a period;
    /// before that there can be none.
    #[inline]
    fn overruns(&self, _rt: &RtSection<'_>) -> u64 {
        0
    }
}
