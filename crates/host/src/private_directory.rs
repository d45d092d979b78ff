//! New directories of one process, closed to other users.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A directory that this process has created and that only its user may enter; removed on drop with its contents.
///
/// An existing directory is never used: another user may have put it there, with links in it for this process to write
/// through.
#[derive(Debug)]
pub struct PrivateDirectory(PathBuf);

impl PrivateDirectory {
    /// Creates a directory in `parent`. Its name is `stem`, a hyphen, and 16 unpredictable hexadecimal digits. Errors:
    /// when none can be created in `parent`.
    pub fn new(parent: &Path, stem: &str) -> io::Result<PrivateDirectory> {
        const ATTEMPTS: u32 = 100;
        let mut attempt = 0;
        loop {
            let digits = RandomState::new().hash_one(attempt);
            let path = parent.join(format!("{stem}-{digits:016x}"));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(PrivateDirectory(path)),
                Err(err) if err.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => attempt += 1,
                Err(err) => return Err(err),
            }
        }
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // If this fails, the next measurement (`remove_leftovers`) or the next use of a cache removes it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_directory_is_private_new_and_gone_afterwards() {
        let parent = std::env::temp_dir();
        let directories = [0, 1].map(|_| PrivateDirectory::new(&parent, "punctual-sleep").unwrap());
        let paths = directories.each_ref().map(|directory| directory.path().to_owned());
        assert_ne!(paths[0], paths[1]);
        std::fs::write(paths[0].join("sleep.c"), "x").unwrap();
        assert_eq!(paths[0].metadata().unwrap().permissions().mode() & 0o7777, 0o700);
        drop(directories);
        assert!(paths.iter().all(|path| !path.exists()), "{paths:?}");
        assert!(PrivateDirectory::new(Path::new("/nowhere"), "x").is_err());
    }
}
