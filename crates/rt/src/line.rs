//! The lines between a logger and a target, and the messages on them.

use crate::wire::{GpioLines, Interrupt, Parport, UioDevice};
use punctual_model::Span;
use punctual_sys::poll::{self, Ready};
use punctual_sys::timerfd::Timerfd;
use punctual_sys::{errno, socket};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// A line to the peer.
#[derive(Debug)]
pub enum Line {
    /// A bound socket. The logger knows its peer; the target may not know it yet.
    Udp {
        /// Not connected, so that datagrams of other senders are received and counted.
        socket: UdpSocket,
        /// The peer; for a target without one, the sender of the first trigger.
        peer: Option<SocketAddr>,
    },
    /// A serial port, set up to pass on each byte at once. A byte is the low 8 bits of a trigger's number.
    Serial(File),
    /// Two lines of a GPIO chip. A trigger and its answer are the level given by the lowest bit of its number, so each
    /// is the opposite of the previous one.
    Gpio(GpioLines),
    /// A parallel port. A trigger and its answer are pulses.
    Parport(Parport),
    /// A device that interrupts by itself, for a target only: its interrupt is the trigger, re-enabling it the answer.
    Uio(UioDevice),
}

/// A trigger or an answer, as sent by UDP; both have the same size, so that an answer is never larger than its trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Whether it is an answer.
    pub is_answer: bool,
    /// Session id of the logger.
    pub session: u64,
    /// Number of the trigger in the session, from 1 on.
    pub number: u64,
}

impl Message {
    /// Size of a message, bytes.
    pub const BYTES: usize = 24;
    const TRIGGER: [u8; 8] = *b"punct T1";
    const ANSWER: [u8; 8] = *b"punct A1";

    /// The wire format: eight bytes for the kind, then both numbers, most significant byte first.
    pub fn bytes(&self) -> [u8; Message::BYTES] {
        let kind = if self.is_answer { Message::ANSWER } else { Message::TRIGGER };
        let mut bytes = [0; Message::BYTES];
        let parts = [kind, self.session.to_be_bytes(), self.number.to_be_bytes()];
        for (to, part) in bytes.chunks_exact_mut(8).zip(parts) {
            to.copy_from_slice(&part);
        }
        bytes
    }

    /// The level that represents the message on a wire: high for odd numbers.
    pub fn level(&self) -> bool {
        self.number % 2 == 1
    }

    /// Parses a received message; `None` for bytes of another origin.
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

/// An event received over a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEvent {
    /// A message, its sender, and the kernel's receive time, ns of `CLOCK_REALTIME`, if available.
    Message(Message, SocketAddr, Option<u64>),
    /// A byte of a serial line.
    Byte(u8),
    /// An interrupt, which carries no number.
    Interrupt(Interrupt),
    /// Data that is neither a trigger nor an answer.
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

    /// Whether the line carries trigger numbers, at least in part.
    pub fn has_numbers(&self) -> bool {
        matches!(self, Line::Udp { .. } | Line::Serial(_))
    }

    /// Number of recent triggers among which an answer identifies its own; `most` where it carries the full number.
    pub(crate) fn triggers_told_apart(&self, most: usize) -> usize {
        match self {
            Line::Udp { .. } => most,
            Line::Serial(_) => 1 << u8::BITS,
            // The present one and, by its level, the previous one.
            Line::Gpio(_) | Line::Parport(_) | Line::Uio(_) => 2,
        }
    }

    /// Sends one message, to `to` if given.
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

    /// Waits for an event and consumes it. Errors: the errno, `EINTR` included; `ENODEV` when a device is gone.
    #[inline]
    pub fn receive(&self) -> Result<LineEvent, i32> {
        // One byte more than a message has: a longer datagram is no message.
        let mut bytes = [0; Message::BYTES + 1];
        match self {
            Line::Udp { socket, .. } => {
                let socket::Received { len, from, at_ns } = socket::receive(socket, &mut bytes, false)?;
                let message = bytes.get(..len).and_then(Message::read).zip(from);
                Ok(message.map_or(LineEvent::Foreign, |(message, from)| LineEvent::Message(message, from, at_ns)))
            }
            Line::Serial(file) => {
                let mut byte = [0];
                let len = (&mut &*file).read(&mut byte).map_err(errno)?;
                let [byte] = byte;
                if len == 0 { Err(libc::ENODEV) } else { Ok(LineEvent::Byte(byte)) }
            }
            Line::Gpio(lines) => lines.receive().map(LineEvent::Interrupt),
            Line::Parport(port) => port.receive().map(LineEvent::Interrupt),
            Line::Uio(device) => device.receive().map(LineEvent::Interrupt),
        }
    }

    /// Time at which the kernel passed the last message to the network, ns of `CLOCK_REALTIME`, if available.
    #[inline]
    pub fn sent_at_ns(&self) -> Option<u64> {
        self.empty_error_queue()?
    }

    /// The time stamp of the last entry of the error queue, which belongs to the last message, if it has one; `None` if
    /// the queue was empty.
    #[inline]
    fn empty_error_queue(&self) -> Option<Option<u64>> {
        let Line::Udp { socket, .. } = self else { return None };
        let mut last = None;
        while let Ok(sent) = socket::receive(socket, &mut [], true) {
            last = Some(sent.at_ns);
        }
        last
    }

    /// Waits until the line is readable, or for less. Returns `false` after `at_most`.
    #[inline]
    pub fn wait(&self, at_most: Span) -> Result<bool, i32> {
        self.is_readable(poll::readable(self.file(), at_most)?)
    }

    /// Waits until the line is readable, or for less. Returns `false` when `timer` has expired.
    #[inline]
    pub fn wait_before(&self, timer: &Timerfd) -> Result<bool, i32> {
        self.is_readable(poll::readable_before(self.file(), timer)?)
    }

    #[inline]
    fn is_readable(&self, ready: Ready) -> Result<bool, i32> {
        match ready {
            Ready::Readable => Ok(true),
            Ready::Nothing => Ok(false),
            // A late transmit time stamp; left in the queue, it would end every further wait at once.
            Ready::Error if self.empty_error_queue().is_some() => Ok(false),
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
