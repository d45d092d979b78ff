//! Triggers and answers over a line: who sends triggers and waits for their answers, and who answers.

mod one;

use crate::clock::NOTHING_CAME;
use crate::line::{Heard, Line, Message};
use crate::link::{Logger, Target, add, count};
use crate::sys::{self, timerfd::Timerfd};
use crate::{Clock, LogWriter, RtSection, Sample};
use model::{ClockId, ClockTime, Cycle, Nanos, Schedule, Span};
use std::cell::{Cell, RefCell};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering::Relaxed;

/// How many triggers before the present one are remembered: an answer to an older one is taken for a duplicate.
const REMEMBERED: u64 = 64;
/// Exchanges of a logger with itself.
const OWN_EXCHANGES: usize = 201;
/// The longest that one of them may take.
const OWN_LIMIT: Span = Span(10_000_000);

/// What an answer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// The present trigger.
    Present,
    /// An earlier one, which had none.
    Late,
    /// One that was answered already.
    Duplicate,
    /// None of these.
    Foreign,
}

/// Sends a trigger when it is due and waits for its answer until the next one is.
#[derive(Debug)]
pub(crate) struct Asking {
    logger: Logger,
    /// The present trigger.
    number: Cell<u64>,
    /// Whether it still has no answer.
    is_open: Cell<bool>,
    /// When the next one is due, which `timer` is armed for.
    until: Cell<ClockTime>,
    timer: Timerfd,
    /// A bit for each of the [`REMEMBERED`] triggers before it, the last one lowest: whether it still has no answer.
    unanswered: Cell<u64>,
    /// Triggers without an answer since the last that had one.
    silence: Cell<u64>,
    /// When it was sent, by both clocks, and when the kernel handed it on, ns.
    sent: Cell<Sent>,
    parts: RefCell<Option<[LogWriter; 3]>>,
    has_parts: bool,
}

/// When a trigger was sent, ns.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    index: u64,
    monotonic_ns: u64,
    real_ns: u64,
    /// When the kernel handed it to the network, by `CLOCK_REALTIME`.
    handed_on_ns: Option<u64>,
}

impl Asking {
    pub(super) fn new(mut logger: Logger) -> io::Result<Asking> {
        Ok(Asking {
            timer: Timerfd::new(ClockId::Monotonic)?,
            has_parts: logger.parts.is_some(),
            parts: RefCell::new(logger.parts.take()),
            sent: Cell::new(Sent::default()),
            number: Cell::new(if logger.line.has_numbers() { 0 } else { logger.tries }),
            is_open: Cell::new(false),
            logger,
            until: Cell::new(ClockTime(0)),
            unanswered: Cell::new(0),
            silence: Cell::new(0),
        })
    }

    /// What something that came is for, while trigger `number` is waited for.
    #[inline]
    fn judge(&self, heard: Heard) -> Answer {
        let ago = match heard {
            Heard::Message(message, from, _) => {
                let is_peer = matches!(&self.logger.line, Line::Udp { peer: Some(peer), .. } if *peer == from);
                if !(is_peer && message.is_answer && message.session == self.logger.session) {
                    return Answer::Foreign;
                }
                self.number.get().wrapping_sub(message.number)
            }
            Heard::Byte(byte) => {
                let [.., present] = self.number.get().to_be_bytes();
                u64::from(present.wrapping_sub(byte))
            }
            Heard::Interrupt(interrupt) => return self.judge_interrupt(interrupt),
            Heard::Foreign => return Answer::Foreign,
        };
        match (ago, self.bit(ago)) {
            (0, _) => Answer::Present,
            (_, Some(bit)) if self.unanswered.get() & bit != 0 => {
                self.unanswered.set(self.unanswered.get() & !bit);
                Answer::Late
            }
            // Noise on a serial line is a byte like any other.
            (_, None) if matches!(heard, Heard::Byte(_)) => Answer::Foreign,
            // Of the future.
            _ if ago > u64::MAX / 2 => Answer::Foreign,
            _ => Answer::Duplicate,
        }
    }

    /// The bit of the trigger that was sent `ago` triggers before the present one; `None` for one that is not remembered.
    fn bit(&self, ago: u64) -> Option<u64> {
        (1..=REMEMBERED).contains(&ago).then(|| 1 << (ago - 1))
    }

    /// Goes on to trigger `number`; whether the present one was answered is known.
    fn go_on(&self, number: u64, was_answered: bool) {
        let by = number.saturating_sub(self.number.get());
        let shifted = self.unanswered.get().checked_shl(u32::try_from(by).unwrap_or(u32::MAX)).unwrap_or(0);
        let bit = self.bit(by).filter(|_| !was_answered && self.number.get() > 0).unwrap_or(0);
        self.unanswered.set(shifted | bit);
        self.number.set(number);
    }

