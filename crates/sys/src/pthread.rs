//! Mutexes and condition variables of POSIX threads with attributes, in memory that processes made by `fork` share.

use crate::mapping::page_bytes;
use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// Attributes of a mutex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MutexKind {
    /// Without attributes.
    Plain,
    /// `PTHREAD_PRIO_INHERIT`, pthread_mutexattr_setprotocol(3p).
    Inheriting,
    /// `PTHREAD_MUTEX_ROBUST`, pthread_mutexattr_setrobust(3).
    Robust,
}

/// A mutex with a condition variable, in a page of its own.
#[derive(Debug)]
pub struct Mutex(NonNull<Inner>);

#[derive(Debug)]
struct Inner {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    condition: UnsafeCell<libc::pthread_cond_t>,
}

// SAFETY: mutex and condition are made for use by several threads (pthread_mutex_lock(3), pthread_cond_wait(3)).
unsafe impl Send for Mutex {}
// SAFETY: as above; no reference to what is inside the cells is ever made.
unsafe impl Sync for Mutex {}

impl Mutex {
    /// A new one, which is not locked. Errors: `ENOTSUP` where the kernel has no such mutexes, `ENOMEM`.
    pub fn new(kind: MutexKind) -> io::Result<Mutex> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no other memory (mmap(2)).
        let start = unsafe { libc::mmap(std::ptr::null_mut(), page_bytes(), protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mutex = Mutex(NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?);
        mutex.initialize(kind).map_err(io::Error::from_raw_os_error)?;
        Ok(mutex)
    }

    fn initialize(&self, kind: MutexKind) -> Result<(), i32> {
        let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::zeroed();
        let given = attributes.as_mut_ptr();
        // SAFETY: memory for attributes, which the call initializes.
        of(unsafe { libc::pthread_mutexattr_init(given) })?;
        // SAFETY: initialized attributes, here and below.
        of(unsafe { libc::pthread_mutexattr_setpshared(given, libc::PTHREAD_PROCESS_SHARED) })?;
        of(match kind {
            MutexKind::Plain => 0,
            // SAFETY: as above.
            MutexKind::Inheriting => unsafe { libc::pthread_mutexattr_setprotocol(given, libc::PTHREAD_PRIO_INHERIT) },
            // SAFETY: as above.
            MutexKind::Robust => unsafe { libc::pthread_mutexattr_setrobust(given, libc::PTHREAD_MUTEX_ROBUST) },
        })?;
        // SAFETY: memory of a mutex that nothing uses yet, and initialized attributes.
        of(unsafe { libc::pthread_mutex_init(self.mutex(), given) })?;
        // SAFETY: memory of a condition variable that nothing uses yet; null attributes are the default ones.
        of(unsafe { libc::pthread_cond_init(self.condition(), std::ptr::null()) })
    }

    fn inner(&self) -> &Inner {
        // SAFETY: the page is mapped as long as `self`, aligned and large enough; all of its bytes are in cells.
        unsafe { self.0.as_ref() }
    }

    fn mutex(&self) -> *mut libc::pthread_mutex_t {
        self.inner().mutex.get()
    }

    fn condition(&self) -> *mut libc::pthread_cond_t {
        self.inner().condition.get()
    }

    /// Locks it, `pthread_mutex_lock(3)`. Errors: the errno; `EOWNERDEAD` when its owner ended: it is locked then.
    pub fn lock(&self) -> Result<(), i32> {
        // SAFETY: an initialized mutex that lives as long as `self`.
        of(unsafe { libc::pthread_mutex_lock(self.mutex()) })
    }

    /// Unlocks it. Errors: the errno; `EPERM` for a kind that knows its owner, when another thread holds it.
    pub fn unlock(&self) -> Result<(), i32> {
        // SAFETY: an initialized mutex that lives as long as `self`.
        of(unsafe { libc::pthread_mutex_unlock(self.mutex()) })
    }

    /// Makes it usable again after `EOWNERDEAD`, `pthread_mutex_consistent(3)`. Errors: the errno.
    pub fn make_consistent(&self) -> Result<(), i32> {
        // SAFETY: an initialized mutex that lives as long as `self`.
        of(unsafe { libc::pthread_mutex_consistent(self.mutex()) })
    }

    /// Waits for the condition; the calling thread holds the mutex, `pthread_cond_wait(3)`. Errors: the errno.
    pub fn wait(&self) -> Result<(), i32> {
        // SAFETY: both are initialized and live as long as `self`; a mutex of another holder is refused or undefined
        // only in what it protects, which is nothing here.
        of(unsafe { libc::pthread_cond_wait(self.condition(), self.mutex()) })
    }

    /// Wakes one waiter, `pthread_cond_signal(3)`. Errors: the errno.
    pub fn signal(&self) -> Result<(), i32> {
        // SAFETY: an initialized condition variable that lives as long as `self`.
        of(unsafe { libc::pthread_cond_signal(self.condition()) })
    }

    /// Wakes all waiters, `pthread_cond_broadcast(3)`. Errors: the errno.
    pub fn broadcast(&self) -> Result<(), i32> {
        // SAFETY: an initialized condition variable that lives as long as `self`.
        of(unsafe { libc::pthread_cond_broadcast(self.condition()) })
    }
}

impl Drop for Mutex {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; no reference into it outlives `self`.
        unsafe { libc::munmap(self.0.as_ptr().cast(), page_bytes()) };
    }
}

/// The result of a function of POSIX threads, which returns its errno.
#[inline]
fn of(errno: libc::c_int) -> Result<(), i32> {
    if errno == 0 { Ok(()) } else { Err(errno) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_locks_and_a_robust_one_survives_its_owner() {
        for kind in [MutexKind::Plain, MutexKind::Inheriting, MutexKind::Robust] {
            let mutex = Mutex::new(kind).unwrap();
            assert_eq!((mutex.lock(), mutex.unlock()), (Ok(()), Ok(())), "{kind:?}");
            assert_eq!((mutex.signal(), mutex.broadcast()), (Ok(()), Ok(())));
        }
        let mutex = Mutex::new(MutexKind::Robust).unwrap();
        std::thread::scope(|scope| scope.spawn(|| mutex.lock()).join().unwrap()).unwrap();
        assert_eq!(mutex.lock(), Err(libc::EOWNERDEAD));
        assert_eq!((mutex.make_consistent(), mutex.unlock(), mutex.lock()), (Ok(()), Ok(()), Ok(())));
    }
}
