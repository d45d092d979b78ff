//! Mappings of memory and files that are measured.

use crate::check;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// Size of a small page of the running kernel, bytes: 4, 16 or 64 KiB.
#[inline]
pub fn page_bytes() -> usize {
    // SAFETY: the call takes an integer only.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // It never fails (sysconf(3)).
    usize::try_from(bytes).unwrap_or(4096)
}

/// A mapping owned by this value; unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// Maps `bytes` of unpopulated memory in small pages only, `mmap(2)`. Errors: when there is no memory.
    #[inline]
    pub fn anonymous(bytes: usize) -> io::Result<Mapping> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no other memory (mmap(2)).
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        Mapping::of(start, bytes)
    }

    /// Maps the first `bytes` of a file for reading; its pages are faulted in one by one.
    #[inline]
    pub fn of_file(file: &File, bytes: usize) -> io::Result<Mapping> {
        let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory (mmap(2)).
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, file.as_raw_fd(), 0) };
        Mapping::of(start, bytes)
    }

    fn of(start: *mut libc::c_void, bytes: usize) -> io::Result<Mapping> {
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, bytes })
    }

    /// Restricts the mapping to small pages, `MADV_NOHUGEPAGE`; without effect where the kernel has no huge pages.
    pub fn in_small_pages(&self) {
        // SAFETY: exactly the mapping; the advice changes no contents. A kernel without huge pages refuses it.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, libc::MADV_NOHUGEPAGE) };
    }

    /// Writes a byte to each page of an anonymous mapping.
    #[inline]
    pub fn touch(&mut self) {
        for offset in (0..self.bytes).step_by(page_bytes()) {
            // SAFETY: `offset` lies within the mapping.
            let page = unsafe { self.start.add(offset) };
            // SAFETY: the page belongs to the mapping, which is writable and has no other user.
            unsafe { page.write_volatile(1) };
        }
    }

    /// Sum of the mapping's 64-bit words, all of which are read. Another process may write to a mapped file meanwhile;
    /// one that cuts it ends this process (SIGBUS, mmap(2)).
    #[inline]
    pub fn sum(&self) -> u64 {
        (0..self.bytes / size_of::<u64>()).fold(0, |sum: u64, index| {
            // SAFETY: the word lies within the mapping.
            let word = unsafe { self.start.cast::<u64>().add(index) };
            // SAFETY: the mapping is readable and page-aligned. The read is volatile and makes no reference, because
            // the value may change.
            sum.wrapping_add(unsafe { word.read_volatile() })
        })
    }
}

impl Drop for Mapping {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: exactly the mapping; no reference into it outlives `self`.
        let _ = check(unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) }.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_through_its_mapping() {
        let path = std::env::temp_dir().join(format!("punctual-mapping-{}", std::process::id()));
        let words: Vec<u8> = (0..1024_u64).flat_map(u64::to_ne_bytes).collect();
        std::fs::write(&path, &words).unwrap();
        let file = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(Mapping::of_file(&file, words.len()).unwrap().sum(), 1023 * 1024 / 2);
        let mut memory = Mapping::anonymous(4 * page_bytes()).unwrap();
        memory.in_small_pages();
        memory.touch();
        assert_eq!(memory.sum(), 4, "a byte of each page");
    }
}
