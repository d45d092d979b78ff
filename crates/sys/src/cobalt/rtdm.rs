//! Files of Cobalt and devices of RTDM, its driver model.
//!
//! Numbers: `include/cobalt/uapi/syscall.h`, the same in Xenomai 3.1 to 3.3.

use std::ffi::CStr;

/// An open file of Cobalt; closed when dropped.
#[derive(Debug)]
pub struct File(u64);

impl File {
    /// Opens the device with this path in `/dev/rtdm`. The process must be bound ([`super::bind`]). Errors: the errno:
    /// `EADV` when no RTDM device has this name, `EBUSY` when another program has it open, `ENOSYS` without Cobalt.
    pub fn open(path: &CStr) -> Result<File, i32> {
        calls::open(path).and_then(File::of)
    }

    /// The file of a descriptor that a call has returned, and that nothing else closes.
    pub(super) fn of(descriptor: i64) -> Result<File, i32> {
        u64::try_from(descriptor).map(File).map_err(|_| libc::EBADF)
    }

    /// Waits in primary mode until there are `N` bytes to read, and returns them. Errors: the errno: `EINTR` after a
    /// signal, `EIO` when another number of bytes is returned.
    #[inline]
    pub fn read<const N: usize>(&self) -> Result<[u8; N], i32> {
        let mut bytes = [0; N];
        let n_bytes = calls::read(self.0, &mut bytes)?;
        if usize::try_from(n_bytes) == Ok(N) { Ok(bytes) } else { Err(libc::EIO) }
    }

    /// The descriptor, for other calls.
    pub(super) fn descriptor(&self) -> u64 {
        self.0
    }
}

impl Drop for File {
    fn drop(&mut self) {
        calls::close(self.0);
    }
}

#[cfg(target_arch = "x86_64")]
mod calls {
    use super::super::calls::call;
    use std::ffi::CStr;

    const OPEN: u64 = 77;
    const CLOSE: u64 = 79;
    const READ: u64 = 81;

    pub(super) fn open(path: &CStr) -> Result<i64, i32> {
        // SAFETY: the kernel reads a text that ends in 0 and outlives the call.
        unsafe { call(OPEN, [path.as_ptr() as u64, u64::from(libc::O_RDWR.cast_unsigned()), 0, 0, 0]) }
    }

    #[inline]
    pub(super) fn read(file: u64, bytes: &mut [u8]) -> Result<i64, i32> {
        // SAFETY: the kernel writes at most that many bytes, which outlive the call.
        unsafe { call(READ, [file, bytes.as_mut_ptr() as u64, bytes.len() as u64, 0, 0]) }
    }

    pub(super) fn close(file: u64) {
        // SAFETY: no pointer is passed; the descriptor belongs to the caller's value alone.
        let _ = unsafe { call(CLOSE, [file, 0, 0, 0, 0]) };
    }
}

/// Other machines: see [`super::bind`].
#[cfg(not(target_arch = "x86_64"))]
mod calls {
    use std::ffi::CStr;

    pub(super) fn open(_: &CStr) -> Result<i64, i32> {
        Err(libc::ENOSYS)
    }

    pub(super) fn read(_: u64, _: &mut [u8]) -> Result<i64, i32> {
        Err(libc::ENOSYS)
    }

    pub(super) fn close(_: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_cobalt_no_device_is_opened() {
        if super::super::bind().is_err() {
            assert!(File::open(c"/dev/rtdm/none").is_err());
        }
    }
}