    /// Notes the parts of an answer, where the kernel has said when its datagrams went and came: until the trigger was handed to
    /// the network, from then until the answer came from it, and from then until this thread has it.
    #[inline]
    fn note_parts(&self, rt: &RtSection<'_>, heard: Heard) {
        let sent = self.sent.get();
        let Heard::Message(_, _, Some(came_ns)) = heard else { return };
        let Some(handed_on_ns) = sent.handed_on_ns else { return };
        let Ok(mut parts) = self.parts.try_borrow_mut() else { return };
        let Some([sending, away, waking]) = parts.as_mut().filter(|_| self.counts()) else { return };
        let latency = self.now(rt).0.saturating_sub(sent.monotonic_ns);
        let parts = (
            handed_on_ns.checked_sub(sent.real_ns),
            came_ns.checked_sub(handed_on_ns),
            // A clock that was set in between gives parts that do not fit into the whole.
            came_ns.checked_sub(sent.real_ns).and_then(|before| latency.checked_sub(before)),
        );
        let (Some(for_sending), Some(for_the_way), Some(for_waking)) = parts else { return };
        for (log, ns) in [(sending, for_sending), (away, for_the_way), (waking, for_waking)] {
            log.push(rt, Sample { cycle: sent.index, latency: Nanos(ns.cast_signed()) });
        }
    }

    /// Whether the present trigger is of the measured time.
    fn counts(&self) -> bool {
        self.sent.get().index >= self.logger.first
    }

    /// Judges something that came, and counts it unless it is the answer to the present trigger.
    #[inline]
    fn take(&self, heard: Heard) -> Answer {
        let answer = self.judge(heard);
        if self.counts() {
            let counts = &self.logger.counts;
            match answer {
                Answer::Present => {}
                Answer::Late => count(&counts.late),
                Answer::Duplicate => count(&counts.duplicate),
                Answer::Foreign => count(&counts.foreign),
            }
            if let Heard::Interrupt(interrupt) = heard {
                add(&counts.foreign, interrupt.unseen);
            }
        }
        answer
    }

    /// Exchanges messages with itself over the loop-back device, and says how long that takes: all that the logger does,
    /// without the way and without the target.
    fn measure_itself(&self) -> io::Result<()> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let itself = socket.local_addr()?;
        let line = Line::Udp { socket, peer: Some(itself) };
        let message = Message { is_answer: true, session: self.logger.session, number: 0 };
        let mut took = [0; OWN_EXCHANGES];
        for took in &mut took {
            let limit = sys::clock::now(ClockId::Monotonic).plus(OWN_LIMIT);
            self.timer.arm(limit).map_err(io::Error::from_raw_os_error)?;
            let began = sys::clock::monotonic();
            let exchange = || -> Result<bool, i32> {
                line.send(&message, None)?;
                Ok(line.wait_before(&self.timer)? && line.hear()? != Heard::Foreign)
            };
            match exchange() {
                Ok(true) => *took = sys::clock::monotonic().0.saturating_sub(began.0),
                Ok(false) => return Err(io::ErrorKind::TimedOut.into()),
                Err(errno) => return Err(io::Error::from_raw_os_error(errno)),
            }
        }
        took.sort_unstable();
        let counts = &self.logger.counts;
        let shown = [took.first(), took.get(OWN_EXCHANGES / 2), took.last()];
        for (to, ns) in counts.own_ns.iter().zip(shown) {
            to.store(ns.copied().unwrap_or(0), Relaxed);
        }
        counts.own_exchanges.store(OWN_EXCHANGES as u64, Relaxed);
        Ok(())
    }
}

impl Clock for Asking {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        sys::clock::now(ClockId::Monotonic)
    }

    fn start(&self, _rt: &RtSection<'_>, _schedule: &Schedule) -> Result<Span, i32> {
        if matches!(self.logger.line, Line::Udp { .. }) {
            // Without a loop-back device it stays unknown.
            let _ = self.measure_itself();
        }
        Ok(Span(0))
    }

    fn begin(&self, rt: &RtSection<'_>, schedule: &Schedule, cycle: Cycle) -> Result<Cycle, i32> {
        let has_numbers = self.logger.line.has_numbers();
        if !has_numbers {
            self.settle(rt)?;
        }
        let now = self.now(rt);
        // Triggers whose time is wholly over are not sent at all.
        let index =
            if now >= schedule.cycle(cycle.index + 1).due { schedule.containing(now).index } else { cycle.index };
        self.go_on(if has_numbers { index + 1 } else { self.number.get() + 1 }, !self.is_open.get());
        let due = schedule.cycle(index).due;
        if self.until.get() != due {
            self.timer.arm(due)?;
        }
        while self.now(rt) < due {
            if let Err(errno) = self.timer.wait()
                && errno != libc::EINTR
            {
                return Err(errno);
            }
        }
        let until = schedule.cycle(index + 1).due;
        // Before the trigger: none of it is part of an answer.
        self.timer.arm(until)?;
        self.until.set(until);
        let message = Message { is_answer: false, session: self.logger.session, number: self.number.get() };
        let real = sys::clock::now(ClockId::Realtime);
        let sent = self.now(rt);
        self.is_open.set(true);
        // What cannot be sent has no answer, and is missed as such: a network may be away for a while.
        let _ = self.logger.line.send(&message, None);
        let handed_on_ns = if self.has_parts { self.logger.line.sent_at_ns() } else { None };
        self.sent.set(Sent { index, monotonic_ns: sent.0, real_ns: real.0, handed_on_ns });
        if self.counts() {
            count(&self.logger.counts.triggers);
        }
        Ok(Cycle { index, due: sent })
    }

    fn sleep_until(&self, rt: &RtSection<'_>, _due: ClockTime) -> Result<(), i32> {
        loop {
            let is_next_due = || self.now(rt) >= self.until.get();
            if is_next_due() || !self.logger.line.wait_before(&self.timer)? {
                // It was the time of something sent that came late.
                if !is_next_due() {
                    continue;
                }
                self.silence.set(self.silence.get() + 1);
                let is_over = self.silence.get() >= self.logger.patience;
                return Err(if is_over { libc::ETIMEDOUT } else { NOTHING_CAME });
            }
            let heard = self.logger.line.hear()?;
            if self.take(heard) == Answer::Present {
                self.silence.set(0);
                self.is_open.set(false);
                match heard {
                    Heard::Interrupt(interrupt) => self.note_way(rt, interrupt),
                    _ => self.note_parts(rt, heard),
                }
                return Ok(());
            }
        }
    }
}

