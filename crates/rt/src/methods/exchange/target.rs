//! The target: waits for triggers and answers them.

use crate::line::{Line, LineEvent, Message};
use crate::link::{Target, add, count};
use crate::wire::Interrupt;
use crate::{Completion, LogWriter, RtSection, Sample, Triggered, Wait};
use punctual_model::{ClockId, ClockTime, Cycle, Schedule};
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;

/// Waits for triggers and answers each at once; the latency is the time from trigger to answer.
#[derive(Debug)]
pub(crate) struct TargetWait {
    target: Target,
    /// The peer, once it is known.
    peer: Cell<Option<SocketAddr>>,
    /// The trigger to answer.
    trigger: Cell<Option<(Message, Option<SocketAddr>)>>,
    /// The last trigger of this session.
    last: Cell<Option<(u64, u64)>>,
    /// Earliest time of the next answer by the long-term rate, ns.
    next_ns: Cell<u64>,
    waking: RefCell<Option<LogWriter>>,
}

/// Maximum number of answers in immediate succession.
const BURST: u64 = 32;

impl TargetWait {
    pub(in crate::methods) fn new(mut target: Target) -> TargetWait {
        let peer = if let Line::Udp { peer, .. } = &target.line { *peer } else { None };
        TargetWait {
            waking: RefCell::new(target.waking.take()),
            target,
            peer: Cell::new(peer),
            trigger: Cell::new(None),
            last: Cell::new(None),
            next_ns: Cell::new(0),
        }
    }

    /// The answer to an event received at `now`, if it calls for one.
    pub(super) fn accept(&self, event: LineEvent, now: ClockTime) -> Option<(Message, Option<SocketAddr>)> {
        let counts = &self.target.counts;
        let (message, from) = match event {
            LineEvent::Byte(byte) => (Message { is_answer: true, session: 0, number: byte.into() }, None),
            LineEvent::Interrupt(interrupt) => {
                add(&counts.missed, interrupt.unseen);
                (Message { is_answer: true, session: 0, number: interrupt.level.unwrap_or(true).into() }, None)
            }
            LineEvent::Message(message, from, _)
                // A peer is a machine: each of its measurements has another port.
                if !message.is_answer && self.peer.get().is_none_or(|peer| peer.ip() == from.ip()) =>
            {
                (message, Some(from))
            }
            LineEvent::Message(..) | LineEvent::Foreign => {
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
        let gap = self.target.min_interval_ns;
        let next = self.next_ns.get().max(now.0);
        if next - now.0 > gap.saturating_mul(BURST) {
            count(&counts.too_soon);
            return None;
        }
        self.next_ns.set(next.saturating_add(gap));
        Some((Message { is_answer: true, ..message }, from))
    }

    /// Records the time from the kernel's time stamp of a trigger, if it has one, to this thread's wake-up at `woke`.
    #[inline]
    fn note_waking(&self, rt: &RtSection<'_>, event: LineEvent, cycle: u64, woke: ClockTime) {
        let LineEvent::Interrupt(Interrupt { at_ns: Some(at_ns), .. }) = event else { return };
        let Ok(mut waking) = self.waking.try_borrow_mut() else { return };
        if let Some(log) = waking.as_mut() {
            log.push(rt, Sample { cycle, latency: woke.since(ClockTime(at_ns)) });
        }
    }
}

impl Wait for TargetWait {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        punctual_sys::clock::now(ClockId::Monotonic)
    }

    fn trigger(&self, rt: &RtSection<'_>, _schedule: &Schedule, cycle: Cycle) -> Result<Triggered, i32> {
        loop {
            let event = match self.target.line.receive() {
                Err(libc::EINTR) => continue,
                event => event?,
            };
            let woke = self.now(rt);
            if let Some(trigger) = self.accept(event, woke) {
                self.trigger.set(Some(trigger));
                self.note_waking(rt, event, cycle.index, woke);
                return Ok(Triggered::Cycle(Cycle { due: woke, ..cycle }));
            }
        }
    }

    #[inline]
    fn complete(&self, _rt: &RtSection<'_>, _due: ClockTime) -> Result<Completion, i32> {
        let Some((answer, to)) = self.trigger.get() else { return Ok(Completion::Done) };
        match self.target.line.send(&answer, to) {
            // The peer is gone, or cannot be reached now.
            Err(libc::ECONNREFUSED | libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENOBUFS | libc::ENETDOWN)
            | Ok(()) => Ok(Completion::Done),
            Err(errno) => Err(errno),
        }
    }

    fn misses_when_late(&self) -> bool {
        false
    }
}
