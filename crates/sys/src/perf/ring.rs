//! The ring that the kernel fills with records of perf events (perf_event_open(2), "MMAP layout").

use crate::check;
use crate::mapping::page_bytes;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Offsets in `struct perf_event_mmap_page`: where the kernel writes next, and up to where it was read.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;
/// Size of `struct perf_event_header`.
const HEADER: usize = 8;

/// A mapped ring: one page of positions, then the records.
#[derive(Debug)]
pub(super) struct Ring {
    start: NonNull<u8>,
    page: usize,
    /// Size of the records, a power of two.
    size: usize,
    /// A record, as one piece.
    record: Vec<u8>,
}

// SAFETY: the mapping belongs to this value alone and may be used from any one thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of an event, with `size` bytes of records.
    pub(super) fn of(event: &OwnedFd, size: usize) -> io::Result<Ring> {
        let page = page_bytes();
        // Larger pages make a larger ring.
        let size = size.max(page).next_power_of_two();
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory (mmap(2)).
        let start = unsafe { libc::mmap(std::ptr::null_mut(), page + size, protection, flags, event.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ring { start, page, size, record: Vec::new() })
    }

    /// A position in the first page.
    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: `offset` lies within the first page, which is mapped as long as `self` lives.
        let at = unsafe { self.start.add(offset) };
        // SAFETY: it is aligned to 8 bytes, writable, and shared with the kernel, which uses it atomically.
        unsafe { AtomicU64::from_ptr(at.as_ptr().cast()) }
    }

    /// Copies `into.len()` bytes from position `from`, across the end of the ring.
    fn copy(&self, from: u64, into: &mut [u8]) {
        let mask = self.size - 1;
        #[expect(clippy::cast_possible_truncation, reason = "only the lower bits count")]
        let at = from as usize & mask;
        let first = into.len().min(self.size - at);
        let (before, after) = into.split_at_mut(first);
        for (offset, part) in [(at, before), (0, after)] {
            // SAFETY: `offset` lies within the mapping.
            let source = unsafe { self.start.add(self.page + offset) };
            // SAFETY: `offset + part.len()` is at most `size`; the kernel does not write here before the tail moves.
            unsafe { source.copy_to_nonoverlapping(NonNull::from(&mut *part).cast(), part.len()) };
        }
    }

    /// Passes on all whole records, and gives their space back.
    pub(super) fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        let head = self.position(DATA_HEAD).load(Ordering::Acquire);
        let mut tail = self.position(DATA_TAIL).load(Ordering::Relaxed);
        let mut record = std::mem::take(&mut self.record);
        while head.wrapping_sub(tail) >= HEADER as u64 {
            let mut header = [0; HEADER];
            self.copy(tail, &mut header);
            let length = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            if length < HEADER || length > self.size || head.wrapping_sub(tail) < length as u64 {
                // Never written by a kernel; what follows has no known beginning.
                tail = head;
                break;
            }
            record.resize(length, 0);
            self.copy(tail, &mut record);
            take(&record);
            tail = tail.wrapping_add(length as u64);
        }
        self.position(DATA_TAIL).store(tail, Ordering::Release);
        self.record = record;
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that this value made, which no borrow outlives.
        let result = unsafe { libc::munmap(self.start.as_ptr().cast(), self.page + self.size) };
        debug_assert!(check(result.into()).is_ok());
    }
}
