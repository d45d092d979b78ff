//! Sleeping in a guest, with one due time that the lab can move earlier, in any number of copies of the guest.

use super::sleep::Sleep;
use crate::{Completion, RtSection, Triggered, Wait};
use punctual_model::{ClockId, ClockTime, Cycle, Schedule};
use punctual_sys::guest_ports::{END, MOVE_FILE, MOVED, PAUSE, RESULT};
use punctual_sys::port::{FIRMWARE, Ports};
use std::cell::Cell;
use std::io;

/// `clock_nanosleep(2)`, of which one cycle is special: before its wait the guest pauses, so that it can be saved, and
/// waits until so much earlier as it reads. What came before is the same whatever it reads. Its latency still counts
/// from the due time of the schedule.
#[derive(Debug)]
pub(crate) struct Movable {
    sleep: Sleep,
    /// Index of the special cycle.
    cycle: u64,
    firmware: Ports,
    /// The ports for pause, result and end, which are not adjacent.
    others: [Ports; 3],
    selector: u16,
    /// By how much the present wait is earlier, ns.
    earlier_ns: Cell<u64>,
    /// The due time after whose wake-up the guest ends.
    last: Cell<Option<ClockTime>>,
    /// The last reading of the clock.
    seen: Cell<ClockTime>,
}

impl Movable {
    /// Errors: outside a guest of the lab that was started for this.
    pub(super) fn new(clock: ClockId, cycle: u64) -> io::Result<Movable> {
        let firmware = Ports::allow(FIRMWARE)?;
        let (selector, _) = firmware.firmware_file(MOVE_FILE).ok_or(io::ErrorKind::NotFound)?;
        let allow = |port| Ports::allow(port..=port);
        let others = [allow(PAUSE)?, allow(RESULT)?, allow(END)?];
        let (earlier_ns, last, seen) = (Cell::new(0), Cell::new(None), Cell::new(ClockTime(0)));
        Ok(Movable { sleep: Sleep(clock), cycle, firmware, others, selector, earlier_ns, last, seen })
    }

    /// Writes the result line and ends the guest.
    fn end(&self, due: ClockTime, woke: ClockTime) {
        let [_, result, end] = &self.others;
        let write = |byte| result.write_byte(RESULT, byte);
        let digits = |time: ClockTime| (0..16).rev().map(move |digit| hexadecimal(time.0 >> (4 * digit)));
        MOVED.bytes().for_each(write);
        for (time, end) in [(due, b' '), (woke, b' '), (self.seen.get(), b'\n')] {
            digits(time).for_each(write);
            write(end);
        }
        end.write_byte(END, 0);
    }
}

/// The last hexadecimal digit of `number`.
fn hexadecimal(number: u64) -> u8 {
    match (number & 0xf).to_le_bytes()[0] {
        digit @ 0..=9 => b'0' + digit,
        digit => b'a' + digit - 10,
    }
}

impl Wait for Movable {
    #[inline]
    fn now(&self, rt: &RtSection<'_>) -> ClockTime {
        let now = self.sleep.now(rt);
        if let Some(due) = self.last.take() {
            self.end(due, now);
        }
        self.seen.set(now);
        now
    }

    #[inline]
    fn trigger(&self, _rt: &RtSection<'_>, _schedule: &Schedule, cycle: Cycle) -> Result<Triggered, i32> {
        // Each cycle does the same work: the one that is moved is that of a guest without, to the instruction.
        let is_special = cycle.index == self.cycle;
        let [pause, ..] = &self.others;
        pause.write_byte(PAUSE, u8::from(is_special));
        self.firmware.select_firmware_file(self.selector);
        let earlier_ns = u64::from_le_bytes([(); 8].map(|()| self.firmware.next_firmware_byte()));
        self.earlier_ns.set(earlier_ns * u64::from(is_special));
        let is_last = self.firmware.next_firmware_byte() == 1;
        self.last.set((is_special & is_last).then_some(cycle.due));
        Ok(Triggered::Cycle(cycle))
    }

    #[inline]
    fn complete(&self, rt: &RtSection<'_>, due: ClockTime) -> Result<Completion, i32> {
        self.sleep.complete(rt, ClockTime(due.0.saturating_sub(self.earlier_ns.get())))
    }
}
