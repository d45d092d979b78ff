//! Read locks of an open file description, `F_OFD_SETLK(2const)`.
//!
//! They belong to the open file, as `flock(2)` locks do, and neither kind affects the other. The kernel releases them
//! when the file is closed, for whatever reason.

use crate::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// A lock of the first byte. Its `l_pid` must be 0.
fn first_byte(kind: libc::c_int) -> libc::flock {
    // SAFETY: an flock consists of numbers, for which all zeroes are valid.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::c_short::try_from(kind).unwrap_or(0);
    lock.l_whence = libc::c_short::try_from(libc::SEEK_SET).unwrap_or(0);
    lock.l_len = 1;
    lock
}

/// Takes a read lock, which other read locks do not exclude; `file` must be open for reading.
pub fn hold_shared(file: &impl AsFd) -> io::Result<()> {
    let (fd, lock) = (file.as_fd(), first_byte(libc::F_RDLCK));
    // SAFETY: `fd` is open as long as it is borrowed, and `lock` is a valid flock.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) }.into())?;
    Ok(())
}

/// Whether another open file description holds a lock on this file.
pub fn is_held(file: &impl AsFd) -> io::Result<bool> {
    let (fd, mut lock) = (file.as_fd(), first_byte(libc::F_WRLCK));
    // SAFETY: `fd` is open as long as it is borrowed, and `lock` is a valid flock, which the kernel overwrites.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) }.into())?;
    Ok(i32::from(lock.l_type) != libc::F_UNLCK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::path::Path;

    #[test]
    fn readers_share_and_are_seen_by_others_only_until_they_close() {
        if !crate::testing::runs_alone() {
            return;
        }
        let directory = std::env::temp_dir().join(["punctual-lock-", &std::process::id().to_string()].concat());
        let file = directory.join("file");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(&file, "").unwrap();
        // An object of the kernel, a directory, a file: all that is locked here. Others use the first one, too.
        for path in [Path::new("/proc/self/ns/pid"), &directory, &file] {
            let Ok(first) = File::open(path) else { continue };
            let (second, seen) = (File::open(path).unwrap(), File::open(path).unwrap());
            hold_shared(&first).unwrap();
            hold_shared(&second).unwrap();
            assert!(is_held(&seen).unwrap() && is_held(&first).unwrap(), "{}", path.display());
            drop(first);
            assert!(is_held(&seen).unwrap(), "{}", path.display());
            // A flock is of another kind.
            seen.try_lock_shared().unwrap();
            drop(second);
            assert!(!path.starts_with(&directory) || !is_held(&seen).unwrap(), "{}", path.display());
        }
        std::fs::remove_dir_all(directory).unwrap();
    }
}
