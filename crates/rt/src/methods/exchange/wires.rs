//! Wires and bytes, whose answers do not contain the trigger's number: one trigger at a time.

use super::{Answer, LoggerWait, Trigger};
use crate::link::Logger;
use crate::wire::Interrupt;
use crate::{RtSection, Sample, Wait};
use punctual_model::{ClockTime, Cycle, Nanos, Schedule, Span};

/// Maximum number of events taken at once: a floating wire may interrupt without end.
const MAX_TAKEN: usize = 1000;

impl LoggerWait {
    /// Classifies an interrupt. Triggers and answers alternate their levels, which identifies the answer to the
    /// previous trigger; without levels an interrupt belongs to the only outstanding trigger.
    #[inline]
    pub(super) fn judge_interrupt(&self, interrupt: Interrupt) -> Answer {
        let present = self.triggers.present();
        let is_level = interrupt.level.is_none_or(|level| level == (present.number % 2 == 1));
        // An interrupt from before the trigger does not answer it.
        let is_after = interrupt.at_ns.is_none_or(|at_ns| at_ns >= present.monotonic_ns);
        let before = self.triggers.get(present.number.saturating_sub(1)).filter(|before| !is_level && before.is_open);
        if is_level && is_after && present.is_open {
            Answer::To(present)
        } else {
            before.map_or(Answer::Foreign, Answer::To)
        }
    }

    /// The instant until which an outstanding answer blocks the next trigger, because the two answers could not be
    /// distinguished. Where answers carry no number, it is the answer to the present trigger. Over a serial line, whose
    /// bytes are 8 bits of a number, it is the one to the trigger 256 before, unless a later trigger was answered:
    /// bytes keep their order, so that it is lost then.
    pub(super) fn held_until(&self, schedule: &Schedule, cycle: Cycle, now: ClockTime) -> ClockTime {
        let has_numbers = self.logger.line.has_numbers();
        let (trigger, held) = if has_numbers {
            let next = self.number_of(self.next_index(schedule, cycle, now));
            (self.triggers.in_slot_of(next), Logger::LATE_ANSWER_TIMEOUT)
        } else {
            (self.triggers.present(), Logger::ANSWER_TIMEOUT)
        };
        let is_held = trigger.is_open && !(has_numbers && self.triggers.is_overtaken(trigger.number));
        if is_held { ClockTime(trigger.monotonic_ns).plus(held) } else { ClockTime(0) }
    }

