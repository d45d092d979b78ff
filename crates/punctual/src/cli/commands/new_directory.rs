//! A new directory of files: whole, or not there.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A directory that gets its name when it is complete. Dropping it incomplete removes it.
#[derive(Debug)]
pub(super) struct NewDirectory {
    path: PathBuf,
    unfinished: PathBuf,
}

impl NewDirectory {
    /// Begins the directory `path`, whose name must be free or that of an empty directory. Errors: one line, if the
    /// name is taken, or the directory cannot be made.
    pub(super) fn make(path: &Path) -> Result<NewDirectory, String> {
        let failed = |err: io::Error| format!("cannot make {}: {err}", path.display());
        match path.symlink_metadata() {
            Err(err) if err.kind() == io::ErrorKind::NotFound => {}
            Err(err) => return Err(failed(err)),
            Ok(found) if found.is_dir() => {
                if fs::read_dir(path).map_err(failed)?.next().is_some() {
                    return Err(format!("{} is not empty; name another directory with --out", path.display()));
                }
            }
            Ok(_) => return Err(format!("{} is not a directory; name another with --out", path.display())),
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        // The name of the directory without a slash at its end.
        let plain: PathBuf = path.components().collect();
        let unfinished = punctual_host::file::with_suffix(&plain, &format!(".new-{}", std::process::id()));
        // An existing file or link of that name is an error, mkdir(2).
        fs::create_dir(&unfinished).map_err(failed)?;
        Ok(NewDirectory { path: plain, unfinished })
    }

    /// Writes a file of the directory. Errors: one line, if it cannot be written.
    pub(super) fn write(&self, name: &str, content: &[u8], executable: bool) -> Result<(), String> {
        let path = self.unfinished.join(name);
        let mode = if executable { 0o755 } else { 0o644 };
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
            file.write_all(content)?;
            // Not through the umask: the engine may be another user.
            file.set_permissions(Permissions::from_mode(mode))?;
            file.sync_all()
        });
        written.map_err(|err| format!("cannot write {}: {err}", self.path.join(name).display()))
    }

    /// Gives the directory its name; an empty directory of that name is replaced. Errors: one line, if the name has
    /// been taken meanwhile.
    pub(super) fn finish(self) -> Result<(), String> {
        let named =
            fs::rename(&self.unfinished, &self.path).and_then(|()| punctual_host::file::sync_directory_of(&self.path));
        named.map_err(|err| format!("cannot make {}: {err}", self.path.display()))
    }
}

impl Drop for NewDirectory {
    /// After `finish` there is nothing of that name.
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.unfinished));
    }
}
