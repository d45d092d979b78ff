//! Registers of a device mapped into this process, and the counter that a guest's devices follow.

use crate::check;
use crate::mapping::page_bytes;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;

/// Registers in a mapped file, like `resource0` of a PCI device; unmapped when dropped.
#[derive(Debug)]
pub struct Registers {
    start: NonNull<u8>,
    bytes: usize,
    /// Part of the mapping that is the device's: a page may have several.
    own: Range<usize>,
    may_write: MayWrite,
}

/// Whether a value may be written at an offset: the device then writes to no memory of others.
type MayWrite = fn(usize, u64) -> bool;

/// Devices of guests that write to no other memory, by vendor, device and file: shared memory, the panic device, and
/// `edu`, whose DMA only reads (QEMU, docs/specs/ivshmem-spec.rst, pvpanic.rst, edu.rst).
const DEVICES: [([&str; 3], MayWrite); 3] = [
    (["0x1af4", "0x1110", "resource2"], |_, _| true),
    (["0x1b36", "0x0011", "resource0"], |_, _| true),
    (["0x1234", "0x11e8", "resource0"], |at, value| at != EDU_COMMAND || value & EDU_TO_MEMORY == 0),
];

/// Register of the command of the DMA of `edu`, and its bit for a DMA to memory.
const EDU_COMMAND: usize = 0x98;
const EDU_TO_MEMORY: u64 = 2;

/// The part of the mapping and what may be written, of the file `name` of the PCI device with this directory in sysfs.
fn of_device(directory: &Path, name: &str) -> Option<(Range<usize>, MayWrite)> {
    let text = |file: &str| fs::read_to_string(directory.join(file)).ok();
    let (vendor, device) = (text("vendor")?, text("device")?);
    let (_, may_write) = DEVICES.into_iter().find(|(ids, _)| *ids == [vendor.trim(), device.trim(), name])?;
    let bar = name.strip_prefix("resource")?.parse().ok()?;
    let resources = text("resource")?;
    let edges = resources.lines().nth(bar)?.split_whitespace();
    let mut edges = edges.map_while(|edge| u64::from_str_radix(edge.strip_prefix("0x")?, 16).ok());
    let (first, last) = (edges.next()?, edges.next()?);
    let begin = usize::try_from(first % page_bytes() as u64).ok()?;
    let bytes = usize::try_from(last.checked_sub(first)?.checked_add(1)?).ok()?;
    Some((begin..begin.checked_add(bytes)?, may_write))
}

// SAFETY: the mapping belongs to this value alone, and is not bound to the thread that made it.
unsafe impl Send for Registers {}

impl Registers {
    /// Maps the first `bytes` of `file`: a regular file that has them, or memory of a device that writes to no other.
    /// Errors: the kernel's error: `EINVAL` when the device has fewer bytes, or for another file, `EPERM` without
    /// `CAP_SYS_RAWIO` or under lockdown.
    pub fn map(file: &File, bytes: usize) -> io::Result<Registers> {
        let (own, may_write) = permitted(file, bytes)?.ok_or(io::Error::from_raw_os_error(libc::EINVAL))?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory (mmap(2)); `file` is open.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let own = own.start..own.end.min(bytes);
        Ok(Registers { start, bytes, own, may_write })
    }

    /// Address of the register of `size` bytes at offset `at`; `None` beyond the device or when misaligned.
    #[inline]
    fn place(&self, at: usize, size: usize) -> Option<*mut u8> {
        let is_inside = at >= self.own.start && at.checked_add(size).is_some_and(|end| end <= self.own.end);
        (is_inside && at.is_multiple_of(size)).then(|| self.start.as_ptr().wrapping_add(at))
    }

    /// The same for a value that may be written there.
    #[inline]
    fn place_of(&self, at: usize, size: usize, value: u64) -> Option<*mut u8> {
        self.place(at, size).filter(|_| (self.may_write)(at, value))
    }

    /// Reads 32 bits at offset `at`; `None` beyond the mapping.
    #[inline]
    pub fn read_u32(&self, at: usize) -> Option<u32> {
        let place = self.place(at, size_of::<u32>())?.cast::<u32>();
        // SAFETY: the address is aligned and inside the mapping, which lives as long as `self`; nothing else in this
        // process writes to it.
        Some(unsafe { place.read_volatile() })
    }

