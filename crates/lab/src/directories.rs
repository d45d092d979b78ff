//! Directories of the lab: its persistent cache, and temporary directories for guests and for new cache entries.

use super::LabError;
use punctual_host::PrivateDirectory;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Base directory of the caches: `$XDG_CACHE_HOME/punctual`, `~/.cache/punctual`, or `/var/cache/punctual` for users
/// without a home directory.
fn caches() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    base.unwrap_or_else(|| PathBuf::from("/var/cache")).join("punctual")
}

/// Directory of the cached kernels.
pub(super) fn kernel_cache() -> PathBuf {
    caches().join("kernels")
}

/// The cache directory for `kind`, created if it is missing. Leftovers of killed processes are removed.
pub(super) fn cache(kind: &str) -> Result<PathBuf, LabError> {
    let cache = caches().join(kind);
    let unusable = |err| {
        LabError::file(&cache, format!("cannot cache {kind} here: {err}; set XDG_CACHE_HOME to a directory with room"))
    };
    fs::create_dir_all(&cache).map_err(unusable)?;
    remove_abandoned(&cache);
    Ok(cache)
}

/// Names of the entries of a cache directory.
pub(super) fn names_in(cache: &Path) -> Vec<String> {
    let entries = fs::read_dir(cache).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// A directory for the files of a guest.
pub(super) fn for_guest() -> Result<PrivateDirectory, LabError> {
    new_in(&std::env::temp_dir(), &punctual_host::named("punctual-guest", std::process::id()))
}

/// A directory in the cache for building entry `name`, which is renamed when it is complete.
pub(super) fn in_cache(cache: &Path, name: &str) -> Result<PrivateDirectory, LabError> {
    new_in(cache, &format!(".{name}.{}", std::process::id()))
}

fn new_in(parent: &Path, stem: &str) -> Result<PrivateDirectory, LabError> {
    let failed = |err| LabError::file(parent, format!("cannot create a directory here: {err}"));
    PrivateDirectory::new(parent, stem).map_err(failed)
}

/// Writes a new file; fails if it exists.
pub(super) fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    fs::File::create_new(path)?.write_all(content)
}

/// A path as a value in an option of QEMU: a comma ends a value unless it is doubled.
pub(super) fn as_value(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// Removes unfinished cache entries of processes that have ended.
pub(super) fn remove_abandoned(cache: &Path) {
    let entries = fs::read_dir(cache).into_iter().flatten().flatten();
    for entry in entries {
        let is_abandoned = entry.file_name().to_str().and_then(owner).is_some_and(punctual_host::is_gone);
        if is_abandoned {
            let path = entry.path();
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
    }
}

/// The process that builds the unfinished cache entry `name`.
fn owner(name: &str) -> Option<u32> {
    let (_, last) = name.strip_prefix('.')?.rsplit_once('.')?;
    last.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::testing::Scratch;

    #[test]
    fn only_what_ended_processes_left_unfinished_is_removed() {
        let cache = Scratch::make();
        let unfinished = in_cache(cache.dir(), "linux-image-6.1.0-9-amd64").unwrap();
        // Above the highest possible process id (proc_sys_kernel(5), pid_max).
        let ended = (1 << 22) + 1;
        fs::create_dir(cache.path(&format!(".deb-0123.{ended}-89ab"))).unwrap();
        fs::write(cache.path(&format!(".vmlinux-0123.{ended}")), "of an earlier version").unwrap();
        fs::write(cache.path(&format!("vmlinux-6.1.{ended}")), "whole").unwrap();
        remove_abandoned(cache.dir());
        let mut left: Vec<_> = fs::read_dir(cache.dir()).unwrap().map(|entry| entry.unwrap().path()).collect();
        left.sort();
        assert_eq!(left, [unfinished.path().to_owned(), cache.path(&format!("vmlinux-6.1.{ended}"))]);
    }

    #[test]
    fn a_file_is_never_written_through_a_link() {
        let directory = Scratch::make();
        let [victim, link] = ["victim", "link"].map(|name| directory.path(name));
        fs::write(&victim, "theirs").unwrap();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        assert_eq!(write_new(&link, b"ours").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&victim).unwrap(), b"theirs");
    }
}
