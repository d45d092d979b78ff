//! Triggers and answers over a line: the logger sends triggers and waits for the answers, which the target sends.

mod loopback;
mod target;
mod triggers;
mod wires;

use crate::line::{Line, LineEvent, Message};
use crate::link::{Logger, add, count};
use crate::{Completion, LogWriter, RtSection, Sample, Triggered, Wait};
use punctual_model::{ClockId, ClockTime, Cycle, Nanos, Schedule, Span};
use punctual_sys::timerfd::Timerfd;
use std::cell::{Cell, RefCell};
use std::io;
use std::sync::atomic::Ordering::Release;
pub(super) use target::TargetWait;
use triggers::{Trigger, Triggers};

/// Number of triggers before the present one whose answer, received again over a serial line, counts as a duplicate:
/// noise on the line is a byte like any other.
const DUPLICATE_WINDOW: u64 = 64;

/// Classification of a received event.
#[derive(Debug, Clone, Copy)]
enum Answer {
    /// The answer to a trigger that had none.
    To(Trigger),
    /// A second answer to a trigger.
    Duplicate,
    /// Neither of these.
    Foreign,
}

/// Sends a trigger when it is due and waits for its answer until the next one is due. A later answer counts with the
/// time since its own trigger was sent.
#[derive(Debug)]
pub(crate) struct LoggerWait {
    logger: Logger,
    triggers: Triggers,
    /// Due time of the next trigger, for which `timer` is armed.
    until: Cell<ClockTime>,
    timer: Timerfd,
    /// Consecutive triggers without an answer, and the time at which the first of them was sent, ns.
    consecutive_timeouts: Cell<u64>,
    unanswered_since_ns: Cell<u64>,
    parts: RefCell<Option<[LogWriter; 3]>>,
    unanswered: RefCell<Option<LogWriter>>,
    has_parts: bool,
}

impl LoggerWait {
    pub(super) fn new(mut logger: Logger) -> io::Result<LoggerWait> {
        let before = if logger.line.has_numbers() { 0 } else { logger.tries };
        Ok(LoggerWait {
            timer: Timerfd::new(ClockId::Monotonic)?,
            has_parts: logger.parts.is_some(),
            parts: RefCell::new(logger.parts.take()),
            unanswered: RefCell::new(logger.unanswered.take()),
            triggers: Triggers::new(logger.line.triggers_told_apart(logger.remembered), before),
            logger,
            until: Cell::new(ClockTime(0)),
            consecutive_timeouts: Cell::new(0),
            unanswered_since_ns: Cell::new(0),
        })
    }

    /// Classifies a received event.
    #[inline]
    fn judge(&self, event: LineEvent) -> Answer {
        let open = |trigger: Trigger| if trigger.is_open { Answer::To(trigger) } else { Answer::Duplicate };
        match event {
            LineEvent::Message(message, from, _) => {
                let is_peer = matches!(&self.logger.line, Line::Udp { peer: Some(peer), .. } if *peer == from);
                let is_ours = is_peer && message.is_answer && message.session == self.logger.session;
                if !is_ours || message.number > self.triggers.number() {
                    return Answer::Foreign;
                }
                self.triggers.get(message.number).map_or(Answer::Duplicate, open)
            }
            LineEvent::Byte(byte) => {
                let trigger = self.triggers.in_slot_of(byte.into());
                let is_known = trigger.is_open || trigger.number + DUPLICATE_WINDOW >= self.triggers.number();
                if trigger.number > 0 && is_known { open(trigger) } else { Answer::Foreign }
            }
            LineEvent::Interrupt(interrupt) => self.judge_interrupt(interrupt),
            LineEvent::Foreign => Answer::Foreign,
        }
    }

