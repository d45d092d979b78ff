//! One measurement on a machine at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Held while measuring; the kernel releases it however this process ends (`flock(2)`).
#[derive(Debug)]
pub(crate) struct MachineLock {
    file: File,
}

/// Why the machine cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    /// Somebody else measures.
    #[error("this machine is being measured by {holder}; wait for it with --wait")]
    Held {
        /// What the holder wrote about itself.
        holder: String,
    },
    /// The lock file cannot be used.
    #[error("cannot lock {path}: {source}", path = path.display())]
    File {
        /// The lock file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
}

/// In the one directory that every user of every distribution can write to (hier(7)).
const PATH: &str = "/tmp/punctual.lock";
/// The most that is read of what a holder wrote.
const HOLDER_BYTES: u64 = 200;

impl MachineLock {
    /// Takes the lock. With `wait` it waits its turn.
    ///
    /// # Errors
    /// When somebody else holds it and `wait` is false, or the file cannot be used.
    pub(crate) fn take(wait: bool) -> Result<MachineLock, LockError> {
        MachineLock::take_at(Path::new(PATH), wait)
    }

    fn take_at(path: &Path, wait: bool) -> Result<MachineLock, LockError> {
        let failed = |source| LockError::File { path: path.to_owned(), source };
        let file = open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if wait => file.lock().map_err(failed)?,
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.take(HOLDER_BYTES).read_to_string(&mut holder);
                let holder = if holder.trim().is_empty() { "another process" } else { holder.trim() };
                return Err(LockError::Held { holder: holder.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        Ok(MachineLock { file })
    }

    /// Says who holds it. For people only: nothing depends on its being written.
    pub(crate) fn say(&self, holder: &str) {
        let _ = self.file.set_len(0).and_then(|()| self.file.write_all_at(holder.as_bytes(), 0));
    }
}

/// Opens the lock file, which may belong to another user.
///
/// An existing one is opened without O_CREAT, because the kernel refuses that for other users' files in shared
/// directories (`fs.protected_regular`, proc_sys_fs(5)); never through a link, which anybody could have put there.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NOFOLLOW);
    let file = match options.open(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => match options.create_new(true).mode(0o666).open(path) {
            // Somebody else was faster.
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => options.create_new(false).open(path)?,
            file => {
                let file = file?;
                // Past the umask, so that every user can take it and say so.
                file.set_permissions(PermissionsExt::from_mode(0o666))?;
                file
            }
        },
        file => file?,
    };
    let is_file = file.metadata()?.is_file();
    if is_file { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_refused_and_told_who_has_it_until_the_first_is_gone() {
        let path = std::env::temp_dir().join(format!("punctual-lock-{}", std::process::id()));
        let first = MachineLock::take_at(&path, false).unwrap();
        first.say("somebody with a long name");
        first.say("pid 1 (started 14:32)");
        let refused = MachineLock::take_at(&path, false).unwrap_err().to_string();
        assert_eq!(refused, "this machine is being measured by pid 1 (started 14:32); wait for it with --wait");
        drop(first);
        MachineLock::take_at(&path, true).unwrap();
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_link_is_not_followed() {
        let name = |what: &str| std::env::temp_dir().join(format!("punctual-{what}-{}", std::process::id()));
        let (link, target) = (name("link"), name("target"));
        std::fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(matches!(MachineLock::take_at(&link, false), Err(LockError::File { .. })));
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
        std::fs::remove_file(&link).unwrap();
        std::fs::remove_file(&target).unwrap();
    }
}
