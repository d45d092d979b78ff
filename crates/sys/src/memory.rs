//! Locking memory, memory shared between processes, and reading that of another process.

use crate::check;
use std::hint::black_box;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Locks all memory of the process, now and in future, `mlockall(2)`. Errors: `EPERM` or `ENOMEM` when `RLIMIT_MEMLOCK`
/// is too small and CAP_IPC_LOCK is missing.
pub fn lock_all() -> io::Result<()> {
    // SAFETY: the call takes flags only.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }.into()).map(drop)
}

/// Tries whether this process may lock `bytes` of memory, without using them (`MLOCK_ONFAULT`, mlock2(2)). Capabilities
/// and limits that /proc shows are not enough: those of a user namespace do not count. Errors: `EPERM` or `ENOMEM` as
/// for [`lock_all`]; `ENOSYS` before Linux 4.4.
pub fn try_to_lock(bytes: usize) -> io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches no other memory (mmap(2)).
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: exactly the mapping above.
    let locked = check(unsafe { libc::syscall(libc::SYS_mlock2, start, bytes, libc::MLOCK_ONFAULT) });
    // SAFETY: exactly the mapping above, to which nothing refers.
    unsafe { libc::munmap(start, bytes) };
    locked.map(drop)
}

/// Limits the C library's allocator to one arena. Each further arena reserves 64 MB of address space, which would count
/// as locked memory.
pub fn use_one_arena() {
    // SAFETY: the call takes integers only; its result only reports whether the hint was taken (mallopt(3)).
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Writes to 64 KiB of the calling thread's stack, so that later use of it causes no page faults.
#[inline(never)]
pub fn touch_stack() {
    let mut pages = [0_u8; 64 * 1024];
    pages.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    black_box(&mut pages);
}

/// Reads memory of process `pid` without stopping it: from each address as many bytes as its part has
/// (process_vm_readv(2)). At most 1024 parts (`UIO_MAXIOV`). Errors: `EFAULT` if one is not all mapped; `EPERM` without
/// the right to trace the process (ptrace(2)), `ESRCH` after its end.
pub fn read_of(pid: u32, parts: &mut [(u64, &mut [u8])]) -> io::Result<()> {
    let outside = |address: &u64| usize::try_from(*address).map_err(|_| io::Error::from_raw_os_error(libc::EFAULT));
    let remote = parts.iter().map(|(address, part)| {
        Ok(libc::iovec { iov_base: std::ptr::without_provenance_mut(outside(address)?), iov_len: part.len() })
    });
    let remote = remote.collect::<io::Result<Vec<libc::iovec>>>()?;
    let local =
        parts.iter_mut().map(|(_, part)| libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() });
    let local: Vec<libc::iovec> = local.collect();
    let (n, wanted) = (local.len() as libc::c_ulong, local.iter().map(|part| part.iov_len).sum::<usize>());
    // SAFETY: the kernel writes to the parts in `local` only, which are borrowed until the call returns, and reads the
    // memory of the other process itself; both lists have `n` entries.
    let read = unsafe { libc::process_vm_readv(pid.cast_signed(), local.as_ptr(), n, remote.as_ptr(), n, 0) };
    if read == -1 {
        return Err(io::Error::last_os_error());
    }
    // A part that is not mapped ends the reading.
    if read.unsigned_abs() == wanted { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EFAULT)) }
}

/// Counters that processes made by `fork` share, each in a cache line of its own.
#[derive(Debug)]
pub struct SharedCounters(SharedNumbers);

/// Numbers in a cache line, of which a counter uses the first.
const LINE: usize = 64 / size_of::<AtomicU64>();

impl SharedCounters {
    /// `len` counters at 0. Errors: `ENOMEM`.
    pub fn new(len: usize) -> io::Result<Self> {
        SharedNumbers::new(len.saturating_mul(LINE)).map(SharedCounters)
    }

    /// The counter with this index.
    pub fn get(&self, index: usize) -> Option<&AtomicU64> {
        self.0.as_slice().get(index.checked_mul(LINE)?)
    }

    /// All counters in order.
    pub fn iter(&self) -> impl Iterator<Item = &AtomicU64> {
        self.0.as_slice().iter().step_by(LINE)
    }
}

/// Numbers that processes made by `fork` share, packed: for data that one process writes and another reads, rather than
/// for counters that several write at the same time. Pages that are never written take no memory.
#[derive(Debug)]
pub struct SharedNumbers {
    numbers: NonNull<AtomicU64>,
    len: usize,
}

impl SharedNumbers {
    /// `len` numbers, all 0. Errors: `ENOMEM`.
    pub fn new(len: usize) -> io::Result<Self> {
        let bytes = len.max(1).saturating_mul(size_of::<AtomicU64>());
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no other memory (mmap(2)).
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(SharedNumbers { numbers: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, len })
    }

    /// All numbers in order.
    pub fn as_slice(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds `len` numbers, is zero-filled (0 is a valid AtomicU64), page-aligned, and lives as
        // long as `self`; other processes write to it through atomics only.
        unsafe { std::slice::from_raw_parts(self.numbers.as_ptr(), self.len) }
    }
}

impl Drop for SharedNumbers {
    fn drop(&mut self) {
        let bytes = self.len.max(1) * size_of::<AtomicU64>();
        // SAFETY: exactly the mapping made in `new`; no reference into it outlives `self`.
        unsafe { libc::munmap(self.numbers.as_ptr().cast(), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn a_tried_lock_uses_no_memory_and_stays_not() {
        let locked = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            status.lines().find(|line| line.starts_with("VmLck:")).map(str::to_owned)
        };
        let before = locked();
        try_to_lock(4096).unwrap();
        assert!(try_to_lock(0).is_err(), "an empty mapping");
        assert!(try_to_lock(usize::MAX / 2).is_err(), "more than the address space");
        assert_eq!(locked(), before);
    }

    #[test]
    fn memory_is_read_whole_or_not_at_all() {
        let (first, second) = ([1_u8, 2, 3], [9_u8; 2]);
        let at = |from: &[u8]| from.as_ptr().expose_provenance() as u64;
        let (mut a, mut b, mut c) = ([0; 3], [0; 2], [0; 1]);
        read_of(std::process::id(), &mut [(at(&first), &mut a), (at(&second), &mut b)]).unwrap();
        assert_eq!((a, b), (first, second));
        for wrong in [0, u64::MAX] {
            let read = read_of(std::process::id(), &mut [(at(&first), &mut a), (wrong, &mut c)]);
            assert_eq!(read.unwrap_err().raw_os_error(), Some(libc::EFAULT));
        }
        let gone = read_of(i32::MAX.unsigned_abs(), &mut [(at(&first), &mut a)]);
        assert_eq!(gone.unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn counters_start_at_zero_and_are_as_many_as_asked() {
        let counters = SharedCounters::new(100).unwrap();
        counters.get(99).unwrap().store(7, Relaxed);
        assert!(counters.get(100).is_none());
        assert_eq!(counters.iter().map(|counter| counter.load(Relaxed)).sum::<u64>(), 7);
    }
}