    /// Records the parts of the answer to `trigger`, received at `came`, where the kernel provides the time stamps of
    /// both datagrams: until the trigger was passed to the network, from then until the answer came from it, and from
    /// then until this thread has received it.
    #[inline]
    fn note_parts(&self, rt: &RtSection<'_>, event: LineEvent, trigger: &Trigger, came: ClockTime) {
        let LineEvent::Message(_, _, Some(came_ns)) = event else { return };
        let Some(handed_on_ns) = trigger.handed_on_ns else { return };
        let Ok(mut parts) = self.parts.try_borrow_mut() else { return };
        let Some([sending, away, waking]) = parts.as_mut().filter(|_| self.counts(trigger)) else { return };
        let latency = came.0.saturating_sub(trigger.monotonic_ns);
        let parts = (
            handed_on_ns.checked_sub(trigger.real_ns),
            came_ns.checked_sub(handed_on_ns),
            // A clock that was set in between yields parts that exceed the whole.
            came_ns.checked_sub(trigger.real_ns).and_then(|before| latency.checked_sub(before)),
        );
        let (Some(for_sending), Some(for_the_way), Some(for_waking)) = parts else { return };
        for (log, ns) in [(sending, for_sending), (away, for_the_way), (waking, for_waking)] {
            log.push(rt, Sample { cycle: trigger.index, latency: Nanos(ns.cast_signed()) });
        }
    }

    /// Whether a trigger belongs to the measured window.
    fn counts(&self, trigger: &Trigger) -> bool {
        trigger.index >= self.logger.first
    }

    /// Receives an event and counts duplicates and foreign data. Returns the trigger that it answers. Errors: the errno
    /// of receiving.
    #[inline]
    fn take(&self, rt: &RtSection<'_>) -> Result<Option<Trigger>, i32> {
        let event = self.logger.line.receive()?;
        let came = self.now(rt);
        let counts = &self.logger.counts;
        let is_counted = self.counts(&self.triggers.present());
        if let LineEvent::Interrupt(interrupt) = event
            && is_counted
        {
            add(&counts.foreign, interrupt.unseen);
        }
        let counter = match self.judge(event) {
            Answer::To(trigger) => {
                self.triggers.answer(trigger.number);
                self.consecutive_timeouts.set(0);
                match event {
                    LineEvent::Interrupt(interrupt) => self.note_way(rt, interrupt, &trigger, came),
                    _ => self.note_parts(rt, event, &trigger, came),
                }
                return Ok(Some(trigger));
            }
            Answer::Duplicate => &counts.duplicate,
            Answer::Foreign => &counts.foreign,
        };
        if is_counted {
            count(counter);
        }
        Ok(None)
    }

    /// Receives an event after the time for it. Returns the sample of a late answer. Errors: the errno of receiving.
    fn take_late(&self, rt: &RtSection<'_>) -> Result<Option<Sample>, i32> {
        Ok(self.take(rt)?.map(|trigger| self.late_sample(rt, &trigger)))
    }

    /// The sample of an answer to `trigger` that has just come, after the time for it.
    fn late_sample(&self, rt: &RtSection<'_>, trigger: &Trigger) -> Sample {
        let latency = self.now(rt).since(ClockTime(trigger.monotonic_ns));
        if self.counts(trigger) {
            count(&self.logger.counts.late);
        }
        Sample { cycle: trigger.index, latency }
    }

    /// Records a trigger that is given up, with the time waited.
    fn give_up(&self, rt: &RtSection<'_>, trigger: &Trigger) {
        let Ok(mut unanswered) = self.unanswered.try_borrow_mut() else { return };
        let Some(log) = unanswered.as_mut().filter(|_| self.counts(trigger)) else { return };
        let latency = self.now(rt).since(ClockTime(trigger.monotonic_ns));
        log.push(rt, Sample { cycle: trigger.index, latency });
    }

    /// The cycle whose trigger is sent next: cycles that are entirely past are skipped.
    fn next_index(&self, schedule: &Schedule, cycle: Cycle, now: ClockTime) -> u64 {
        if now >= schedule.cycle(cycle.index + 1).due { schedule.containing(now).index } else { cycle.index }
    }

    /// The number of a cycle's trigger.
    fn number_of(&self, index: u64) -> u64 {
        if self.logger.line.has_numbers() { index + 1 } else { self.triggers.number() + 1 }
    }

    /// Sends a cycle's trigger now.
    fn send(&self, rt: &RtSection<'_>, index: u64) -> ClockTime {
        let number = self.number_of(index);
        let real = punctual_sys::clock::now(ClockId::Realtime);
        let sent = self.now(rt);
        let (monotonic_ns, real_ns) = (sent.0, real.0);
        let trigger = Trigger { number, index, monotonic_ns, real_ns, handed_on_ns: None, is_open: true };
        let given_up = self.triggers.send(trigger);
        let message = Message { is_answer: false, session: self.logger.session, number };
        // A trigger that cannot be sent has no answer: a network may be down for a while.
        let _ = self.logger.line.send(&message, None);
        if self.has_parts {
            self.triggers.handed_on(self.logger.line.sent_at_ns());
        }
        if let Some(given_up) = given_up {
            self.give_up(rt, &given_up);
        }
        if self.consecutive_timeouts.get() == 0 {
            self.unanswered_since_ns.set(sent.0);
        }
        if self.counts(&trigger) {
            count(&self.logger.counts.triggers);
        }
        sent
    }
}

