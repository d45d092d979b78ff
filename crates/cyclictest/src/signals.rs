//! Signal handling: stop requests and status requests.

use punctual_rt::Waker;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Registered signals. A separate thread waits for them and sleeps until one arrives.
#[derive(Debug)]
pub(super) struct Requests {
    signals: Signals,
    flags: Arc<Flags>,
}

#[derive(Debug, Default)]
struct Flags {
    stop: Arc<AtomicBool>,
    status: AtomicBool,
    shared_memory: AtomicBool,
}

impl Requests {
    /// Registers the signals; none is lost afterwards. The second SIGINT or SIGTERM ends this process at once. Errors:
    /// if the kernel rejects a handler.
    pub(super) fn accept() -> io::Result<Requests> {
        let flags = Arc::<Flags>::default();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&flags.stop))?;
        }
        let signals = Signals::new([SIGINT, SIGTERM, SIGUSR1, SIGUSR2])?;
        Ok(Requests { signals, flags })
    }

    /// Starts the thread, which signals `waker` at each signal. Errors: if the thread cannot be created.
    pub(super) fn forward(self, waker: Waker) -> io::Result<PendingRequests> {
        let Requests { mut signals, flags } = self;
        let asked = PendingRequests(Arc::clone(&flags));
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                match signal {
                    SIGUSR1 => flags.status.store(true, Relaxed),
                    SIGUSR2 => flags.shared_memory.store(true, Relaxed),
                    _ => flags.stop.store(true, Relaxed),
                }
                waker.wake();
            }
        })?;
        Ok(asked)
    }
}

/// Requests received by signal.
#[derive(Debug)]
pub(super) struct PendingRequests(Arc<Flags>);

impl PendingRequests {
    /// Whether SIGINT or SIGTERM was received.
    pub(super) fn to_stop(&self) -> bool {
        self.0.stop.load(Relaxed)
    }

    /// Whether SIGUSR1 was received since the last call.
    pub(super) fn for_status(&self) -> bool {
        self.0.status.swap(false, Relaxed)
    }

    /// Whether SIGUSR2 was received since the last call.
    pub(super) fn for_shared_memory(&self) -> bool {
        self.0.shared_memory.swap(false, Relaxed)
    }
}