    /// Writes 32 bits at offset `at`; ignored beyond the mapping.
    #[inline]
    pub fn write_u32(&self, at: usize, value: u32) {
        let Some(place) = self.place_of(at, size_of::<u32>(), value.into()) else { return };
        // SAFETY: as in `read_u32`.
        unsafe { place.cast::<u32>().write_volatile(value) }
    }

    /// Reads 64 bits at offset `at`; `None` beyond the mapping.
    #[inline]
    pub fn read_u64(&self, at: usize) -> Option<u64> {
        let place = self.place(at, size_of::<u64>())?.cast::<u64>();
        // SAFETY: as in `read_u32`.
        Some(unsafe { place.read_volatile() })
    }

    /// Writes one byte at offset `at`; ignored beyond the mapping.
    #[inline]
    pub fn write_u8(&self, at: usize, value: u8) {
        let Some(place) = self.place_of(at, size_of::<u8>(), value.into()) else { return };
        // SAFETY: as in `read_u32`.
        unsafe { place.write_volatile(value) }
    }

    /// Writes 64 bits at offset `at`; ignored beyond the mapping.
    #[inline]
    pub fn write_u64(&self, at: usize, value: u64) {
        let Some(place) = self.place_of(at, size_of::<u64>(), value) else { return };
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

/// What may be read and written of the first `bytes` of a file; `None` for one that may not be mapped.
fn permitted(file: &File, bytes: usize) -> io::Result<Option<(Range<usize>, MayWrite)>> {
    /// Magic numbers of file systems, statfs(2).
    const SYSFS: i64 = 0x6265_6572;
    const PROC: i64 = 0x9fa0;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(None);
    }
    // SAFETY: all zero bytes are a valid value of this structure of integers.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and the structure lives through the call, which only fills it.
    check(unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut about) }.into())?;
    Ok(match about.f_type as i64 {
        SYSFS => {
            let path = fs::read_link(["/proc/self/fd/", &file.as_raw_fd().to_string()].concat())?;
            let name = path.file_name().and_then(OsStr::to_str);
            path.parent().zip(name).and_then(|(directory, name)| of_device(directory, name))
        }
        PROC => None,
        // The lab's side of shared memory.
        _ => (metadata.len() >= bytes as u64).then_some((0..bytes, |_, _| true)),
    })
}

/// The time stamp counter, in its own unit: in virtual time a nanosecond of the clock that QEMU's devices follow.
#[cfg(target_arch = "x86_64")]
#[inline]
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
    }

    #[test]
    fn other_files_are_not_mapped() {
        let path = std::env::temp_dir().join(["punctual-no-registers-", &std::process::id().to_string()].concat());
        fs::write(&path, [7_u8; 4095]).unwrap();
        for other in ["/dev/zero", "/proc/self/mem", "/sys/devices/system/cpu/online", path.to_str().unwrap()] {
            let refused = Registers::map(&File::open(other).unwrap(), 4096).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EINVAL), "{other}");
        }
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn devices_are_those_that_write_to_no_memory() {
        let place = std::env::temp_dir().join(["punctual-devices-", &std::process::id().to_string()].concat());
        fs::create_dir_all(&place).unwrap();
        let write = |file: &str, text: &str| fs::write(place.join(file), text).unwrap();
        write("resource", "0xfebf1010 0xfebf101f 0x40200\n0x0 0x0 0x0\n0x8000000000 0x8003ffffff 0x14220c\n");
        for (vendor, device, file, own, to_memory) in [
            ("0x1b36", "0x0011", "resource0", Some(0x10..0x20), true),
            ("0x1b36", "0x0011", "resource2", None, false),
            ("0x1af4", "0x1110", "resource2", Some(0..64 << 20), true),
            ("0x1af4", "0x1110", "resource0", None, false),
            ("0x1234", "0x11e8", "resource0", Some(0x10..0x20), false),
            ("0x8086", "0x10d3", "resource0", None, false),
        ] {
            write("vendor", &[vendor, "\n"].concat());
            write("device", &[device, "\n"].concat());
            let found = of_device(&place, file);
            assert_eq!(found.as_ref().map(|(own, _)| own.clone()), own, "{vendor} {file}");
            let may = |value: u64| found.as_ref().is_some_and(|(_, may_write)| may_write(EDU_COMMAND, value));
            assert_eq!((may(3), may(5)), (to_memory, own.is_some()), "{vendor} {file}");
        }
        fs::remove_dir_all(place).unwrap();
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_time_stamp_counter_advances() {
        let earlier = time_stamp_counter();
        assert!(time_stamp_counter() > earlier);
    }
}