    /// Waits for an outstanding answer that could not be distinguished from the next one. Where answers carry no
    /// number, it then consumes the remaining events. Returns the sample of a late answer.
    pub(super) fn settle(&self, rt: &RtSection<'_>, schedule: &Schedule, cycle: Cycle) -> Result<Option<Sample>, i32> {
        for _ in 0..MAX_TAKEN {
            let now = self.now(rt);
            let left = Span(self.held_until(schedule, cycle, now).0.saturating_sub(now.0));
            if left == Span(0) && self.logger.line.has_numbers() {
                return Ok(None);
            }
            match self.logger.line.wait(left) {
                Ok(true) => {
                    if let Some(late) = self.take_late(rt)? {
                        return Ok(Some(late));
                    }
                }
                Ok(false) if left == Span(0) => return Ok(None),
                Ok(false) | Err(libc::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(None)
    }

    /// Records the parts of the answer to `trigger`, which this thread received at `came`, if it has a time stamp: from
    /// the call that sent the trigger until the time stamp, and from then on.
    #[inline]
    pub(super) fn note_way(&self, rt: &RtSection<'_>, interrupt: Interrupt, trigger: &Trigger, came: ClockTime) {
        let sent_ns = trigger.monotonic_ns;
        let Some(for_the_way) = interrupt.at_ns.and_then(|at_ns| at_ns.checked_sub(sent_ns)) else { return };
        let Ok(mut parts) = self.parts.try_borrow_mut() else { return };
        let Some([_, away, waking]) = parts.as_mut().filter(|_| self.counts(trigger)) else { return };
        let latency = came.0.saturating_sub(sent_ns);
        for (log, ns) in [(away, for_the_way), (waking, latency.saturating_sub(for_the_way))] {
            log.push(rt, Sample { cycle: trigger.index, latency: Nanos(ns.cast_signed()) });
        }
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkCounts;
    use crate::line::Line;
    use crate::wire::UioDevice;
    use std::io::{PipeWriter, Write};
    use std::os::fd::OwnedFd;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    /// A logger whose interrupts are counted in a pipe; four triggers were sent before to test for the peer.
    fn wait() -> (LoggerWait, Arc<LinkCounts>, PipeWriter) {
        let (reader, writer) = std::io::pipe().unwrap();
        let counts = Arc::<LinkCounts>::default();
        let line = Line::Uio(UioDevice::counted_in(OwnedFd::from(reader).into()));
        let logger = Logger {
            line,
            session: 0,
            first: 0,
            tries: 4,
            peer_timeout: Span(3),
            remembered: 64,
            parts: None,
            unanswered: None,
            counts: Arc::clone(&counts),
        };
        (LoggerWait::new(logger).unwrap(), counts, writer)
    }

    /// Records trigger `number` as sent at `monotonic_ns`.
    fn sent(wait: &LoggerWait, number: u64, monotonic_ns: u64) {
        wait.triggers.send(Trigger { number, index: number, monotonic_ns, is_open: true, ..Trigger::default() });
    }

    #[test]
    fn an_edge_answers_the_present_trigger_or_the_one_before() {
        const HIGH: Option<bool> = Some(true);
        const LOW: Option<bool> = Some(false);
        let (wait, ..) = wait();
        let came = |level, at_ns| match wait.judge_interrupt(Interrupt { level, unseen: 0, at_ns: Some(at_ns) }) {
            Answer::To(trigger) => Some(trigger.number),
            Answer::Duplicate | Answer::Foreign => None,
        };
        sent(&wait, 5, 500);
        assert_eq!(came(LOW, 500), None, "the fourth had its answer");
        assert_eq!(came(HIGH, 499), None, "before the trigger");
        assert_eq!([came(HIGH, 500), came(None, 500)], [Some(5); 2]);
        wait.triggers.answer(5);
        assert_eq!([came(HIGH, 501), came(None, 501)], [None; 2], "once more");
        sent(&wait, 6, 600);
        sent(&wait, 7, 700);
        assert_eq!(came(LOW, 701), Some(6), "late");
        wait.triggers.answer(6);
        assert_eq!((came(LOW, 702), came(HIGH, 703)), (None, Some(7)));
    }

    #[test]
    fn a_late_answer_is_waited_for_and_nothing_is_left_for_the_next_trigger() {
        let (wait, counts, mut writer) = wait();
        let schedule =
            Schedule { first_due: ClockTime(0), period: punctual_model::Period::try_from(Span(1_000_000)).unwrap() };
        let settle = || {
            let (settled, allocations) = RtSection::enter(|rt| wait.settle(rt, &schedule, schedule.cycle(0)));
            assert_eq!(allocations, 0);
            (settled, wait.triggers.has_open())
        };
        assert_eq!(settle(), (Ok(None), false), "nothing is to be waited for");
        let began = punctual_sys::clock::monotonic();
        sent(&wait, 5, began.0);
        wait.consecutive_timeouts.set(2);
        let device = std::thread::spawn(move || {
            // The last count shows that there was one more interrupt before it.
            for count in [7_u32, 8, 10] {
                writer.write_all(&count.to_ne_bytes()).unwrap();
            }
            writer
        });
        // The answer comes during a wait or before it, and counts with its whole delay.
        let mut late = None;
        let comes = punctual_sys::testing::comes_true(|| {
            let (settled, has_open) = settle();
            late = settled.unwrap();
            assert_ne!(late.is_some(), has_open);
            !has_open
        });
        assert!(comes);
        let late = late.unwrap();
        assert!(
            late.cycle == 5 && late.latency.0 > 0 && late.latency <= punctual_sys::clock::monotonic().since(began),
            "{late:?}"
        );
        let writer = device.join().unwrap();
        assert_eq!(settle(), (Ok(None), false));
        assert_eq!(wait.consecutive_timeouts.get(), 0, "the peer is there");
        assert_eq!((counts.late.load(Relaxed), counts.foreign.load(Relaxed)), (1, 3));
        let began = punctual_sys::clock::monotonic();
        sent(&wait, 6, began.0);
        assert_eq!(settle(), (Ok(None), true), "the next one is sent, and this one still has no answer");
        assert!(
            punctual_sys::clock::monotonic().since(began).0 >= Logger::ANSWER_TIMEOUT.ns().cast_signed() - 1_000_000
        );
        assert_eq!(counts.late.load(Relaxed), 1);
        drop(writer);
    }
}
