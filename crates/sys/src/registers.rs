//! Registers of a device mapped into this process, and the counter that a guest's devices follow.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// Registers in a mapped file, like `resource0` of a PCI device; unmapped when dropped.
#[derive(Debug)]
pub struct Registers {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, and is not bound to the thread that made it.
unsafe impl Send for Registers {}

impl Registers {
    /// Maps the first `bytes` of `file`: a regular file, as those of sysfs are, and not all memory, as `/dev/mem` is.
    /// The mapping is read and written as other processes do with files: what a device does then is its driver's part.
    ///
    /// # Errors
    /// The kernel's error: `EINVAL` when the device has fewer bytes, or for another kind of file, `EPERM` without
    /// `CAP_SYS_RAWIO` or under lockdown.
    pub fn map(file: &File, bytes: usize) -> io::Result<Registers> {
        if !file.metadata()?.is_file() {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory (mmap(2)); `file` is open.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Registers { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, bytes })
    }

    /// Address of the register of `size` bytes at offset `at`; `None` beyond the mapping or when misaligned.
    #[inline]
    fn place(&self, at: usize, size: usize) -> Option<*mut u8> {
        let is_inside = at.checked_add(size).is_some_and(|end| end <= self.bytes) && at.is_multiple_of(size);
        is_inside.then(|| self.start.as_ptr().wrapping_add(at))
    }

    /// Reads 32 bits at offset `at`; `None` beyond the mapping.
    #[inline]
    #[must_use]
    pub fn read_u32(&self, at: usize) -> Option<u32> {
        let place = self.place(at, size_of::<u32>())?.cast::<u32>();
        // SAFETY: the address is aligned and inside the mapping, which lives as long as `self`; nothing else in this
        // process writes to it.
        Some(unsafe { place.read_volatile() })
    }

    /// Writes 32 bits at offset `at`; ignored beyond the mapping.
    #[inline]
    pub fn write_u32(&self, at: usize, value: u32) {
        let Some(place) = self.place(at, size_of::<u32>()) else { return };
        // SAFETY: as in `read_u32`.
        unsafe { place.cast::<u32>().write_volatile(value) }
    }

    /// Reads 64 bits at offset `at`; `None` beyond the mapping.
    #[inline]
    #[must_use]
    pub fn read_u64(&self, at: usize) -> Option<u64> {
        let place = self.place(at, size_of::<u64>())?.cast::<u64>();
        // SAFETY: as in `read_u32`.
        Some(unsafe { place.read_volatile() })
    }

    /// Writes one byte at offset `at`; ignored beyond the mapping.
    #[inline]
    pub fn write_u8(&self, at: usize, value: u8) {
        let Some(place) = self.place(at, size_of::<u8>()) else { return };
        // SAFETY: as in `read_u32`.
        unsafe { place.write_volatile(value) }
    }

    /// Writes 64 bits at offset `at`; ignored beyond the mapping.
    #[inline]
    pub fn write_u64(&self, at: usize, value: u64) {
        let Some(place) = self.place(at, size_of::<u64>()) else { return };
        // SAFETY: as in `read_u32`.
        unsafe { place.cast::<u64>().write_volatile(value) }
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `map`; no reference into it is ever returned.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// The time stamp counter, in its own unit: in virtual time a nanosecond of the clock that QEMU's devices follow.
#[cfg(target_arch = "x86_64")]
#[inline]
#[must_use]
pub fn time_stamp_counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and no kernel of the lab forbids it in user space.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_is_where_it_is_and_nothing_is_beyond_the_last() {
        let path = std::env::temp_dir().join(["punctual-registers-", &std::process::id().to_string()].concat());
        std::fs::write(&path, [7_u8; 4096]).unwrap();
        let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        let registers = Registers::map(&file, 4096).unwrap();
        registers.write_u32(4, 0x0102_0304);
        registers.write_u64(4088, u64::MAX);
        registers.write_u64(4092, 0);
        registers.write_u32(4096, 0);
        let read = [0, 4, 4092, 4096, 2, usize::MAX].map(|at| registers.read_u32(at));
        assert_eq!(read, [Some(0x0707_0707), Some(0x0102_0304), Some(u32::MAX), None, None, None]);
        registers.write_u8(8, 0xab);
        registers.write_u8(4096, 0);
        assert_eq!(
            [8, 4092, 4096].map(|at| registers.read_u64(at)),
            [Some(u64::from_ne_bytes([0xab, 7, 7, 7, 7, 7, 7, 7])), None, None]
        );
        std::fs::remove_file(path).unwrap();
        let all = File::options().read(true).write(true).open("/dev/zero").unwrap();
        assert_eq!(Registers::map(&all, 4096).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_time_stamp_counter_advances() {
        let earlier = time_stamp_counter();
        assert!(time_stamp_counter() > earlier);
    }
}
