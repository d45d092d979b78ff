//! The machine lock: one measurement at a time.

use super::process::is_gone;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The lock held while measuring. The kernel releases it when this process and the cells that it started have ended,
/// for any reason (`flock(2)`: a lock belongs to the open file, which [`pass_lock`] leaves open in them).
#[derive(Debug)]
pub struct MachineLock {
    /// The lock itself: the directory of the lock file, which cannot be removed as a file in it can. While it is
    /// locked, systemd-tmpfiles does not clean it (tmpfiles.d(5)).
    directory: File,
    /// The lock file with the description of the holder. Locked as well, because earlier versions lock nothing else.
    file: File,
}

/// An error in taking the machine lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process measures.
    #[error("this machine is being measured by {holder}; wait for it with --wait")]
    Held {
        /// The holder's description of itself.
        holder: String,
    },
    /// The lock file cannot be used.
    #[error("cannot lock {path}: {source}; remove it, as its owner or as root", path = path.display())]
    File {
        /// The lock file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
}

/// The lock file, in the one directory that every user of every distribution can write to (hier(7)).
const PATH: &str = "/tmp/punctual.lock";
/// Maximum number of bytes read of a holder's description.
const HOLDER_BYTES: u64 = 200;
/// Timeout of the end of the cell and the loads of a killed holder.
const CHILDREN_EXIT_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout of the end of a process that was sent SIGKILL: until then it looks like any other.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The descriptor of the lock that this process holds, its own or its parent's; -1: none.
static HELD: AtomicI32 = AtomicI32::new(-1);

impl MachineLock {
    /// Takes the lock. With `wait` it waits for any holder; without, only until the processes started by a killed
    /// holder have ended.
    ///
    /// # Errors
    /// When another process holds it and `wait` is false, or the file cannot be used.
    pub fn take(wait: bool) -> Result<MachineLock, LockError> {
        let lock = MachineLock::take_at(Path::new(PATH), wait, CHILDREN_EXIT_TIMEOUT)?;
        HELD.store(lock.directory.as_raw_fd(), Relaxed);
        lock.say(&format!("pid {}", std::process::id()));
        Ok(lock)
    }

    fn take_at(path: &Path, wait: bool, ending: Duration) -> Result<MachineLock, LockError> {
        let failed = |source| LockError::File { path: path.to_owned(), source };
        let directory = File::open(path.parent().unwrap_or(Path::new("/"))).map_err(failed)?;
        let began = Instant::now();
        loop {
            // Opened again each time: the file may have been removed and recreated since.
            let file = open(path).map_err(failed)?;
            if is_locked(&directory, wait).map_err(failed)? && is_locked(&file, wait).map_err(failed)? {
                // Removed before it was locked: the next holder would write its description to another file.
                if is_at(&file, path) {
                    return Ok(MachineLock { directory, file });
                }
                continue;
            }
            let (holder, has_ended) = holder(&file);
            let timeout = if has_ended { ending } else { ending.min(KILL_TIMEOUT) };
            if began.elapsed() >= timeout {
                let more = if has_ended { ", which has exited; one of its child processes may still run" } else { "" };
                return Err(LockError::Held { holder: format!("{holder}{more}") });
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Writes a description of the holder, for users only: nothing depends on it.
    pub fn say(&self, holder: &str) {
        let _ = self.file.set_len(0).and_then(|()| self.file.write_all_at(holder.as_bytes(), 0));
    }
}

impl Drop for MachineLock {
    fn drop(&mut self) {
        let _ = HELD.compare_exchange(self.directory.as_raw_fd(), -1, Relaxed, Relaxed);
    }
}

/// Passes the lock that this process holds to the program that `command` starts. The program gets the descriptor as
/// `--lock` and passes it to [`keep_lock`].
pub fn pass_lock(command: &mut Command) {
    let descriptor = HELD.load(Relaxed);
    if descriptor >= 0 {
        command.args(["--lock", &descriptor.to_string()]);
        sys::process::inherit(command, descriptor);
    }
}

/// Holds the lock that the parent left open as `descriptor` until this process ends; children do not inherit it.
///
/// # Errors
/// When the descriptor is invalid.
pub fn keep_lock(descriptor: i32) -> io::Result<()> {
    sys::process::close_on_exec(descriptor)?;
    HELD.store(descriptor, Relaxed);
    Ok(())
}

/// Locks `file`; `false` when another process holds the lock and `wait` is not set.
fn is_locked(file: &File, wait: bool) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) if wait => file.lock().map(|()| true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(source)) => Err(source),
    }
}

/// Whether `path` refers to this open file.
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let (opened, named) = (file.metadata().map(identity), path.symlink_metadata().map(identity));
    opened.is_ok() && opened.ok() == named.ok()
}

