//! Signals with handlers: installing one, sending a signal to the calling thread, and faults on a read-only page.

use crate::check;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

/// Signals and faults handled so far by this process.
static HANDLED: AtomicU64 = AtomicU64::new(0);
/// Faults that remain before the page becomes writable.
static FAULTS_LEFT: AtomicU64 = AtomicU64::new(0);
static PAGE: AtomicPtr<libc::c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Length of the mapping, bytes; the kernel rounds it up to a page.
const MAPPED_BYTES: usize = 1;

/// Number of signals and faults that this process has handled.
pub fn n_handled() -> u64 {
    HANDLED.load(Relaxed)
}

extern "C" fn count(_signal: libc::c_int) {
    HANDLED.fetch_add(1, Relaxed);
}

/// Counts a fault of the page. The return repeats the write, which faults again until the page is writable. Any other
/// fault ends the process when it is repeated.
extern "C" fn count_fault(_signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo_t to a handler with SA_SIGINFO (sigaction(2)).
    let info = unsafe { &*info };
    // SAFETY: that of SIGSEGV has an address.
    if unsafe { info.si_addr() } != PAGE.load(Relaxed) {
        // SAFETY: SIG_DFL is a valid disposition, and signal is async-signal-safe.
        unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
        return;
    }
    HANDLED.fetch_add(1, Relaxed);
    if FAULTS_LEFT.fetch_sub(1, Relaxed) <= 1 {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the page is one that `Faults` has mapped; mprotect is a plain system call.
        unsafe { libc::mprotect(PAGE.load(Relaxed), MAPPED_BYTES, protection) };
    }
}

/// A signal handler; dropping it restores the previous one.
pub struct Handler {
    signal: libc::c_int,
    action: libc::sigaction,
    before: libc::sigaction,
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handler").field("signal", &self.signal).finish_non_exhaustive()
    }
}

impl Handler {
    /// A handler of SIGUSR1 that counts.
    pub fn counting() -> io::Result<Handler> {
        Handler::of(libc::SIGUSR1, count as *const () as libc::sighandler_t, 0)
    }

    fn of(signal: libc::c_int, handle: libc::sighandler_t, flags: libc::c_int) -> io::Result<Handler> {
        let action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: all zeroes is a valid sigaction: no flags, an empty mask.
        let mut action = unsafe { action.assume_init() };
        (action.sa_sigaction, action.sa_flags) = (handle, flags);
        let before = install(signal, &action)?;
        Ok(Handler { signal, action, before })
    }

    /// Installs the handler once more, `sigaction(2)`.
    #[inline]
    pub fn install(&self) -> io::Result<()> {
        install(self.signal, &self.action).map(drop)
    }

    /// Sends the signal to the calling thread, which has handled it when this returns, `tgkill(2)`.
    #[inline]
    pub fn send(&self, to: &CallingThread) -> io::Result<()> {
        // SAFETY: the call takes integers; the signal has a handler.
        check(unsafe { libc::syscall(libc::SYS_tgkill, to.process, to.thread, self.signal) }).map(drop)
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        let _ = install(self.signal, &self.before);
    }
}

#[inline]
fn install(signal: libc::c_int, action: &libc::sigaction) -> io::Result<libc::sigaction> {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: `action` is initialized; its handler only counts and may change the protection of our own page, both of
    // which are async-signal-safe. `before` is memory for the old action.
    check(unsafe { libc::sigaction(signal, action, before.as_mut_ptr()) }.into())?;
    // SAFETY: all zeroes is a valid sigaction, and the kernel has filled it in.
    Ok(unsafe { before.assume_init() })
}

/// The calling thread, as `tgkill(2)` takes it.
#[derive(Debug, Clone, Copy)]
pub struct CallingThread {
    process: libc::pid_t,
    thread: libc::pid_t,
}

impl CallingThread {
    /// Reads the ids.
    pub fn now() -> CallingThread {
        CallingThread { process: std::process::id().cast_signed(), thread: crate::thread::id().cast_signed() }
    }
}

/// A read-only page, and a handler for the faults of writing to it. Only one can exist at a time.
#[derive(Debug)]
pub struct Faults {
    /// Dropped first: the handler must not see another page at this address.
    _handler: Handler,
    page: Page,
}

/// A mapped page, the one of [`PAGE`].
#[derive(Debug)]
struct Page(NonNull<u8>);

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: exactly the page that was mapped; no reference to it is left.
        unsafe { libc::munmap(self.0.as_ptr().cast(), MAPPED_BYTES) };
        PAGE.store(std::ptr::null_mut(), Relaxed);
    }
}

impl Faults {
    /// Maps the page and installs the handler. Errors: `EBUSY` while another one exists, or when the kernel refuses.
    pub fn new() -> io::Result<Faults> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no other memory (mmap(2)).
        let page = unsafe { libc::mmap(std::ptr::null_mut(), MAPPED_BYTES, libc::PROT_READ, flags, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if PAGE.compare_exchange(std::ptr::null_mut(), page, Relaxed, Relaxed).is_err() {
            // SAFETY: exactly the page that was just mapped.
            unsafe { libc::munmap(page, MAPPED_BYTES) };
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
        let page = Page(NonNull::new(page.cast()).ok_or(io::ErrorKind::OutOfMemory)?);
        let handle = count_fault as *const () as libc::sighandler_t;
        Ok(Faults { _handler: Handler::of(libc::SIGSEGV, handle, libc::SA_SIGINFO)?, page })
    }

    /// Writes to the page: `n` faults, the last of which makes it writable. `n` is at least 1. One call of
    /// `mprotect(2)` comes before the faults and one in the last of them. Errors: when the page cannot be protected.
    pub fn take(&mut self, n: u64) -> io::Result<()> {
        FAULTS_LEFT.store(n, Relaxed);
        let page = self.page.0.as_ptr().cast();
        // SAFETY: exactly the page that was mapped above.
        check(unsafe { libc::mprotect(page, MAPPED_BYTES, libc::PROT_READ) }.into())?;
        // SAFETY: the page is ours; the faults of writing to it are handled until it may be written to.
        unsafe { self.page.0.write_volatile(1) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_and_faults_are_handled_as_often_as_asked() {
        let before = n_handled();
        let handler = Handler::counting().unwrap();
        handler.install().unwrap();
        let me = CallingThread::now();
        (0..3).for_each(|_| handler.send(&me).unwrap());
        assert_eq!(n_handled() - before, 3);
        let mut faults = Faults::new().unwrap();
        for n in [1, 2, 64] {
            let before = n_handled();
            faults.take(n).unwrap();
            assert_eq!(n_handled() - before, n);
        }
        assert_eq!(Faults::new().unwrap_err().raw_os_error(), Some(libc::EBUSY));
        drop(faults);
        Faults::new().unwrap().take(1).unwrap();
    }
}
