//! One measurement on a machine at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Held while measuring; the kernel releases it however this process ends (`flock(2)`).
#[derive(Debug)]
pub(crate) struct MachineLock {
    _file: File,
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

/// Directories that all users can write to, the first that exists is used (hier(7), file-hierarchy(7)).
const DIRECTORIES: [&str; 2] = ["/run/lock", "/tmp"];

impl MachineLock {
    /// Takes the lock and says in it who holds it, `holder`. With `wait` it waits its turn.
    ///
    /// # Errors
    /// When somebody else holds it and `wait` is false, or the file cannot be used.
    pub(crate) fn take(holder: &str, wait: bool) -> Result<MachineLock, LockError> {
        let directory = DIRECTORIES.into_iter().map(Path::new).find(|path| path.is_dir()).unwrap_or(Path::new("/tmp"));
        MachineLock::take_in(directory, holder, wait)
    }

    fn take_in(directory: &Path, holder: &str, wait: bool) -> Result<MachineLock, LockError> {
        let path = directory.join("punctual.lock");
        let failed = |source| LockError::File { path: path.clone(), source };
        let file = open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if wait => file.lock().map_err(failed)?,
            Err(TryLockError::WouldBlock) => {
                let holder = std::fs::read_to_string(&path).unwrap_or_default();
                let holder = if holder.trim().is_empty() { "another process" } else { holder.trim() };
                return Err(LockError::Held { holder: holder.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // Who holds it is for people only: another user's file may be locked but not written.
        if let Ok(mut note) = OpenOptions::new().write(true).truncate(true).open(&path) {
            let _ = note.write_all(holder.as_bytes());
        }
        Ok(MachineLock { _file: file })
    }
}

/// Opens the lock file, which may belong to another user. An existing one is opened without O_CREAT, because the kernel
/// refuses that for other users' files in shared directories (`fs.protected_regular`, proc_sys_fs(5)).
fn open(path: &Path) -> io::Result<File> {
    match File::open(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => {
            let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o666).open(path);
            match file {
                // Somebody else was faster.
                Err(err) if err.kind() == io::ErrorKind::AlreadyExists => File::open(path),
                Ok(file) => {
                    // Past the umask, so that every user can say that they hold it.
                    file.set_permissions(PermissionsExt::from_mode(0o666))?;
                    Ok(file)
                }
                Err(err) => Err(err),
            }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_refused_and_told_who_has_it_until_the_first_is_gone() {
        let directory = std::env::temp_dir().join(format!("punctual-lock-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let first = MachineLock::take_in(&directory, "pid 1 (started 14:32)", false).unwrap();
        let refused = MachineLock::take_in(&directory, "pid 2", false).unwrap_err().to_string();
        assert_eq!(refused, "this machine is being measured by pid 1 (started 14:32); wait for it with --wait");
        drop(first);
        MachineLock::take_in(&directory, "pid 3", true).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
