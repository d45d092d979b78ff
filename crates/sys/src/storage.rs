//! Free space on disks, and files in memory with a fixed size.

use crate::{check, unsigned};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes that an unprivileged user may still write to the file system that holds `path`, `statvfs(3)`. Errors: when
/// there is no such path, or it cannot be reached.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut found = MaybeUninit::<libc::statvfs64>::zeroed();
    // SAFETY: `path` is a C string and `found` is memory for the result; both outlive the call.
    check(unsafe { libc::statvfs64(path.as_ptr(), found.as_mut_ptr()) }.into())?;
    // SAFETY: all zeroes is a valid statvfs, and the kernel has filled it in.
    let found = unsafe { found.assume_init() };
    Ok(found.f_bavail.saturating_mul(unsigned(found.f_frsize)))
}

/// A file in memory with a fixed size of `bytes`: writing beyond fails (`memfd_create(2)`, `F_SEAL_GROW`).
pub fn bounded_memory_file(name: &str, bytes: u64) -> io::Result<File> {
    let name = CString::new(name)?;
    // SAFETY: `name` is a C string that outlives the call.
    let fd = check(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) }.into())?;
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the kernel has just returned this descriptor, which has no other owner.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(bytes)?;
    // SAFETY: the call takes integers only.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_GROW | libc::F_SEAL_SHRINK) }.into())?;
    Ok(file)
}

/// Leaves `file` open, under the same number, in every process started from now on (`FD_CLOEXEC`, fcntl(2)).
pub fn pass_on(file: &File) -> io::Result<()> {
    // SAFETY: the call takes integers only.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0) }.into()).map(drop)
}

/// The first range of data at or after `from` in a sparse file; `None` when only a hole or nothing follows
/// (`lseek(2)`, `SEEK_DATA` and `SEEK_HOLE`). It moves the file's position.
pub fn next_data(file: &File, from: u64) -> io::Result<Option<Range<u64>>> {
    let seek = |to: u64, whence| {
        let to = libc::off64_t::try_from(to).map_err(io::Error::other)?;
        // SAFETY: the call takes integers only.
        let found = unsafe { libc::lseek64(file.as_raw_fd(), to, whence) };
        // -1 is an error.
        u64::try_from(found).map_err(|_| io::Error::last_os_error())
    };
    let start = match seek(from, libc::SEEK_DATA) {
        Ok(start) => start,
        Err(err) if err.raw_os_error() == Some(libc::ENXIO) => return Ok(None),
        Err(err) => return Err(err),
    };
    Ok(Some(start..seek(start, libc::SEEK_HOLE)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::page_bytes;
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    #[test]
    fn data_is_found_between_holes() {
        let page = u64::try_from(page_bytes()).unwrap();
        let file = bounded_memory_file("sparse", 64 * page).unwrap();
        assert_eq!(next_data(&file, 0).unwrap(), None, "all of it is a hole");
        file.write_all_at(b"x", 3 * page + 7).unwrap();
        file.write_all_at(b"y", 63 * page).unwrap();
        assert_eq!(next_data(&file, 0).unwrap(), Some(3 * page..4 * page));
        assert_eq!(next_data(&file, 4 * page).unwrap(), Some(63 * page..64 * page));
        assert_eq!(next_data(&file, 64 * page).unwrap(), None);
    }

    #[test]
    fn room_is_known_where_there_is_a_directory() {
        assert!(free_bytes(Path::new("/")).is_ok());
        assert!(free_bytes(Path::new("/does/not/exist")).is_err());
    }

    #[test]
    fn a_file_is_passed_on_to_who_is_started() {
        let mut file = bounded_memory_file("passed", 5).unwrap();
        file.write_all(b"12345").unwrap();
        let name = ["/proc/self/fd/", &file.as_raw_fd().to_string()].concat();
        let cat = || std::process::Command::new("cat").arg(&name).output().unwrap();
        assert!(!cat().status.success());
        pass_on(&file).unwrap();
        assert_eq!(cat().stdout, b"12345");
    }

    #[test]
    fn a_bounded_file_takes_no_byte_more() {
        let mut file = bounded_memory_file("said", 5).unwrap();
        assert_eq!(file.write(b"12345").unwrap(), 5);
        assert!(file.write(b"6").is_err());
    }
}
