//! The objects of hand-offs. A wake-up of each ends exactly one wait, which may begin after it.
#![expect(clippy::disallowed_macros, reason = "the name of a queue is made before the barrier")]

use super::pending::Pending;
use punctual_model::HandoffKind;
use punctual_sys::futex::{Futex, PiFutex};
use punctual_sys::handoff::{Condition, Epoll, Semaphore};
use punctual_sys::ipc::{MessageQueue, Semaphores, event_semaphore};
use punctual_sys::signal::{self, SignalSet};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The object, and what both threads need of it.
#[derive(Debug)]
pub(super) enum Object {
    Futex(Futex),
    FutexPi(TwoLocks),
    Condvar(Condition),
    Eventfd(File),
    Epoll(Epoll, File),
    Pipe(PipeReader, PipeWriter),
    Socketpair(UnixStream, UnixStream),
    Mq(MessageQueue),
    Sem(Semaphore),
    SysvSem(Semaphores),
    Signal(SignalSet, u32),
}

/// Number of the next queue of this process.
static QUEUES: AtomicU32 = AtomicU32::new(0);

/// The number that an event file adds at a wake-up.
const ONE: [u8; 8] = 1_u64.to_ne_bytes();

impl Object {
    /// Makes the object in the thread that will wait. Errors: `ENOSYS` when the kernel does not have it.
    pub(super) fn new(kind: HandoffKind) -> io::Result<Object> {
        Ok(match kind {
            HandoffKind::Futex => Object::Futex(Futex::default()),
            HandoffKind::FutexPi => Object::FutexPi(TwoLocks::new()?),
            HandoffKind::Condvar => Object::Condvar(Condition::default()),
            HandoffKind::Eventfd => Object::Eventfd(event_semaphore()?),
            HandoffKind::Epoll => {
                let file = event_semaphore()?;
                Object::Epoll(Epoll::new(file.as_fd())?, file)
            }
            HandoffKind::Pipe => {
                let (reader, writer) = io::pipe()?;
                Object::Pipe(reader, writer)
            }
            HandoffKind::Socketpair => {
                let (reader, writer) = UnixStream::pair()?;
                Object::Socketpair(reader, writer)
            }
            HandoffKind::Mq => {
                let (process, n) = (std::process::id(), QUEUES.fetch_add(1, Relaxed));
                Object::Mq(MessageQueue::new(&CString::new(format!("/punctual-{process}-handoff-{n}"))?)?)
            }
            HandoffKind::Sem => Object::Sem(Semaphore::new()?),
            HandoffKind::SysvSem => {
                // They then end with these two threads, whatever kills them. Without the permission, `recover` removes
                // them.
                let _ = punctual_sys::mount::unshare_ipc();
                Object::SysvSem(Semaphores::new()?)
            }
            HandoffKind::Signal => Object::Signal(SignalSet::new(signal::of_timers()), punctual_sys::thread::id()),
        })
    }

    /// The most hand-offs that may be pending.
    pub(super) fn most_pending(&self) -> u64 {
        if matches!(self, Object::FutexPi(_)) { 1 } else { Pending::MOST as u64 }
    }

    /// Prepares the waker, in its thread.
    pub(super) fn begin(&self) -> io::Result<()> {
        if let Object::FutexPi(locks) = self { locks.begin() } else { Ok(()) }
    }

    /// Wakes the thread that waits. Errors: the errno.
    pub(super) fn wake(&self) -> Result<(), i32> {
        match self {
            Object::Futex(futex) => futex.post(),
            Object::FutexPi(locks) => locks.wake(),
            Object::Condvar(condition) => condition.post(),
            Object::Eventfd(file) | Object::Epoll(_, file) => done((&mut &*file).write(&ONE)),
            Object::Pipe(_, writer) => done((&mut &*writer).write(&[1])),
            Object::Socketpair(_, writer) => done((&mut &*writer).write(&[1])),
            Object::Mq(queue) => done(queue.send()),
            Object::Sem(semaphore) => semaphore.post(),
            Object::SysvSem(semaphores) => done(semaphores.post(0)),
            Object::Signal(_, thread) => signal::send_to(*thread, signal::of_timers()),
        }
    }

    /// Waits for one wake-up. Errors: the errno; after `EINTR` the caller calls again.
    #[inline]
    pub(super) fn wait(&self) -> Result<(), i32> {
        match self {
            Object::Futex(futex) => futex.take(),
            Object::FutexPi(locks) => locks.wait(),
            Object::Condvar(condition) => condition.take(),
            Object::Eventfd(file) => done((&mut &*file).read(&mut [0; 8])),
            Object::Epoll(epoll, file) => {
                epoll.wait()?;
                done((&mut &*file).read(&mut [0; 8]))
            }
            Object::Pipe(reader, _) => done((&mut &*reader).read(&mut [0])),
            Object::Socketpair(reader, _) => done((&mut &*reader).read(&mut [0])),
            Object::Mq(queue) => done(queue.receive()),
            Object::Sem(semaphore) => semaphore.take(),
            Object::SysvSem(semaphores) => done(semaphores.take(0)),
            Object::Signal(set, _) => set.wait().map(drop),
        }
    }

    /// Removes what would outlive both threads.
    pub(super) fn close(&self) {
        if let Object::SysvSem(semaphores) = self {
            semaphores.remove();
        }
    }
}

/// The errno of a failed call.
#[inline]
fn done<T>(result: io::Result<T>) -> Result<(), i32> {
    result.map(drop).map_err(|err| err.raw_os_error().unwrap_or(libc::EIO))
}

/// Two locks with priority inheritance in turn. The waker holds the one that the other thread waits for; to wake it, it
/// takes the other one and unlocks this one, of which the kernel makes the other thread the holder.
#[derive(Debug)]
pub(super) struct TwoLocks {
    locks: [PiFutex; 2],
    waker: AtomicU32,
    waiter: u32,
    /// Wake-ups made and waits ended. Each is used by one thread only.
    given: AtomicU32,
    taken: AtomicU32,
}

impl TwoLocks {
    fn new() -> io::Result<TwoLocks> {
        PiFutex::probe()?;
        let [waker, given, taken] = [0; 3].map(AtomicU32::new);
        Ok(TwoLocks { locks: Default::default(), waker, waiter: punctual_sys::thread::id(), given, taken })
    }

    /// The lock of the `n`-th hand-off, and the other one.
    fn of(&self, n: u32) -> (&PiFutex, &PiFutex) {
        let [even, odd] = &self.locks;
        if n.is_multiple_of(2) { (even, odd) } else { (odd, even) }
    }

    fn begin(&self) -> io::Result<()> {
        let me = punctual_sys::thread::id();
        self.waker.store(me, Relaxed);
        self.of(0).0.lock(me).map_err(io::Error::from_raw_os_error)
    }

    /// The other thread has released the other lock: no earlier hand-off is pending.
    fn wake(&self) -> Result<(), i32> {
        let (me, given) = (self.waker.load(Relaxed), self.given.load(Relaxed));
        let (this, next) = self.of(given);
        next.lock(me)?;
        self.given.store(given.wrapping_add(1), Relaxed);
        this.unlock(me)
    }

    #[inline]
    fn wait(&self) -> Result<(), i32> {
        let taken = self.taken.load(Relaxed);
        let (this, _) = self.of(taken);
        this.lock(self.waiter)?;
        self.taken.store(taken.wrapping_add(1), Relaxed);
        this.unlock(self.waiter)
    }
}
