//! Being asked to stop: by Ctrl-C, SIGTERM or a closed terminal, seen by whoever looks and by whoever waits.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// Whether this process is asked to come to an end in good order.
///
/// Waiting for it costs nothing: a thread that looked again and again would be part of every measurement.
#[derive(Debug)]
pub(crate) struct Stop {
    asked: Arc<AtomicBool>,
    /// Rung by the signal handlers, and by [`Stop::ring`].
    bell: UnixStream,
    rope: UnixStream,
}

impl Stop {
    /// Nobody has asked yet.
    pub(crate) fn new() -> io::Result<Stop> {
        let (bell, rope) = UnixStream::pair()?;
        Ok(Stop { asked: Arc::default(), bell, rope })
    }

    /// Asked by the first SIGINT, SIGTERM or SIGHUP, which a closing terminal sends; the second ends this process. `nohup`
    /// keeps its meaning.
    pub(crate) fn on_signals() -> io::Result<Stop> {
        let stop = Stop::new()?;
        let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter();
        for signal in signals.filter(|signal| !rt::sys::signal::is_ignored(*signal)) {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop.asked))?;
            signal_hook::flag::register(signal, Arc::clone(&stop.asked))?;
            // After the flag, so that whoever the bell wakes finds it set.
            signal_hook::low_level::pipe::register(signal, stop.rope.try_clone()?)?;
        }
        Ok(stop)
    }

    /// Whether it was asked.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Relaxed)
    }

    /// The same, for those who only look.
    pub(crate) fn flag(&self) -> &Arc<AtomicBool> {
        &self.asked
    }

    /// Waits for a signal or [`Stop::ring`].
    pub(crate) fn wait(&self) {
        // Failing, it returns: whoever waits looks then.
        let _ = (&self.bell).read(&mut [0]);
    }

    /// Waits for a signal or [`Stop::ring`], until `instant` at the latest.
    pub(crate) fn wait_until(&self, instant: Instant) {
        let left = instant.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            let _ = self.bell.set_read_timeout(Some(left));
            self.wait();
            let _ = self.bell.set_read_timeout(None);
        }
    }

    /// Wakes the one who waits.
    pub(crate) fn ring(&self) {
        let _ = (&self.rope).write(&[0]);
    }

    /// Asks.
    pub(crate) fn ask(&self) {
        self.asked.store(true, Relaxed);
        self.ring();
    }
}
