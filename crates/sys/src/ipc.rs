//! Wake-ups between two processes: shared words with futexes, event files, message queues, semaphores.

use crate::check;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// An event file, `eventfd(2)`: a write of 8 bytes unblocks a read. Errors: `ENOSYS` when the kernel has no eventfd.
pub fn event_file() -> io::Result<File> {
    event_file_with(0)
}

/// As [`event_file`]; each read takes one (`EFD_SEMAPHORE`), not all that was written.
pub fn event_semaphore() -> io::Result<File> {
    event_file_with(libc::EFD_SEMAPHORE)
}

fn event_file_with(flags: libc::c_int) -> io::Result<File> {
    // SAFETY: the call takes integers only.
    let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | flags) }.into())?;
    // SAFETY: the kernel has just returned this descriptor, which has no other owner.
    Ok(unsafe { owned(fd)? }.into())
}

/// # Safety
/// The kernel has just returned this descriptor, and only the caller owns it.
unsafe fn owned(fd: libc::c_long) -> io::Result<OwnedFd> {
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Futex words that processes made by `fork` share, each in a cache line of its own.
#[derive(Debug)]
pub struct SharedWords {
    words: NonNull<Line>,
    len: usize,
}

#[derive(Debug)]
#[repr(align(64))]
struct Line(AtomicU32);

impl SharedWords {
    /// `len` words, all 0. Errors: when there is no memory.
    pub fn new(len: usize) -> io::Result<SharedWords> {
        let (bytes, protection) = (len.max(1) * size_of::<Line>(), libc::PROT_READ | libc::PROT_WRITE);
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no other memory (mmap(2)).
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(SharedWords { words: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, len })
    }

    fn word(&self, index: usize) -> io::Result<&AtomicU32> {
        // SAFETY: the mapping holds `len` lines, is zero-filled (0 is a valid AtomicU32), page-aligned, and lives as
        // long as `self`; other processes write to it through atomics only.
        let lines = unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.len) };
        lines.get(index).map(|line| &line.0).ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    /// Adds one to a word and wakes one waiter, `FUTEX_WAKE` (futex(2)).
    #[inline]
    pub fn post(&self, index: usize) -> io::Result<()> {
        let word = self.word(index)?;
        word.fetch_add(1, SeqCst);
        // SAFETY: `word` is a valid futex word that outlives the call; the other arguments are integers.
        check(unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) }).map(drop)
    }

    /// Waits until a word is above 0 and subtracts one, `FUTEX_WAIT` (futex(2)).
    #[inline]
    pub fn take(&self, index: usize) -> io::Result<()> {
        let word = self.word(index)?;
        loop {
            if word.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1)).is_ok() {
                return Ok(());
            }
            let (wait, none) = (libc::FUTEX_WAIT, std::ptr::null::<libc::c_void>());
            // SAFETY: `word` is a valid futex word that outlives the call; a null timeout is allowed.
            match check(unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wait, 0, none) }) {
                Err(err) if !matches!(err.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => return Err(err),
                _ => {}
            }
        }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        let bytes = self.len.max(1) * size_of::<Line>();
        // SAFETY: exactly the mapping made in `new`; no reference into it outlives `self`.
        unsafe { libc::munmap(self.words.as_ptr().cast(), bytes) };
    }
}

/// A POSIX message queue without a name, mq_overview(7).
#[derive(Debug)]
pub struct MessageQueue(OwnedFd);

