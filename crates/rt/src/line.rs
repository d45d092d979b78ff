//! What goes over a line between a logger and a target, and what is understood of what comes.

use crate::wire::{GpioLines, Interrupt, Parport, UioDevice};
use model::Span;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use sys::poll::{self, Ready};
use sys::timerfd::Timerfd;
use sys::{errno, socket};

/// A line to the other end.
#[derive(Debug)]
pub enum Line {
    /// A socket that is bound. The logger knows whom it talks to; the target may not yet.
    Udp {
        /// Not connected, so that what strangers send is seen and counted.
        socket: UdpSocket,
        /// The other end; for a target that knows none yet, the first that sends a trigger.
        peer: Option<SocketAddr>,
    },
    /// A serial port, set up to hand on each byte at once. A byte is the last 8 bits of a trigger's number.
    Serial(File),
    /// Two lines of a GPIO chip. A trigger and its answer are the level that the last bit of its number says, so each is the
    /// opposite of the one before.
    Gpio(GpioLines),
    /// A parallel port. A trigger and its answer are pulses.
    Parport(Parport),
    /// A device that nobody triggers, for a target only: its interrupt is the trigger, and turning it on again the answer.
    Uio(UioDevice),
}

/// A trigger or an answer, as it is sent by UDP; both have the same size, so that an answer is never more than its trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Whether it is an answer.
    pub is_answer: bool,
    /// Which logger this is of.
    pub session: u64,
    /// Which of its triggers, from 1 on.
    pub number: u64,
}

impl Message {
    /// Its size, bytes.
    pub const BYTES: usize = 24;
    const TRIGGER: [u8; 8] = *b"punct T1";
    const ANSWER: [u8; 8] = *b"punct A1";

    /// As it is sent: eight bytes that say what it is, then both numbers, most significant byte first.
    #[must_use]
    pub fn bytes(&self) -> [u8; Message::BYTES] {
        let kind = if self.is_answer { Message::ANSWER } else { Message::TRIGGER };
        let mut bytes = [0; Message::BYTES];
        let parts = [kind, self.session.to_be_bytes(), self.number.to_be_bytes()];
        for (to, part) in bytes.chunks_exact_mut(8).zip(parts) {
            to.copy_from_slice(&part);
        }
        bytes
    }

    /// The level that stands for it on a wire: high for odd numbers.
    #[must_use]
    pub fn level(&self) -> bool {
        self.number % 2 == 1
    }

    /// What was received; `None` when it is of somebody else.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Message> {
        let (parts, rest) = bytes.as_chunks::<8>();
        let [kind, session, number] = parts else { return None };
        let is_answer = *kind == Message::ANSWER;
        let is_ours = rest.is_empty() && (is_answer || *kind == Message::TRIGGER);
        is_ours.then(|| Message {
            is_answer,
            session: u64::from_be_bytes(*session),
            number: u64::from_be_bytes(*number),
        })
    }
}

/// What came over a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// A message, from where, and when the kernel received it, ns of `CLOCK_REALTIME`, if it says so.
    Message(Message, SocketAddr, Option<u64>),
    /// A byte of a serial line.
    Byte(u8),
    /// An interrupt, which carries no number.
    Interrupt(Interrupt),
    /// Nothing that is understood.
    Foreign,
}

