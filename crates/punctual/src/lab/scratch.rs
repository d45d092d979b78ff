//! Directories of this process, each gone with its value.

use super::LabError;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

#[derive(Debug)]
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    /// One for a guest.
    pub(super) fn for_guest() -> Result<Scratch, LabError> {
        static GUESTS: AtomicU32 = AtomicU32::new(0);
        let name = format!("punctual-guest-{}-{}", std::process::id(), GUESTS.fetch_add(1, Relaxed));
        Scratch::new(std::env::temp_dir().join(name))
    }

    /// One in the cache, where what `name` stands for is made before it is given that name.
    pub(super) fn in_cache(cache: &Path, name: &str) -> Result<Scratch, LabError> {
        Scratch::new(cache.join(format!(".{name}.{}", std::process::id())))
    }

    fn new(dir: PathBuf) -> Result<Scratch, LabError> {
        fs::create_dir_all(&dir).map_err(|err| LabError::file(&dir, err))?;
        Ok(Scratch(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
