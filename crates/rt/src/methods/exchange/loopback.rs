//! The logger's own share of a latency: exchanges with itself over the loopback device.

use super::LoggerWait;
use crate::line::{Line, LineEvent, Message};
use punctual_model::{ClockId, Span};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::Ordering::Relaxed;

/// Number of exchanges of a logger with itself.
const OWN_EXCHANGES: usize = 201;
/// Timeout of one of them.
const OWN_TIMEOUT: Span = Span(10_000_000);

impl LoggerWait {
    /// Exchanges messages with itself over the loopback device and records the time that it takes: all work of the
    /// logger, without the network and the target.
    pub(super) fn measure_itself(&self) -> io::Result<()> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let itself = socket.local_addr()?;
        let line = Line::Udp { socket, peer: Some(itself) };
        let message = Message { is_answer: true, session: self.logger.session, number: 0 };
        let mut took = [0; OWN_EXCHANGES];
        for took in &mut took {
            let limit = punctual_sys::clock::now(ClockId::Monotonic).plus(OWN_TIMEOUT);
            self.timer.arm(limit).map_err(io::Error::from_raw_os_error)?;
            let began = punctual_sys::clock::monotonic();
            let exchange = || -> Result<bool, i32> {
                line.send(&message, None)?;
                Ok(line.wait_before(&self.timer)? && line.receive()? != LineEvent::Foreign)
            };
            match exchange() {
                Ok(true) => *took = punctual_sys::clock::monotonic().0.saturating_sub(began.0),
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
