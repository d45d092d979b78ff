//! Lines whose triggers and answers are interrupts, which carry no number and at most the level of a wire.

use punctual_model::Span;
use punctual_sys::poll::{self, Ready};
use punctual_sys::{errno, gpio, parport};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

/// Data of an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupt {
    /// Whether the wire went high; `None` where the level is unknown.
    pub level: Option<bool>,
    /// Lower bound of the interrupts since the previous one that were not seen individually.
    pub unseen: u64,
    /// Start of the kernel's interrupt handler, ns of `CLOCK_MONOTONIC`; `None` where it is unknown.
    pub at_ns: Option<u64>,
}

/// An input line of a GPIO chip, which interrupts, and an output line.
#[derive(Debug)]
pub struct GpioLines {
    pub(crate) file: File,
    /// The number and the direction of the last edge.
    last: Cell<Option<(u32, bool)>>,
}

impl GpioLines {
    /// Both lines, as requested; the output is low.
    pub fn new(file: File) -> GpioLines {
        GpioLines { file, last: Cell::new(None) }
    }

    /// Sets the output line.
    #[inline]
    pub(crate) fn set(&self, is_high: bool) -> Result<(), i32> {
        gpio::set(&self.file, is_high)
    }

    /// Waits for an edge of the input line.
    #[inline]
    pub(crate) fn receive(&self) -> Result<Interrupt, i32> {
        let gpio::Edge { at_ns, is_rising, number } = gpio::edge(&self.file)?;
        let unseen = self.last.get().map_or(0, |last| unseen(last, (number, is_rising)));
        self.last.set(Some((number, is_rising)));
        Ok(Interrupt { level: Some(is_rising), unseen, at_ns: Some(at_ns) })
    }
}

/// Edges between two successive ones, by their numbers and directions: those that the kernel saw and dropped for lack
/// of room, and one more where the directions do not alternate, because two edges were so close that they were one
/// interrupt.
fn unseen((before, was_rising): (u32, bool), (number, is_rising): (u32, bool)) -> u64 {
    let dropped = u64::from(number.wrapping_sub(before).wrapping_sub(1));
    let takes_turns = (was_rising == is_rising) == (dropped % 2 == 1);
    dropped + u64::from(!takes_turns)
}

/// A parallel port in exclusive use: its first data line is set, its nACK line interrupts.
#[derive(Debug)]
pub struct Parport {
    pub(crate) file: File,
}

/// Timeout after which the wait for an interrupt that may never come is repeated.
const POLL_TIMEOUT: Span = Span(3_600_000_000_000);

impl Parport {
    /// The port, as claimed.
    pub fn new(file: File) -> Parport {
        Parport { file }
    }

    /// Sends a pulse. The peer's port interrupts at its beginning, where its nACK rises.
    #[inline]
    pub(crate) fn pulse(&self) -> Result<(), i32> {
        parport::set_data(&self.file, 1)?;
        parport::set_data(&self.file, 0)
    }

    /// Waits for an interrupt.
    #[inline]
    pub(crate) fn receive(&self) -> Result<Interrupt, i32> {
        loop {
            if let Some(others) = parport::take_interrupts(&self.file)?.checked_sub(1) {
                return Ok(Interrupt { level: None, unseen: others, at_ns: None });
            }
            // The port is gone when poll returns something other than readable: take_interrupts then fails.
            let _: Ready = poll::readable(self.file.as_fd(), POLL_TIMEOUT)?;
        }
    }
}

/// A device that interrupts by itself (Documentation/driver-api/uio-howto.rst).
#[derive(Debug)]
pub struct UioDevice {
    pub(crate) file: File,
    /// Whether the driver disables each interrupt until it is re-enabled.
    is_held_off: bool,
    /// The interrupt count at the last one.
    last: Cell<Option<u32>>,
}

impl UioDevice {
    /// Enables the device's interrupt, where its driver supports that. Errors: `EIO` when the device has no interrupt.
    pub fn new(file: File) -> io::Result<UioDevice> {
        let mut device = UioDevice { file, is_held_off: true, last: Cell::new(None) };
        match device.turn_on() {
            Ok(()) => {}
            Err(libc::ENOSYS) => device.is_held_off = false,
            Err(errno) => return Err(io::Error::from_raw_os_error(errno)),
        }
        Ok(device)
    }

    /// A device whose interrupts a test counts.
    #[cfg(not(loom))]
    #[cfg(test)]
    pub(crate) fn counted_in(file: File) -> UioDevice {
        UioDevice { file, is_held_off: false, last: Cell::new(None) }
    }

    /// Re-enables the interrupt.
    #[inline]
    pub(crate) fn turn_on(&self) -> Result<(), i32> {
        if !self.is_held_off {
            return Ok(());
        }
        let written = (&mut &self.file).write(&1_i32.to_ne_bytes());
        written.map(drop).map_err(errno)
    }

    /// Waits for an interrupt.
    #[inline]
    pub(crate) fn receive(&self) -> Result<Interrupt, i32> {
        let mut count = [0; 4];
        let len = (&mut &self.file).read(&mut count).map_err(errno)?;
        if len < count.len() {
            return Err(libc::ENODEV);
        }
        let count = u32::from_ne_bytes(count);
        let unseen = self.last.get().map_or(0, |last| count.wrapping_sub(last).wrapping_sub(1));
        self.last.set(Some(count));
        Ok(Interrupt { level: None, unseen: unseen.into(), at_ns: None })
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;

    #[test]
    fn edges_that_were_not_seen_follow_from_numbers_and_directions() {
        const UP: bool = true;
        const DOWN: bool = false;
        for (before, now, expected) in [
            ((1, UP), (2, DOWN), 0),
            ((1, UP), (2, UP), 1),
            ((1, UP), (3, UP), 1),
            ((1, UP), (3, DOWN), 2),
            ((1, DOWN), (4, UP), 2),
            ((u32::MAX, DOWN), (0, UP), 0),
        ] {
            assert_eq!(unseen(before, now), expected, "{before:?} {now:?}");
        }
    }

    #[test]
    fn interrupts_of_a_device_are_counted_by_its_driver() {
        let (reader, mut writer) = io::pipe().unwrap();
        for count in [u32::MAX, 0, 3] {
            writer.write_all(&count.to_ne_bytes()).unwrap();
        }
        drop(writer);
        let device = UioDevice::counted_in(OwnedFd::from(reader).into());
        let came = |unseen| Ok(Interrupt { level: None, unseen, at_ns: None });
        assert_eq!([(); 4].map(|()| device.receive()), [came(0), came(0), came(2), Err(libc::ENODEV)]);
        assert_eq!(device.turn_on(), Ok(()));
        let none = UioDevice::new(File::open("/dev/null").unwrap()).unwrap_err();
        assert_eq!(none.raw_os_error(), Some(libc::EBADF), "opened without the right to write");
    }
}
