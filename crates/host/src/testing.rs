//! Helpers for unit tests of several modules.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Most memory that this process has had, KiB (`VmHWM`, proc_pid_status(5)).
pub fn peak_memory_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?.parse().ok()
}

/// A directory of its own for one test, removed when dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates an empty directory.
    pub fn make() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("punctual-unit-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let dir = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a scratch directory");
        Scratch(dir)
    }

    /// Its path.
    pub fn dir(&self) -> &Path {
        &self.0
    }

    /// A path in the directory; nothing is created.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file, creates the directories on its path, and returns the path.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("below the directory")).expect("a scratch directory");
        fs::write(&path, contents).expect("a scratch file");
        path
    }

    /// Creates a named pipe, and returns its path.
    pub fn fifo(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
        path
    }

    /// The names in the directory, sorted.
    pub fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).expect("a scratch directory").flatten();
        let mut names: Vec<_> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
