//! Hand-offs: a waker thread wakes the measured one at each due time.
//!
//! The waker sleeps until a due time, reads the clock, publishes both and wakes. The latency counts from that reading,
//! so that it excludes the lateness of the waker. Due times that the measured thread passed while it was late are
//! missed, as with every method; those for which the waker made no hand-off are passed over.

mod object;
mod pending;

use crate::{Completion, RtSection, Triggered, Wait};
use object::Object;
use pending::{Handed, Pending};
use punctual_model::{ClockId, ClockTime, Cycle, Handoff, Period, Schedule, Span};
use punctual_sys::futex::Futex;
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread::Builder;

/// Stack of a waker, bytes: as that of a measured thread.
const STACK_BYTES: usize = 128 * 1024;

/// What both threads use.
#[derive(Debug)]
pub(super) struct Pair {
    object: Object,
    pending: Pending,
    /// The first due time, published by `go`.
    first_due_ns: AtomicU64,
    go: Futex,
    stop: Futex,
}

impl Pair {
    /// The whole life of the waker. Errors: the errno of a call that failed.
    fn wake_at_due_times(&self, period: Period) -> Result<(), i32> {
        while self.go.take() == Err(libc::EINTR) {}
        let schedule = Schedule { first_due: ClockTime(self.first_due_ns.load(Relaxed)), period };
        let mut cycle = schedule.cycle(0);
        loop {
            let slept = self.stop.wait_until(ClockId::Monotonic, cycle.due);
            if self.stop.is_posted() {
                return Ok(());
            }
            match slept {
                Err(libc::EINTR) => continue,
                slept => slept?,
            }
            let at = punctual_sys::clock::now(ClockId::Monotonic);
            if self.pending.has_room(self.object.most_pending()) {
                self.pending.give(Handed { cycle: cycle.index, at });
                self.object.wake()?;
                // To a thread of the same priority on this CPU, before the next sleep: starting a timer takes a guest
                // some 10 us.
                punctual_sys::sched::yield_now()?;
            }
            cycle = schedule.after(cycle, at.since(cycle.due));
        }
    }
}

/// The measured thread's side of a hand-off, and its clock; replaceable in tests.
pub(super) trait Receive {
    /// The current instant.
    fn now(&self) -> ClockTime;
    /// Starts the waker. Errors: the errno.
    fn begin(&self, first_due: ClockTime) -> Result<(), i32>;
    /// Waits for one wake-up. Errors: the errno; after `EINTR` the caller calls again.
    fn wait(&self) -> Result<(), i32>;
    /// The hand-offs.
    fn pending(&self) -> &Pending;
}

impl Receive for Arc<Pair> {
    #[inline]
    fn now(&self) -> ClockTime {
        punctual_sys::clock::now(ClockId::Monotonic)
    }

    fn begin(&self, first_due: ClockTime) -> Result<(), i32> {
        self.first_due_ns.store(first_due.0, Relaxed);
        self.go.post()
    }

    #[inline]
    fn wait(&self) -> Result<(), i32> {
        self.object.wait()
    }

    #[inline]
    fn pending(&self) -> &Pending {
        &self.pending
    }
}

/// The wait for hand-offs.
#[derive(Debug)]
pub(super) struct Receiver<R> {
    with: R,
    /// Index of the cycle that is waited for.
    awaited: Cell<u64>,
    /// The hand-off of a later cycle than was waited for.
    ahead: Cell<Option<Handed>>,
    /// The end of the last wait, until it is asked for.
    woke: Cell<Option<ClockTime>>,
    /// The last hand-off against its due time, ns.
    lag_ns: Cell<i64>,
    /// The first recorded cycle, and the due times from there on without a hand-off.
    first: Cell<u64>,
    passed_over: Cell<u64>,
}

impl<R: Receive> Receiver<R> {
    fn new(with: R) -> Receiver<R> {
        Receiver {
            with,
            awaited: Cell::new(0),
            ahead: Cell::new(None),
            woke: Cell::new(None),
            lag_ns: Cell::new(0),
            first: Cell::new(0),
            passed_over: Cell::new(0),
        }
    }

    /// Due times without a hand-off.
    pub(super) fn passed_over(&self) -> u64 {
        self.passed_over.get()
    }

