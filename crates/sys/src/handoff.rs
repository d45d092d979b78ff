//! Objects by which one thread of a process wakes another, besides those of `ipc` and `futex`.

use crate::{check, errno_of};
use std::cell::UnsafeCell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A counter under a mutex, with a condition variable, both of the C library. Boxed: neither may be moved once used.
pub struct Condition(Box<CountedCondition>);

struct CountedCondition {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    condition: UnsafeCell<libc::pthread_cond_t>,
    /// Changed only by the holder of the mutex.
    count: AtomicU32,
}

// SAFETY: mutex and condition are made for use by several threads (pthread_mutex_lock(3), pthread_cond_wait(3)).
unsafe impl Send for CountedCondition {}
// SAFETY: as above; no reference to what is inside the cells is ever made.
unsafe impl Sync for CountedCondition {}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Condition").finish_non_exhaustive()
    }
}

impl Default for Condition {
    fn default() -> Self {
        Condition(Box::new(CountedCondition {
            mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            condition: UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER),
            count: AtomicU32::new(0),
        }))
    }
}

impl Condition {
    /// Adds one and wakes a waiter, `pthread_cond_signal(3)`. Errors: the errno.
    #[inline]
    pub fn post(&self) -> Result<(), i32> {
        self.locked(|| {
            self.0.count.fetch_add(1, Relaxed);
            Ok(())
        })?;
        // SAFETY: an initialized condition variable that lives as long as `self`.
        of(unsafe { libc::pthread_cond_signal(self.0.condition.get()) })
    }

    /// Waits until the counter is above 0 and subtracts one, `pthread_cond_wait(3)`. Errors: the errno.
    #[inline]
    pub fn take(&self) -> Result<(), i32> {
        self.locked(|| {
            while self.0.count.load(Relaxed) == 0 {
                // SAFETY: both are initialized and live as long as `self`; this thread holds the mutex.
                of(unsafe { libc::pthread_cond_wait(self.0.condition.get(), self.0.mutex.get()) })?;
            }
            self.0.count.fetch_sub(1, Relaxed);
            Ok(())
        })
    }

    #[inline]
    fn locked(&self, run: impl FnOnce() -> Result<(), i32>) -> Result<(), i32> {
        // SAFETY: an initialized mutex that lives as long as `self`.
        of(unsafe { libc::pthread_mutex_lock(self.0.mutex.get()) })?;
        let result = run();
        // SAFETY: this thread holds the mutex.
        of(unsafe { libc::pthread_mutex_unlock(self.0.mutex.get()) })?;
        result
    }
}

impl Drop for CountedCondition {
    fn drop(&mut self) {
        // SAFETY: no thread has a reference to it any more.
        unsafe { libc::pthread_cond_destroy(self.condition.get()) };
        // SAFETY: as above.
        unsafe { libc::pthread_mutex_destroy(self.mutex.get()) };
    }
}

/// The result of a function of POSIX threads, which returns its errno.
#[inline]
fn of(errno: libc::c_int) -> Result<(), i32> {
    if errno == 0 { Ok(()) } else { Err(errno) }
}

/// A POSIX semaphore without a name, at 0 (sem_overview(7)). Boxed: it may not be moved once used.
pub struct Semaphore(Box<UnsafeCell<libc::sem_t>>);

// SAFETY: a semaphore is made for use by several threads (sem_overview(7)).
unsafe impl Send for Semaphore {}
// SAFETY: as above; no reference to what is inside the cell is ever made.
unsafe impl Sync for Semaphore {}

impl std::fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Semaphore").finish_non_exhaustive()
    }
}

impl Semaphore {
    /// A new one. Errors: `ENOSYS` where the C library has none.
    pub fn new() -> io::Result<Semaphore> {
        // SAFETY: a sem_t is integers only, for which zeros are valid.
        let semaphore = Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() }));
        // SAFETY: memory for a semaphore, which stays where it is.
        check(unsafe { libc::sem_init(semaphore.get(), 0, 0) }.into())?;
        Ok(Semaphore(semaphore))
    }

    /// Adds one, `sem_post(3)`. Errors: the errno.
    #[inline]
    pub fn post(&self) -> Result<(), i32> {
        // SAFETY: an initialized semaphore that lives as long as `self`.
        errno_of(unsafe { libc::sem_post(self.0.get()) }.into())
    }

    /// Waits until it is above 0 and subtracts one, `sem_wait(3)`. Errors: the errno, `EINTR` included.
    #[inline]
    pub fn take(&self) -> Result<(), i32> {
        // SAFETY: an initialized semaphore that lives as long as `self`.
        errno_of(unsafe { libc::sem_wait(self.0.get()) }.into())
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: no thread has a reference to it any more.
        unsafe { libc::sem_destroy(self.0.get()) };
    }
}

/// An epoll(7) instance that watches one file.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

impl Epoll {
    /// An instance that is ready while `file` can be read.
    pub fn new(file: BorrowedFd<'_>) -> io::Result<Epoll> {
        // SAFETY: the call takes integers only.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        check(fd.into())?;
        // SAFETY: `fd` is new and has no other owner.
        let epoll = Epoll(unsafe { OwnedFd::from_raw_fd(fd) });
        let mut event = libc::epoll_event { events: libc::EPOLLIN.cast_unsigned(), u64: 0 };
        let (add, file) = (libc::EPOLL_CTL_ADD, file.as_raw_fd());
        // SAFETY: `event` is valid and outlives the call.
        check(unsafe { libc::epoll_ctl(epoll.0.as_raw_fd(), add, file, &raw mut event) }.into())?;
        Ok(epoll)
    }

    /// Waits until the file can be read, `epoll_wait(2)`. Errors: the errno, `EINTR` included.
    #[inline]
    pub fn wait(&self) -> Result<(), i32> {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: `event` is memory for one event, as the count says, and outlives the call.
        errno_of(unsafe { libc::epoll_wait(self.0.as_raw_fd(), &raw mut event, 1, -1) }.into())
    }
}
