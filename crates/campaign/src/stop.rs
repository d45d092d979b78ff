//! Stop requests (SIGINT, SIGTERM, SIGHUP): an atomic flag plus a self-pipe for blocking waiters.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::Builder;
use std::time::Instant;

/// The error of a command that a signal has interrupted.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Interrupted {
    message: String,
    /// The exit status, 128 plus the signal.
    pub exit_status: u8,
}

/// 128 plus the signal, as shells report a process ended by it.
fn exit_status(signal: i32) -> u8 {
    u8::try_from(signal).unwrap_or(0).saturating_add(128)
}

/// A request to stop this process in good order.
///
/// A wait costs nothing: a polling thread would disturb every measurement.
#[derive(Debug)]
pub struct Stop {
    requested: Arc<AtomicBool>,
    /// The signal that requested it; 0: none.
    signal: Arc<AtomicUsize>,
    /// Whether the first signal ends this process at once.
    exits_at_once: Arc<AtomicBool>,
    wake_rx: UnixStream,
    /// Written to by the signal handlers, and by [`Stop::wake`].
    wake_tx: UnixStream,
}

impl Stop {
    /// Creates a stop flag that is not set.
    pub(crate) fn new() -> io::Result<Stop> {
        let (wake_rx, wake_tx) = UnixStream::pair()?;
        let (requested, signal, exits_at_once) = Default::default();
        Ok(Stop { requested, signal, exits_at_once, wake_rx, wake_tx })
    }

    /// Set by the first SIGINT, SIGTERM or SIGHUP (sent when a terminal closes); the second signal ends this process.
    /// An ignored SIGHUP (`nohup`) stays ignored.
    pub fn on_signals() -> io::Result<Stop> {
        let stop = Stop::new()?;
        let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter();
        for signal in signals.filter(|signal| *signal != libc::SIGHUP || !punctual_sys::signal::is_ignored(*signal)) {
            let exit_status = i32::from(exit_status(signal));
            signal_hook::flag::register_conditional_shutdown(signal, exit_status, Arc::clone(&stop.exits_at_once))?;
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop.requested))?;
            let number = signal.cast_unsigned() as usize;
            signal_hook::flag::register_usize(signal, Arc::clone(&stop.signal), number)?;
            signal_hook::flag::register(signal, Arc::clone(&stop.requested))?;
            // After the flag, so that a woken thread finds it set.
            signal_hook::low_level::pipe::register(signal, stop.wake_tx.try_clone()?)?;
        }
        Ok(stop)
    }

    /// As [`Stop::on_signals`], but until [`Stop::defer`] the first signal ends this process at once: it has nothing to
    /// keep or to restore, and may wait for another measurement in a system call. PID 1 needs a handler for that.
    pub(crate) fn at_once_on_signals() -> io::Result<Stop> {
        let stop = Stop::on_signals()?;
        stop.exits_at_once.store(true, Relaxed);
        Ok(stop)
    }

    /// From now on the first signal is a request.
    pub(crate) fn defer(&self) {
        self.exits_at_once.store(false, Relaxed);
    }

    /// The error `message` of a command that a signal has interrupted.
    pub fn interrupted(&self, message: impl Into<String>) -> Interrupted {
        Interrupted { message: message.into(), exit_status: self.exit_status() }
    }

    /// The exit status of an interrupted command: 128 plus the signal, as shells report it; SIGTERM if another process
    /// has interrupted the cell.
    pub fn exit_status(&self) -> u8 {
        let signal = i32::try_from(self.signal.load(Relaxed)).ok().filter(|signal| *signal > 0);
        exit_status(signal.unwrap_or(libc::SIGTERM))
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

    /// Runs `work` and returns its result; meanwhile `on_stop` is called on a stop request. Errors: if a thread cannot
    /// be created; `work` has not run then.
    pub(crate) fn during<T>(&self, on_stop: impl FnOnce() + Send, work: impl FnOnce() -> T) -> io::Result<T> {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let listen = || {
                while !is_over.load(Relaxed) {
                    if self.is_requested() {
                        return on_stop();
                    }
                    self.wait();
                }
            };
            Builder::new().spawn_scoped(scope, listen).map_err(|err| punctual_host::no_thread(&err))?;
            let outcome = work();
            is_over.store(true, Relaxed);
            self.wake();
            Ok(outcome)
        })
    }

    /// Requests a stop.
    pub fn request(&self) {
        self.requested.store(true, Relaxed);
        self.wake();
    }
}
