//! What the measured loop needs of a way to wait; replaceable in tests.

use crate::RtSection;
use model::{ClockTime, Cycle, Schedule, Span};

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

    /// Returns at or after `due`, unless interrupted.
    ///
    /// # Errors
    /// The errno of the wait; `EINTR` is the caller's to repeat.
    fn sleep_until(&self, rt: &RtSection<'_>, due: ClockTime) -> Result<(), i32>;

    /// Expirations that the kernel itself counted as overrun by the last wait. Asked after a wake-up later than a period;
    /// before that there can be none.
    #[inline]
    fn overruns(&self, _rt: &RtSection<'_>) -> u64 {
        0
    }
}