impl MessageQueue {
    /// A queue of 8 one-byte messages. `name` begins with a slash; it is unlinked at once. Errors: `ENOSYS` when the
    /// kernel has no message queues.
    pub fn new(name: &CStr) -> io::Result<MessageQueue> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        let attributes = std::mem::MaybeUninit::<libc::mq_attr>::zeroed();
        // SAFETY: all zeroes is a valid mq_attr.
        let mut attributes = unsafe { attributes.assume_init() };
        (attributes.mq_maxmsg, attributes.mq_msgsize) = (8, 1);
        let mode: libc::mode_t = 0o600;
        // SAFETY: name and attributes are initialized and outlive the call.
        let queue = check(unsafe { libc::mq_open(name.as_ptr(), flags, mode, &raw mut attributes) }.into())?;
        // SAFETY: the kernel has just returned this descriptor, which has no other owner.
        let queue = unsafe { owned(queue)? };
        // SAFETY: `name` ends with NUL.
        check(unsafe { libc::mq_unlink(name.as_ptr()) }.into())?;
        Ok(MessageQueue(queue))
    }

    /// Sends a byte, `mq_send(3)`.
    #[inline]
    pub fn send(&self) -> io::Result<()> {
        let byte = [0_u8];
        // SAFETY: `byte` has the length given and outlives the call.
        check(unsafe { libc::mq_send(self.0.as_raw_fd(), byte.as_ptr().cast(), byte.len(), 0) }.into()).map(drop)
    }

    /// Waits for a byte, `mq_receive(3)`.
    #[inline]
    pub fn receive(&self) -> io::Result<()> {
        let mut byte = [0_u8];
        let (start, len, none) = (byte.as_mut_ptr().cast(), byte.len(), std::ptr::null_mut());
        // SAFETY: `byte` has the length given and outlives the call; a null priority is allowed.
        let bytes = unsafe { libc::mq_receive(self.0.as_raw_fd(), start, len, none) };
        if bytes == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Two System V semaphores at 0, `semget(2)`; removed when the process that made them drops them. The key contains the
/// maker's process id, so that the set can be found after the maker was killed ([`maker_of_semaphores`]).
#[derive(Debug)]
pub struct Semaphores {
    set: libc::c_int,
    maker: u32,
}

impl Semaphores {
    /// A new pair. Errors: `ENOSYS` when the kernel has no semaphores, `ENOSPC` at the limit of sets.
    pub fn new() -> io::Result<Semaphores> {
        let maker = std::process::id();
        let get = |key| {
            let flags = libc::IPC_CREAT | libc::IPC_EXCL | 0o600;
            // SAFETY: the call takes integers only.
            check(unsafe { libc::semget(key, IN_A_SET, flags) }.into())
        };
        let set = match get((KEYS | maker & PID_BITS).cast_signed()) {
            // Left by a killed process with the same id, or another set of this process.
            Err(err) if err.raw_os_error() == Some(libc::EEXIST) => get(libc::IPC_PRIVATE)?,
            set => set?,
        };
        Ok(Semaphores { set: i32::try_from(set).map_err(io::Error::other)?, maker })
    }

    /// Adds one to a semaphore, `semop(2)`.
    #[inline]
    pub fn post(&self, which: u16) -> io::Result<()> {
        self.change(which, 1)
    }

    /// Waits until a semaphore is above 0 and subtracts one, `semop(2)`.
    #[inline]
    pub fn take(&self, which: u16) -> io::Result<()> {
        self.change(which, -1)
    }

    #[inline]
    fn change(&self, which: u16, by: i16) -> io::Result<()> {
        let mut change = libc::sembuf { sem_num: which, sem_op: by, sem_flg: 0 };
        // SAFETY: one valid sembuf, as the count says, which outlives the call.
        check(unsafe { libc::semop(self.set, &raw mut change, 1) }.into()).map(drop)
    }
}

/// The keys of [`Semaphores`]: ten marker bits, and a process id of at most 22 bits (proc_sys_kernel(5), pid_max).
const KEYS: u32 = 0x1c5 << 22;
const PID_BITS: u32 = (1 << 22) - 1;
/// Semaphores in a set. Two are used; the unusual number distinguishes the set from those of other programs.
const IN_A_SET: libc::c_int = 7;

/// The process that made a set with this key and number of System V semaphores as [`Semaphores`]; `None` for sets of
/// other programs.
pub fn maker_of_semaphores(key: u32, semaphores: u32) -> Option<u32> {
    (key & !PID_BITS == KEYS && i64::from(semaphores) == i64::from(IN_A_SET)).then_some(key & PID_BITS)
}

/// Removes a set of System V semaphores, `semctl(2)`. Errors: `EPERM` for a set of another user, `EINVAL` when there is
/// no such set.
pub fn remove_semaphores(set: i32) -> io::Result<()> {
    // SAFETY: the call takes integers only; no fourth argument is read for IPC_RMID.
    check(unsafe { libc::semctl(set, 0, libc::IPC_RMID) }.into()).map(drop)
}

impl Semaphores {
    /// Removes them: waits and posts end with `EIDRM` or `EINVAL`.
    pub fn remove(&self) {
        let _ = remove_semaphores(self.set);
    }
}

impl Drop for Semaphores {
    fn drop(&mut self) {
        if self.maker == std::process::id() {
            self.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn sets_of_other_programs_have_no_maker() {
        for (key, semaphores, maker) in [
            (KEYS | 4711, 7, Some(4711)),
            (KEYS | PID_BITS, 7, Some(PID_BITS)),
            (KEYS | 4711, 2, None),
            (0, 7, None),
            (KEYS + PID_BITS + 1, 7, None),
        ] {
            assert_eq!(maker_of_semaphores(key, semaphores), maker, "{key:#x} {semaphores}");
        }
    }

    #[test]
    fn what_was_posted_is_taken_without_waiting() {
        let words = SharedWords::new(2).unwrap();
        words.post(1).unwrap();
        words.take(1).unwrap();
        assert!(words.post(2).is_err(), "there are two");
        // A second set has no key.
        let _first = Semaphores::new().unwrap();
        let semaphores = Semaphores::new().unwrap();
        semaphores.post(1).unwrap();
        semaphores.take(1).unwrap();
        let mut file = event_file().unwrap();
        file.write_all(&7_u64.to_ne_bytes()).unwrap();
        let mut read = [0; 8];
        file.read_exact(&mut read).unwrap();
        assert_eq!(u64::from_ne_bytes(read), 7);
        if let Ok(queue) = MessageQueue::new(c"/punctual-ipc-test") {
            queue.send().unwrap();
            queue.receive().unwrap();
        }
    }
}
