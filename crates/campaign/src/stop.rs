//! Stop requests (SIGINT, SIGTERM, SIGHUP): an atomic flag plus a self-pipe for blocking waiters.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// A request to stop this process in good order.
///
/// A wait costs nothing: a polling thread would disturb every measurement.
#[derive(Debug)]
pub struct Stop {
    requested: Arc<AtomicBool>,
    wake_rx: UnixStream,
    /// Written to by the signal handlers, and by [`Stop::wake`].
    wake_tx: UnixStream,
}

impl Stop {
    /// Creates a stop flag that is not set.
    pub(crate) fn new() -> io::Result<Stop> {
        let (wake_rx, wake_tx) = UnixStream::pair()?;
        Ok(Stop { requested: Arc::default(), wake_rx, wake_tx })
    }

    /// Set by the first SIGINT, SIGTERM or SIGHUP (sent when a terminal closes); the second signal ends this process.
    /// Ignored signals (`nohup`) stay ignored.
    pub fn on_signals() -> io::Result<Stop> {
        let stop = Stop::new()?;
        let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter();
        for signal in signals.filter(|signal| !sys::signal::is_ignored(*signal)) {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop.requested))?;
            signal_hook::flag::register(signal, Arc::clone(&stop.requested))?;
            // After the flag, so that a woken thread finds it set.
            signal_hook::low_level::pipe::register(signal, stop.wake_tx.try_clone()?)?;
        }
        Ok(stop)
    }

    /// Whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Relaxed)
    }

    /// The flag, for polling.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.requested
    }

    /// Waits for a signal or [`Stop::wake`].
    pub(crate) fn wait(&self) {
        // On an error it returns, and the caller checks the flag.
        let _ = (&self.wake_rx).read(&mut [0]);
    }

    /// Waits for a signal or [`Stop::wake`], until `instant` at the latest.
    pub fn wait_until(&self, instant: Instant) {
        let left = instant.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            let _ = self.wake_rx.set_read_timeout(Some(left));
            self.wait();
            let _ = self.wake_rx.set_read_timeout(None);
        }
    }

    /// Wakes the waiting thread.
    pub(crate) fn wake(&self) {
        let _ = (&self.wake_tx).write(&[0]);
    }

    /// Requests a stop.
    pub(crate) fn request(&self) {
        self.requested.store(true, Relaxed);
        self.wake();
    }
}