/// The holder's description of itself, restricted to printable characters because any user may write to the file; and
/// whether the process that it names has ended.
fn holder(file: &File) -> (String, bool) {
    let mut bytes = Vec::new();
    let _ = file.take(HOLDER_BYTES).read_to_end(&mut bytes);
    let text: String =
        bytes.iter().map(|byte| char::from(*byte)).filter(|c| c.is_ascii_graphic() || *c == ' ').collect();
    let text = text.trim();
    let pid = text.strip_prefix("pid ").and_then(|rest| rest.split(' ').next()?.parse().ok());
    let holder = if text.is_empty() { "another process" } else { text };
    (holder.to_owned(), pid.is_some_and(is_gone))
}

/// Opens the lock file, which may belong to another user.
///
/// An existing file is opened without O_CREAT, because the kernel refuses that for other users' files in shared
/// directories (`fs.protected_regular`, proc_sys_fs(5)); never through a link, which any user could have put there.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = match options.open(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => match options.create_new(true).mode(0o666).open(path) {
            // Another process was faster.
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => options.create_new(false).open(path)?,
            file => {
                let file = file?;
                // Regardless of the umask, so that every user can take the lock and write a description.
                file.set_permissions(PermissionsExt::from_mode(0o666))?;
                file
            }
        },
        Err(err) if err.raw_os_error() == Some(libc::ELOOP) => {
            return Err(io::Error::other("expected a regular file, found a symbolic link"));
        }
        file => file?,
    };
    let is_file = file.metadata()?.is_file();
    if is_file { Ok(file) } else { Err(io::Error::other("expected a regular file")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    /// A directory of its own with no lock file in it yet.
    struct Place(Scratch);

    impl Place {
        fn new() -> Place {
            Place(Scratch::make())
        }

        fn path(&self) -> PathBuf {
            self.0.path("punctual.lock")
        }

        fn take(&self) -> Result<MachineLock, LockError> {
            MachineLock::take_at(&self.path(), false, Duration::ZERO)
        }
    }

    #[test]
    fn a_second_holder_is_refused_with_the_text_of_the_first_until_it_exits() {
        let place = Place::new();
        let first = place.take().unwrap();
        for (words, shown) in [
            ("", "another process"),
            ("a holder with a long name", "a holder with a long name"),
            ("pid 1 (started 14:32)", "pid 1 (started 14:32)"),
            ("\u{1b}]0;x\u{7}\u{1b}[2J\r\n\u{9b}\u{202e}pid 1", "]0;x[2Jpid 1"),
        ] {
            first.say(words);
            let refused = place.take().unwrap_err().to_string();
            assert_eq!(refused, format!("this machine is being measured by {shown}; wait for it with --wait"));
        }
        drop(first);
        MachineLock::take_at(&place.path(), true, Duration::ZERO).unwrap();
    }

    #[test]
    fn a_lock_file_that_is_removed_excludes_all_the_same() {
        let place = Place::new();
        let first = place.take().unwrap();
        std::fs::remove_file(place.path()).unwrap();
        assert!(matches!(place.take(), Err(LockError::Held { .. })));
        // An earlier version locks the file only.
        drop(first);
        let earlier = open(&place.path()).unwrap();
        earlier.try_lock().unwrap();
        assert!(matches!(place.take(), Err(LockError::Held { .. })));
        drop(earlier);
        assert!(place.take().is_ok());
    }

    #[test]
    fn what_a_killed_holder_started_is_waited_for() {
        let place = Place::new();
        let first = place.take().unwrap();
        // Above the highest id that there can be (proc_sys_kernel(5), pid_max).
        first.say(&format!("pid {} (started 14:32)", (1 << 22) + 1));
        let refused = place.take().unwrap_err().to_string();
        assert!(refused.contains(", which has exited; one of its child processes may still run;"), "{refused}");
        let path = place.path();
        let second = std::thread::spawn(move || MachineLock::take_at(&path, false, Duration::from_secs(600)));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!second.is_finished());
        drop(first);
        assert!(second.join().unwrap().is_ok());
    }

    #[test]
    fn what_is_no_lock_file_is_one_line() {
        let place = Place::new();
        let target = place.0.file("target", "precious");
        let refused = |reason: &str| {
            let line = place.take().unwrap_err().to_string();
            let begin = format!("cannot lock {}: {reason}", place.path().display());
            assert!(line.starts_with(&begin) && line.ends_with("; remove it, as its owner or as root"), "{line}");
        };
        std::os::unix::fs::symlink(&target, place.path()).unwrap();
        refused("expected a regular file, found a symbolic link");
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
        std::fs::remove_file(place.path()).unwrap();
        std::fs::create_dir(place.path()).unwrap();
        refused("Is a directory");
        std::fs::remove_dir(place.path()).unwrap();
        place.0.fifo("punctual.lock");
        refused("expected a regular file");
    }
}
