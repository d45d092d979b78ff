//! Waiting for interrupts of devices whose due times are known to the nanosecond.

use super::cobalt::{CobaltOutcome, CobaltSleep};
use crate::link::{DMA_COMMAND, DmaTimer, Interrupts};
use crate::{Completion, RtSection, Sample, Wait};
use punctual_model::{ClockId, ClockTime, Cycle, Link, Policy, Schedule, Span};
use punctual_sys::cobalt::{self, rtdm};
use punctual_sys::{errno, registers::time_stamp_counter};
use std::cell::Cell;
use std::io::{self, Read};

/// Further registers of `edu`: the DMA.
const DMA_SOURCE: usize = 0x80;
const DMA_DESTINATION: usize = 0x88;
const DMA_COUNT: usize = 0x90;
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
    /// The thread, where Cobalt schedules it.
    cobalt: Option<CobaltSleep>,
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
    /// Its interrupts, where they are those of an RTDM device.
    rtdm: Option<rtdm::File>,
    /// Due time, by the counter.
    due: Cell<u64>,
    /// Whether the due time is known: not when a millisecond ended during the start.
    is_known: Cell<bool>,
}

impl Turn {
    /// Opens the device in this thread, where it is one of RTDM. Errors: in one line: the device that cannot be opened.
    #[expect(clippy::disallowed_macros, reason = "runs before the barrier")]
    fn new(timer: DmaTimer) -> io::Result<Turn> {
        let mut turn = Turn { timer, rtdm: None, due: Cell::new(0), is_known: Cell::new(false) };
        if let Interrupts::Cobalt(path) = &turn.timer.interrupts {
            // The driver forgets what came before.
            let failed = |errno| {
                let err = io::Error::from_raw_os_error(errno);
                io::Error::other(format!("cannot open {}: {err}", path.to_string_lossy()))
            };
            turn.rtdm = Some(rtdm::File::open(path).map_err(failed)?);
        }
        Ok(turn)
    }

    /// Acknowledges the interrupt and re-enables it. The driver of an RTDM device has done both.
    fn acknowledge(&self) -> Result<(), i32> {
        if self.rtdm.is_some() {
            return Ok(());
        }
        self.timer.acknowledge();
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
        match (&self.rtdm, &self.timer.interrupts) {
            (Some(device), _) => device.read::<4>().map(drop),
            (None, Interrupts::Linux(file)) => { file }.read(&mut [0; 4]).map(drop).map_err(errno),
            (None, Interrupts::Cobalt(_)) => Err(libc::EBADF),
        }
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
    /// Binds this process to Cobalt, where the interrupts are out of band. Errors: in one line: why Cobalt refuses, or
    /// a device that cannot be used.
    pub(super) fn new(timers: Vec<DmaTimer>, policy: Policy) -> io::Result<Timers> {
        let is_oob = timers.iter().any(|timer| matches!(timer.interrupts, Interrupts::Cobalt(_)));
        let cobalt = is_oob.then(|| CobaltSleep::new(policy.priority().unwrap_or(0), false)).transpose()?;
        Ok(Timers {
            devices: timers.into_iter().map(Turn::new).collect::<io::Result<_>>()?,
            cobalt,
            ahead: Cell::new(0),
            current: Cell::new(None),
            last: Cell::new(None),
            failed: Cell::new(0),
        })
    }

    /// What Cobalt counted, as [`CobaltSleep::outcome`].
    pub(super) fn cobalt_outcome(&self) -> Option<CobaltOutcome> {
        self.cobalt.as_ref().and_then(CobaltSleep::outcome)
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
    fn start(&self, rt: &RtSection<'_>, schedule: &Schedule) -> Result<Span, i32> {
        if let Some(thread) = &self.cobalt {
            thread.start(rt, schedule)?;
        }
        self.ahead.set(punctual_sys::clock::monotonic().0.wrapping_sub(time_stamp_counter()));
        for (index, device) in (0..).zip(&self.devices) {
            let due = schedule.cycle(index).due.plus(Span(schedule.period.ns() / 2));
            let start = ClockTime(due.0.saturating_sub(Link::DEVICE_DELAY.ns()));
            let sleep = || match self.cobalt {
                Some(_) => cobalt::sleep_until(start.0),
                None => punctual_sys::clock::sleep_until(ClockId::Monotonic, start),
            };
            while let Err(errno) = sleep() {
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

    fn finish(&self, rt: &RtSection<'_>) -> Result<Option<Sample>, i32> {
        self.cobalt.as_ref().map_or(Ok(None), |thread| thread.finish(rt))
    }

    fn misses_when_late(&self) -> bool {
        false
    }
}