impl Wait for LoggerWait {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        punctual_sys::clock::now(ClockId::Monotonic)
    }

    fn start(&self, _rt: &RtSection<'_>, _schedule: &Schedule) -> Result<Span, i32> {
        if matches!(self.logger.line, Line::Udp { .. }) {
            // Without a loopback device the time stays unknown.
            let _ = self.measure_itself();
        }
        Ok(Span(0))
    }

    fn trigger(&self, rt: &RtSection<'_>, schedule: &Schedule, cycle: Cycle) -> Result<Triggered, i32> {
        // All answers so far are in the log.
        self.logger.counts.settled.store(self.triggers.settled_cycle(), Release);
        if !matches!(self.logger.line, Line::Udp { .. })
            && let Some(late) = self.settle(rt, schedule, cycle)?
        {
            return Ok(Triggered::Late(late));
        }
        let index = self.next_index(schedule, cycle, self.now(rt));
        let due = schedule.cycle(index).due;
        if self.until.get() != due {
            self.timer.arm(due)?;
            self.until.set(due);
        }
        while self.now(rt) < due {
            let is_readable = if self.triggers.has_open() {
                self.logger.line.wait_before(&self.timer)
            } else {
                self.timer.wait().map(|()| false)
            };
            match is_readable.and_then(|is_readable| if is_readable { self.take_late(rt) } else { Ok(None) }) {
                Ok(Some(late)) => return Ok(Triggered::Late(late)),
                Ok(None) | Err(libc::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        let until = schedule.cycle(index + 1).due;
        // Before the trigger, so that none of it is part of an answer.
        self.timer.arm(until)?;
        self.until.set(until);
        Ok(Triggered::Cycle(Cycle { index, due: self.send(rt, index) }))
    }

    fn complete(&self, rt: &RtSection<'_>, _due: ClockTime) -> Result<Completion, i32> {
        loop {
            let is_next_due = || self.now(rt) >= self.until.get();
            if is_next_due() || !self.logger.line.wait_before(&self.timer)? {
                // It was a late transmit time stamp.
                if !is_next_due() {
                    continue;
                }
                self.consecutive_timeouts.set(self.consecutive_timeouts.get() + 1);
                let unanswered_ns = self.now(rt).0.saturating_sub(self.unanswered_since_ns.get());
                let is_peer_gone = self.consecutive_timeouts.get() >= Logger::MIN_CONSECUTIVE_TIMEOUTS
                    && unanswered_ns >= self.logger.peer_timeout.ns();
                return if is_peer_gone { Err(libc::ETIMEDOUT) } else { Ok(Completion::TimedOut) };
            }
            if let Some(trigger) = self.take(rt)? {
                let is_present = trigger.number == self.triggers.number();
                return Ok(if is_present {
                    Completion::Done
                } else {
                    Completion::Late(self.late_sample(rt, &trigger))
                });
            }
        }
    }

    /// Waits for outstanding answers, at most [`Logger::LATE_ANSWER_TIMEOUT`]; triggers still without one are given up.
    fn finish(&self, rt: &RtSection<'_>) -> Result<Option<Sample>, i32> {
        let until = ClockTime(self.triggers.present().monotonic_ns).plus(Logger::LATE_ANSWER_TIMEOUT);
        while self.triggers.has_open() && self.now(rt) < until {
            let left = Span(until.0.saturating_sub(self.now(rt).0));
            match self.logger.line.wait(left) {
                Ok(true) => {
                    if let Some(late) = self.take_late(rt)? {
                        return Ok(Some(late));
                    }
                }
                Ok(false) | Err(libc::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        self.triggers.close_all(|trigger| self.give_up(rt, &trigger));
        Ok(None)
    }

    /// An answer with a number is that to its own trigger, however late.
    fn misses_when_late(&self) -> bool {
        !self.logger.line.has_numbers()
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;
