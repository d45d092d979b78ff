//! The trait through which the measured loop waits; replaceable in tests.

use crate::{RtSection, Sample};
use punctual_model::{ClockTime, Cycle, Schedule, Span};

/// The outcome of [`Wait::trigger`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Triggered {
    /// The cycle to complete, with the instant its latency counts from.
    Cycle(Cycle),
    /// An answer to the trigger of an earlier cycle. No trigger was sent yet; call again.
    Late(Sample),
}

/// The outcome of [`Wait::complete`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// The cycle is complete: read the clock.
    Done,
    /// No answer arrived before the next due time: no sample for now.
    TimedOut,
    /// An answer to the trigger of an earlier cycle; call again.
    Late(Sample),
    /// A gap of a thread that never waits, with the instant of its begin; call again.
    Gap(Sample, ClockTime),
}

/// A method of waiting, and the clock of its due times. Monomorphized: no indirect call in the measured path.
pub trait Wait {
    /// The current instant of the clock that the due times are on.
    fn now(&self, rt: &RtSection<'_>) -> ClockTime;

    /// Prepares the first wait, before it is due. Returns the upper bound of the delay of all due times against
    /// `schedule`: 0 where each is passed to the kernel as an instant.
    fn start(&self, _rt: &RtSection<'_>, _schedule: &Schedule) -> Result<Span, i32> {
        Ok(Span(0))
    }

    /// The cycle to wait for: `cycle`, the first that is not yet past, unless the method is relative to now.
    #[inline]
    fn next(&self, _rt: &RtSection<'_>, _schedule: &Schedule, cycle: Cycle) -> Cycle {
        cycle
    }

    /// Returns once the event that starts a cycle has happened: a logger sends its trigger when it is due, a target
    /// waits for one. For all other methods that event is the due time itself, and there is nothing to do.
    #[inline]
    fn trigger(&self, _rt: &RtSection<'_>, _schedule: &Schedule, cycle: Cycle) -> Result<Triggered, i32> {
        Ok(Triggered::Cycle(cycle))
    }

    /// Returns once the cycle is complete: at or after `due`; for a logger when its trigger is answered, for a target
    /// when it has sent the answer. Errors: the errno; after `EINTR` the caller calls again.
    fn complete(&self, rt: &RtSection<'_>, due: ClockTime) -> Result<Completion, i32>;

    /// Waits, after the last cycle, for answers to earlier triggers. Returns the next of them, `None` after the last.
    #[inline]
    fn finish(&self, _rt: &RtSection<'_>) -> Result<Option<Sample>, i32> {
        Ok(None)
    }

    /// Whether a late wake-up misses the due times before it, as `punctual_model::Task::misses_when_late`. Asked of
    /// wake-ups of the warm-up that passed the first recorded due time.
    fn misses_when_late(&self) -> bool {
        true
    }

    /// Expirations that the kernel counted as overrun in the last wait. Called after a wake-up later than a period;
    /// before that there can be none.
    #[inline]
    fn overruns(&self, _rt: &RtSection<'_>) -> u64 {
        0
    }
}
