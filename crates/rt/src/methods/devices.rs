//! Waiting for interrupts of devices whose due times are known to the nanosecond.

use crate::link::DmaTimer;
use crate::{Completion, RtSection, Wait};
use model::{ClockId, ClockTime, Cycle, Link, Schedule, Span};
use std::cell::Cell;
use std::io::Read;
use sys::{errno, registers::time_stamp_counter};

/// Registers of `edu` (QEMU, docs/specs/edu.rst): raised interrupts, their acknowledgment, the DMA.
const INTERRUPT_STATUS: usize = 0x24;
const ACKNOWLEDGE: usize = 0x64;
const DMA_SOURCE: usize = 0x80;
const DMA_DESTINATION: usize = 0x88;
const DMA_COUNT: usize = 0x90;
const DMA_COMMAND: usize = 0x98;
/// The DMA copies four bytes of the guest's memory, which is only read, into the device's own.
const FROM: u64 = 0x1000;
const TO: u64 = 0x40000;
const BYTES: u64 = 4;
const START_AND_INTERRUPT: u64 = 0b101;

const MILLISECOND: u64 = 1_000_000;
/// Time before the end of a millisecond in which no device is started: it might be due one millisecond later.
const START_MARGIN: u64 = 20_000;

/// Devices that take turns, each due [`Link::DEVICE_DELAY`] after the millisecond in which it was started.
#[derive(Debug)]
pub(crate) struct Timers {
    devices: Vec<Turn>,
    /// Offset of the clock from the counter, ns.
    ahead: Cell<u64>,
    /// Index of the device that is waited for.
    current: Cell<Option<usize>>,
    /// The cycle of the last device that was waited for.
    last: Cell<Option<u64>>,
    /// Errno of a failure where no error can be returned, else 0.
    failed: Cell<i32>,
}

#[derive(Debug)]
struct Turn {
    timer: DmaTimer,
    /// Due time, by the counter.
    due: Cell<u64>,
    /// Whether the due time is known: not when a millisecond ended during the start.
    is_known: Cell<bool>,
}

impl Turn {
    /// Acknowledges the interrupt and re-enables it.
    fn acknowledge(&self) -> Result<(), i32> {
        let registers = &self.timer.registers;
        registers.write_u32(ACKNOWLEDGE, registers.read_u32(INTERRUPT_STATUS).unwrap_or(0));
        // The driver has disabled it (uio_pci_generic).
        self.timer.turn_on().map_err(errno)
    }

    /// Starts the device.
    fn start(&self) {
        while time_stamp_counter() % MILLISECOND > MILLISECOND - START_MARGIN {
            std::hint::spin_loop();
        }
        let registers = &self.timer.registers;
        registers.write_u64(DMA_SOURCE, FROM);
        registers.write_u64(DMA_DESTINATION, TO);
        registers.write_u64(DMA_COUNT, BYTES);
        let before = time_stamp_counter() / MILLISECOND;
        registers.write_u64(DMA_COMMAND, START_AND_INTERRUPT);
        self.is_known.set(before == time_stamp_counter() / MILLISECOND);
        self.due.set(before * MILLISECOND + Link::DEVICE_DELAY.ns());
    }

    /// Waits for the interrupt.
    #[inline]
    fn wait(&self) -> Result<(), i32> {
        (&self.timer.interrupts).read(&mut [0; 4]).map(drop).map_err(errno)
    }

    /// Consumes an interrupt that is no sample.
    fn pass(&self) -> Result<(), i32> {
        while let Err(errno) = self.wait() {
            if errno != libc::EINTR {
                return Err(errno);
            }
        }
        self.acknowledge()?;
        self.start();
        Ok(())
    }
}

impl Timers {
    pub(super) fn new(timers: Vec<DmaTimer>) -> Timers {
        let turn = |timer| Turn { timer, due: Cell::new(0), is_known: Cell::new(false) };
        Timers {
            devices: timers.into_iter().map(turn).collect(),
            ahead: Cell::new(0),
            current: Cell::new(None),
            last: Cell::new(None),
            failed: Cell::new(0),
        }
    }

    /// Converts an instant of the counter to the clock.
    #[inline]
    fn by_clock(&self, counted: u64) -> ClockTime {
        ClockTime(counted.wrapping_add(self.ahead.get()))
    }

    /// The device that is due next, or has been due longest, and its cycle. The latency of an answer is thus known
    /// whatever delayed the thread before. Of two devices in one cycle the second is passed over.
    fn next_device(&self, schedule: &Schedule) -> Result<(usize, Cycle), i32> {
        if let Some(answered) = self.current.take().and_then(|current| self.devices.get(current)) {
            answered.acknowledge()?;
            answered.start();
        }
        loop {
            let next = self.devices.iter().enumerate().min_by_key(|(_, device)| device.due.get());
            let (index, device) = next.ok_or(libc::ENODEV)?;
            let cycle = schedule.containing(self.by_clock(device.due.get()));
            if self.last.get() < Some(cycle.index) && device.is_known.get() {
                self.last.set(Some(cycle.index));
                return Ok((index, cycle));
            }
            device.pass()?;
        }
    }
}

impl Wait for Timers {
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        self.by_clock(time_stamp_counter())
    }

    /// Starts one device after the other, so that each is due in the middle of a period.
    fn start(&self, _rt: &RtSection<'_>, schedule: &Schedule) -> Result<Span, i32> {
        self.ahead.set(sys::clock::monotonic().0.wrapping_sub(time_stamp_counter()));
        for (index, device) in (0..).zip(&self.devices) {
            let due = schedule.cycle(index).due.plus(Span(schedule.period.ns() / 2));
            let start = ClockTime(due.0.saturating_sub(Link::DEVICE_DELAY.ns()));
            while let Err(errno) = sys::clock::sleep_until(ClockId::Monotonic, start) {
                if errno != libc::EINTR {
                    return Err(errno);
                }
            }
            device.acknowledge()?;
            device.start();
        }
        Ok(Span(0))
    }

    fn next(&self, _rt: &RtSection<'_>, schedule: &Schedule, cycle: Cycle) -> Cycle {
        match self.next_device(schedule) {
            Ok((index, next)) => {
                self.current.set(Some(index));
                next
            }
            Err(errno) => {
                self.failed.set(errno);
                cycle
            }
        }
    }

    #[inline]
    fn complete(&self, _rt: &RtSection<'_>, _due: ClockTime) -> Result<Completion, i32> {
        match (self.failed.get(), self.current.get().and_then(|current| self.devices.get(current))) {
            (0, Some(device)) => device.wait().map(|()| Completion::Done),
            (0, None) => Err(libc::ENODEV),
            (errno, _) => Err(errno),
        }
    }
}