impl Line {
    fn file(&self) -> BorrowedFd<'_> {
        match self {
            Line::Udp { socket, .. } => socket.as_fd(),
            Line::Serial(file)
            | Line::Gpio(GpioLines { file, .. })
            | Line::Parport(Parport { file })
            | Line::Uio(UioDevice { file, .. }) => file.as_fd(),
        }
    }

    /// Whether what comes says, at least in part, which trigger it is or answers.
    #[must_use]
    pub fn has_numbers(&self) -> bool {
        matches!(self, Line::Udp { .. } | Line::Serial(_))
    }

    /// How many of the last triggers an answer can be told to be for; `most` where it carries the whole number.
    #[must_use]
    pub(crate) fn triggers_told_apart(&self, most: usize) -> usize {
        match self {
            Line::Udp { .. } => most,
            Line::Serial(_) => 1 << u8::BITS,
            // The present one, and by its level the one before.
            Line::Gpio(_) | Line::Parport(_) | Line::Uio(_) => 2,
        }
    }

    /// Sends one message, to `to` if that is given.
    ///
    /// # Errors
    /// The errno.
    #[inline]
    pub fn send(&self, message: &Message, to: Option<SocketAddr>) -> Result<(), i32> {
        let sent = match self {
            Line::Udp { socket, peer } => {
                let to = to.or(*peer).ok_or(libc::EDESTADDRREQ)?;
                socket.send_to(&message.bytes(), to)
            }
            Line::Serial(file) => {
                let [.., last] = message.number.to_be_bytes();
                (&mut &*file).write(&[last])
            }
            Line::Gpio(lines) => return lines.set(message.level()),
            Line::Parport(port) => return port.pulse(),
            Line::Uio(device) => return device.turn_on(),
        };
        sent.map(drop).map_err(errno)
    }

    /// Waits for something, and takes it.
    ///
    /// # Errors
    /// The errno, `EINTR` included; `ENODEV` where a device has gone.
    #[inline]
    pub fn hear(&self) -> Result<Heard, i32> {
        // One byte more than a message has: what is longer is none.
        let mut bytes = [0; Message::BYTES + 1];
        match self {
            Line::Udp { socket, .. } => {
                let socket::Received { len, from, at_ns } = socket::receive(socket, &mut bytes, false)?;
                let message = bytes.get(..len).and_then(Message::read).zip(from);
                Ok(message.map_or(Heard::Foreign, |(message, from)| Heard::Message(message, from, at_ns)))
            }
            Line::Serial(file) => {
                let mut byte = [0];
                let len = (&mut &*file).read(&mut byte).map_err(errno)?;
                let [byte] = byte;
                if len == 0 { Err(libc::ENODEV) } else { Ok(Heard::Byte(byte)) }
            }
            Line::Gpio(lines) => lines.hear().map(Heard::Interrupt),
            Line::Parport(port) => port.hear().map(Heard::Interrupt),
            Line::Uio(device) => device.hear().map(Heard::Interrupt),
        }
    }

    /// When the kernel handed the last message to the network, ns of `CLOCK_REALTIME`; `None` when it does not say.
    #[inline]
    pub fn sent_at_ns(&self) -> Option<u64> {
        let Line::Udp { socket, .. } = self else { return None };
        // The last one is of the last message: who answered before is not asked for again.
        let mut last = None;
        while let Ok(sent) = socket::receive(socket, &mut [], true) {
            last = sent.at_ns;
        }
        last
    }

    /// Whether something has come; waits for that, `at_most` so long, or for less.
    ///
    /// # Errors
    /// The errno, `EINTR` included.
    #[inline]
    pub fn wait(&self, at_most: Span) -> Result<bool, i32> {
        self.is_readable(poll::readable(self.file(), at_most)?)
    }

    /// Whether something has come; waits for that until `timer` has expired, or less long.
    ///
    /// # Errors
    /// The errno, `EINTR` included.
    #[inline]
    pub fn wait_before(&self, timer: &Timerfd) -> Result<bool, i32> {
        self.is_readable(poll::readable_before(self.file(), timer)?)
    }

    #[inline]
    fn is_readable(&self, ready: Ready) -> Result<bool, i32> {
        match ready {
            Ready::Readable => Ok(true),
            Ready::Nothing => Ok(false),
            // A time of what was sent that came late: it would end every further wait at once.
            Ready::Error if self.sent_at_ns().is_some() => Ok(false),
            Ready::Error => Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_sent_and_nothing_else_is_one() {
        for is_answer in [false, true] {
            let message = Message { is_answer, session: 0x0102_0304_0506_0708, number: u64::MAX };
            assert_eq!(Message::read(&message.bytes()), Some(message));
        }
        let bytes = Message { is_answer: false, session: 1, number: 2 }.bytes();
        let longer = [&bytes[..], &[0]].concat();
        for wrong in [&b""[..], &bytes[..23], &longer, b"punct T2 is of some newer one", &[0; 24]] {
            assert_eq!(Message::read(wrong), None, "{wrong:?}");
        }
    }
}