    /// The next hand-off. Errors: the errno of the wait, or the one that ended the waker.
    #[inline]
    fn next_handed(&self) -> Result<Handed, i32> {
        if let Some(handed) = self.ahead.take() {
            return Ok(handed);
        }
        loop {
            self.with.wait()?;
            self.woke.set(Some(self.with.now()));
            if let Some(handed) = self.with.pending().take() {
                return Ok(handed);
            }
            self.with.pending().check()?;
        }
    }
}

impl<R: Receive> Wait for Receiver<R> {
    /// The clock, moved so that the last hand-off was made when it was due. The first call after a wait returns the end
    /// of it.
    #[inline]
    fn now(&self, _rt: &RtSection<'_>) -> ClockTime {
        let now = self.woke.take().unwrap_or_else(|| self.with.now());
        ClockTime(now.0.wrapping_add_signed(self.lag_ns.get().wrapping_neg()))
    }

    fn start(&self, _rt: &RtSection<'_>, schedule: &Schedule) -> Result<Span, i32> {
        self.with.begin(schedule.first_due).map(|()| Span(0))
    }

    #[inline]
    fn trigger(&self, _rt: &RtSection<'_>, _schedule: &Schedule, cycle: Cycle) -> Result<Triggered, i32> {
        self.awaited.set(cycle.index);
        Ok(Triggered::Cycle(cycle))
    }

    #[inline]
    fn complete(&self, _rt: &RtSection<'_>, due: ClockTime) -> Result<Completion, i32> {
        let awaited = self.awaited.get();
        loop {
            let handed = self.next_handed()?;
            if handed.cycle > awaited {
                self.ahead.set(Some(handed));
                self.passed_over.set(self.passed_over.get() + u64::from(awaited >= self.first.get()));
                return Ok(Completion::TimedOut);
            }
            // One of an earlier cycle was missed: the thread was late for the one before it.
            if handed.cycle == awaited {
                self.lag_ns.set(handed.at.since(due).0);
                return Ok(Completion::Done);
            }
        }
    }
}

/// The wait of the measured thread, with its waker.
#[derive(Debug)]
pub(crate) struct HandoffWait {
    receiver: Receiver<Arc<Pair>>,
    waker: u32,
}

impl HandoffWait {
    /// Makes the object and the waker, which waits for [`Wait::start`]. Errors: when the kernel refuses either.
    #[expect(clippy::disallowed_methods, reason = "runs before the barrier")]
    pub(super) fn new(handoff: Handoff, period: Period) -> io::Result<HandoffWait> {
        let object = Object::new(handoff.kind).map_err(|err| match err.raw_os_error() {
            Some(libc::ENOSYS) => io::Error::other("the kernel does not have it; choose another kind of hand-off"),
            _ => err,
        })?;
        let (go, stop) = (Futex::default(), Futex::default());
        let pair = Arc::new(Pair { object, pending: Pending::default(), first_due_ns: AtomicU64::new(0), go, stop });
        let (ready, is_ready) = channel();
        let waker = Arc::clone(&pair);
        let life = move || {
            punctual_sys::memory::touch_stack();
            let begun = waker.object.begin().map(|()| punctual_sys::thread::id());
            let has_begun = begun.is_ok();
            let _ = ready.send(begun);
            if has_begun && let Err(errno) = waker.wake_at_due_times(period) {
                waker.pending.fail(errno);
                // The thread that waits learns it now, or at the end of its cell.
                let _ = waker.object.wake();
            }
        };
        Builder::new().name("waker".to_owned()).stack_size(STACK_BYTES).spawn(life)?;
        let waker = is_ready.recv().map_err(io::Error::other)??;
        Ok(HandoffWait { receiver: Receiver::new(pair), waker })
    }

    /// The thread id of the waker.
    pub(super) fn waker(&self) -> u32 {
        self.waker
    }

    /// The wait, which counts due times without a hand-off from cycle `first` on.
    pub(super) fn counting_from(&self, first: u64) -> &Receiver<Arc<Pair>> {
        self.receiver.first.set(first);
        &self.receiver
    }
}

impl Drop for HandoffWait {
    /// Ends the waker, wherever it is; not waited for, because it may have no CPU time.
    fn drop(&mut self) {
        let pair = &self.receiver.with;
        let _ = (pair.stop.post(), pair.go.post());
        pair.object.close();
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;
