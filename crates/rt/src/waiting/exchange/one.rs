//! One trigger at a time, where an answer does not say which trigger it is for.

use super::{Answer, Answering, Asking, Heard};
use crate::link::{Logger, count};
use crate::wire::Interrupt;
use crate::{Clock, RtSection, Sample};
use model::{ClockTime, Nanos, Span};

/// So much that came is taken at once, at most: a wire that nothing drives may interrupt without end.
const MOST: usize = 1000;

impl Asking {
    /// What an interrupt is for. Triggers and answers take turns in their levels, so that the answer to the trigger before can be
    /// told; without levels what comes is for the only trigger on its way.
    #[inline]
    pub(super) fn judge_interrupt(&self, interrupt: Interrupt) -> Answer {
        let is_level = interrupt.level.is_none_or(|level| level == (self.number.get() % 2 == 1));
        // What was there before the trigger does not answer it.
        let is_after = interrupt.at_ns.is_none_or(|at_ns| at_ns >= self.sent.get().monotonic_ns);
        let before = self.unanswered.get();
        if is_level && is_after && self.is_open.get() {
            Answer::Present
        } else if !is_level && before & 1 != 0 {
            self.unanswered.set(before & !1);
            Answer::Late
        } else {
            Answer::Foreign
        }
    }

    /// Waits for the answer to the present trigger, if it has none, [`Logger::HELD`] at most; then takes what else is there.
    ///
    /// # Errors
    /// The errno.
    pub(super) fn settle(&self, rt: &RtSection<'_>) -> Result<(), i32> {
        for _ in 0..MOST {
            let until = if self.is_open.get() {
                ClockTime(self.sent.get().monotonic_ns).plus(Logger::HELD)
            } else {
                ClockTime(0)
            };
            let left = Span(until.0.saturating_sub(self.now(rt).0));
            match self.logger.line.wait(left) {
                Ok(true) => {
                    if self.take(self.logger.line.hear()?) == Answer::Present {
                        // Late as it is: there is somebody.
                        self.is_open.set(false);
                        self.silence.set(0);
                        if self.counts() {
                            count(&self.logger.counts.late);
                        }
                    }
                }
                Ok(false) if left == Span(0) => return Ok(()),
                Ok(false) | Err(libc::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Notes the parts of an answer, where the kernel has said when it came: from the call that sent the trigger until then, and
    /// from then until this thread has it.
    #[inline]
    pub(super) fn note_way(&self, rt: &RtSection<'_>, interrupt: Interrupt) {
        let sent = self.sent.get();
        let Some(for_the_way) = interrupt.at_ns.and_then(|at_ns| at_ns.checked_sub(sent.monotonic_ns)) else { return };
        let Ok(mut parts) = self.parts.try_borrow_mut() else { return };
        let Some([_, away, waking]) = parts.as_mut().filter(|_| self.counts()) else { return };
        let latency = self.now(rt).0.saturating_sub(sent.monotonic_ns);
        for (log, ns) in [(away, for_the_way), (waking, latency.saturating_sub(for_the_way))] {
            log.push(rt, Sample { cycle: sent.index, latency: Nanos(ns.cast_signed()) });
        }
    }
}

impl Answering {
    /// Notes how long a trigger took from the kernel to this thread, which had it at `woke`, where the kernel says when it came.
    #[inline]
    pub(super) fn note_waking(&self, rt: &RtSection<'_>, heard: Heard, cycle: u64, woke: ClockTime) {
        let Heard::Interrupt(Interrupt { at_ns: Some(at_ns), .. }) = heard else { return };
        let Ok(mut waking) = self.waking.try_borrow_mut() else { return };
        if let Some(log) = waking.as_mut() {
            log.push(rt, Sample { cycle, latency: woke.since(ClockTime(at_ns)) });
        }
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;
