//! Memory and files that are mapped to be measured.

use crate::check;
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// Bytes of the smallest page there is.
pub const PAGE_BYTES: usize = 4096;

/// Memory of its own, given back when dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// Maps `bytes` of memory of which nothing is there yet, in small pages only, `mmap(2)`.
    ///
    /// # Errors
    /// When there is no memory.
    #[inline]
    pub fn anonymous(bytes: usize) -> io::Result<Mapping> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no other memory (mmap(2)).
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        Mapping::of(start, bytes)
    }

    /// Maps the first `bytes` of a file to be read; its pages are filled in one by one.
    ///
    /// # Errors
    /// What the kernel says.
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

    /// Has it in small pages only, `MADV_NOHUGEPAGE`; without effect where there are no huge ones.
    pub fn in_small_pages(&self) {
        // SAFETY: exactly the mapping; the advice changes no contents. A kernel without huge pages refuses it.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, libc::MADV_NOHUGEPAGE) };
    }

    /// Writes a byte to each page of memory of our own.
    #[inline]
    pub fn touch(&mut self) {
        for offset in (0..self.bytes).step_by(PAGE_BYTES) {
            // SAFETY: `offset` lies within the mapping.
            let page = unsafe { self.start.add(offset) };
            // SAFETY: the page belongs to the mapping, which is writable and used by nobody else.
            unsafe { page.write_volatile(1) };
        }
    }

    /// The sum of its 64-bit words, all of which are read.
    #[must_use]
    #[inline]
    pub fn sum(&self) -> u64 {
        // SAFETY: the mapping is readable, page-aligned, and as long as is said.
        let words = unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast::<u64>(), self.bytes / 8) };
        black_box(words).iter().fold(0, |sum: u64, word| sum.wrapping_add(*word))
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
        let mut memory = Mapping::anonymous(4 * PAGE_BYTES).unwrap();
        memory.in_small_pages();
        memory.touch();
        assert_eq!(memory.sum(), 4, "a byte of each page");
    }
}
