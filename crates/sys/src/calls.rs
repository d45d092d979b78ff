//! Single system calls whose cost is measured, with as little around them as the C library allows.

use crate::check;
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Reads the parent's id, `getppid(2)`: the kernel is entered and left, and does next to nothing.
#[inline]
pub fn null() {
    // SAFETY: the call takes no arguments and cannot fail.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

/// Looks a file up by its name, `stat(2)`. Errors: when there is no such file.
#[inline]
pub fn stat(path: &CStr) -> io::Result<()> {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `path` ends with NUL, `found` is memory for the result; both outlive the call.
    check(unsafe { libc::stat(path.as_ptr(), found.as_mut_ptr()) }.into()).map(drop)
}

/// Looks an open file up, `fstat(2)`.
#[inline]
pub fn fstat(file: BorrowedFd<'_>) -> io::Result<()> {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the file is open, `found` is memory for the result.
    check(unsafe { libc::fstat(file.as_raw_fd(), found.as_mut_ptr()) }.into()).map(drop)
}

/// Opens a file for reading and closes it, `open(2)`, `close(2)`. Errors: when there is no such file.
#[inline]
pub fn open_and_close(path: &CStr) -> io::Result<()> {
    open_flags_and_close(path, libc::O_RDONLY)
}

/// Creates a new, empty file and closes it, `open(2)` with `O_CREAT` and `O_EXCL`. Errors: when the file exists, or the
/// disk is full.
#[inline]
pub fn create_and_close(path: &CStr) -> io::Result<()> {
    open_flags_and_close(path, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL)
}

#[inline]
fn open_flags_and_close(path: &CStr, flags: libc::c_int) -> io::Result<()> {
    let mode: libc::mode_t = 0o600;
    // SAFETY: `path` ends with NUL and outlives the call; flags and mode are integers.
    let file = check(unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, mode) }.into())?;
    let file = libc::c_int::try_from(file).map_err(io::Error::other)?;
    // SAFETY: the kernel has just returned this descriptor, and no other code knows it.
    check(unsafe { libc::close(file) }.into()).map(drop)
}

/// Removes a name, `unlink(2)`. Errors: when there is no such name.
#[inline]
pub fn unlink(path: &CStr) -> io::Result<()> {
    // SAFETY: `path` ends with NUL and outlives the call.
    check(unsafe { libc::unlink(path.as_ptr()) }.into()).map(drop)
}

/// Files to test for readability, which stay open as long.
pub struct FileSet<F> {
    _files: Vec<F>,
    polled: Vec<libc::pollfd>,
    selected: libc::fd_set,
    /// One more than the largest descriptor, as `select(2)` requires it.
    end: libc::c_int,
}

impl<F> std::fmt::Debug for FileSet<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileSet").field("files", &self.polled.len()).finish_non_exhaustive()
    }
}

impl<F: AsFd> FileSet<F> {
    /// The set of `files`. Errors: when a descriptor is above 1023, the largest that `select(2)` supports.
    pub fn new(files: Vec<F>) -> io::Result<FileSet<F>> {
        let mut set = MaybeUninit::<libc::fd_set>::zeroed();
        // SAFETY: `set` is memory for a set of descriptors.
        unsafe { libc::FD_ZERO(set.as_mut_ptr()) };
        // SAFETY: initialized above.
        let mut set = unsafe { set.assume_init() };
        let (mut polled, mut end) = (Vec::new(), 0);
        for file in &files {
            let fd = file.as_fd().as_raw_fd();
            if usize::try_from(fd).map_or(true, |fd| fd >= libc::FD_SETSIZE) {
                return Err(io::Error::other("select(2) knows descriptors below 1024 only"));
            }
            // SAFETY: the descriptor was just found to be within the set.
            unsafe { libc::FD_SET(fd, &raw mut set) };
            polled.push(libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
            end = end.max(fd + 1);
        }
        Ok(FileSet { _files: files, polled, selected: set, end })
    }

    /// Number of files that can be read now, `select(2)`.
    #[inline]
    pub fn select(&self) -> io::Result<usize> {
        let (mut set, none) = (self.selected, std::ptr::null_mut());
        let mut at_once = libc::timeval { tv_sec: 0, tv_usec: 0 };
        // SAFETY: `set` and `at_once` are initialized and outlive the call; null sets are allowed.
        let ready = check(unsafe { libc::select(self.end, &raw mut set, none, none, &raw mut at_once) }.into())?;
        Ok(usize::try_from(ready).unwrap_or(0))
    }

    /// Number of files that can be read now, `poll(2)`.
    #[inline]
    pub fn poll(&mut self) -> io::Result<usize> {
        let files = libc::nfds_t::try_from(self.polled.len()).map_err(io::Error::other)?;
        // SAFETY: as many valid pollfd as the count says, which outlive the call.
        let ready = check(unsafe { libc::poll(self.polled.as_mut_ptr(), files, 0) }.into())?;
        Ok(usize::try_from(ready).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_can_be_read_is_seen_by_both_calls() {
        let (readers, mut writers): (Vec<_>, Vec<_>) = (0..10).map(|_| io::pipe().unwrap()).unzip();
        let mut watched = FileSet::new(readers).unwrap();
        assert_eq!((watched.select().unwrap(), watched.poll().unwrap()), (0, 0));
        writers[3].write_all(b"x").unwrap();
        writers[9].write_all(b"x").unwrap();
        assert_eq!((watched.select().unwrap(), watched.poll().unwrap()), (2, 2));
    }

    #[test]
    fn a_file_is_made_looked_at_and_removed() {
        let path = std::env::temp_dir().join(format!("punctual-calls-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        assert!(stat(&name).is_err() && open_and_close(&name).is_err());
        create_and_close(&name).unwrap();
        assert!(create_and_close(&name).is_err(), "it is there");
        stat(&name).unwrap();
        open_and_close(&name).unwrap();
        fstat(std::fs::File::open(&path).unwrap().as_fd()).unwrap();
        unlink(&name).unwrap();
        assert!(!path.exists());
    }
}