/// Waits for triggers and answers each at once; what it takes for that is the latency.
#[derive(Debug)]
pub(crate) struct Answering {
    target: Target,
    /// The other end, once it is known.
    peer: Cell<Option<SocketAddr>>,
    /// The trigger to answer.
    trigger: Cell<Option<(Message, Option<SocketAddr>)>>,
    /// The last one of this session.
    last: Cell<Option<(u64, u64)>>,
    /// When the next answer may be given by the long-term rate, ns.
    next_ns: Cell<u64>,
    waking: RefCell<Option<LogWriter>>,
}

/// So many answers may follow each other at once.
const BURST: u64 = 32;

impl Answering {
    pub(super) fn new(mut target: Target) -> Answering {
        let peer = if let Line::Udp { peer, .. } = &target.line { *peer } else { None };
        Answering {
            waking: RefCell::new(target.waking.take()),
            target,
            peer: Cell::new(peer),
            trigger: Cell::new(None),
            last: Cell::new(None),
            next_ns: Cell::new(0),
        }
    }

    /// What to answer, of what came at `now`.
    fn accept(&self, heard: Heard, now: ClockTime) -> Option<(Message, Option<SocketAddr>)> {
        let counts = &self.target.counts;
        let (message, from) = match heard {
            Heard::Byte(byte) => (Message { is_answer: true, session: 0, number: byte.into() }, None),
            Heard::Interrupt(interrupt) => {
                add(&counts.missed, interrupt.unseen);
                (Message { is_answer: true, session: 0, number: interrupt.level.unwrap_or(true).into() }, None)
            }
            Heard::Message(message, from, _)
                // A peer is a machine: each of its measurements has another port.
                if !message.is_answer && self.peer.get().is_none_or(|peer| peer.ip() == from.ip()) =>
            {
                (message, Some(from))
            }
            Heard::Message(..) | Heard::Foreign => {
                count(&counts.foreign);
                return None;
            }
        };
        if from.is_some() {
            let before = self.last.get().filter(|(session, _)| *session == message.session).map(|(_, number)| number);
            if before.is_some_and(|before| message.number <= before) {
                count(&counts.duplicate);
                return None;
            }
            add(&counts.missed, before.map_or(0, |before| message.number - before - 1));
            self.last.set(Some((message.session, message.number)));
            self.peer.set(self.peer.get().or(from));
        }
        count(&counts.triggers);
        let gap = self.target.least_gap_ns;
        let next = self.next_ns.get().max(now.0);
        if next - now.0 > gap.saturating_mul(BURST) {
            count(&counts.too_soon);
            return None;
        }
        self.next_ns.set(next.saturating_add(gap));
        Some((Message { is_answer: true, ..message }, from))
    }
}

impl Clock for Answering {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        sys::clock::now(ClockId::Monotonic)
    }

    fn begin(&self, rt: &RtSection<'_>, _schedule: &Schedule, cycle: Cycle) -> Result<Cycle, i32> {
        loop {
            let heard = match self.target.line.hear() {
                Err(libc::EINTR) => continue,
                heard => heard?,
            };
            let woke = self.now(rt);
            if let Some(trigger) = self.accept(heard, woke) {
                self.trigger.set(Some(trigger));
                self.note_waking(rt, heard, cycle.index, woke);
                return Ok(Cycle { due: woke, ..cycle });
            }
        }
    }

    #[inline]
    fn sleep_until(&self, _rt: &RtSection<'_>, _due: ClockTime) -> Result<(), i32> {
        let Some((answer, to)) = self.trigger.get() else { return Ok(()) };
        match self.target.line.send(&answer, to) {
            // Whoever asked has gone, or cannot be reached now.
            Err(libc::ECONNREFUSED | libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENOBUFS | libc::ENETDOWN) => Ok(()),
            sent => sent,
        }
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;
