//! A directory for one guest, gone with it.

use super::LabError;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

#[derive(Debug)]
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new() -> Result<Scratch, LabError> {
        static GUESTS: AtomicU32 = AtomicU32::new(0);
        let name = format!("punctual-guest-{}-{}", std::process::id(), GUESTS.fetch_add(1, Relaxed));
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).map_err(|err| LabError::file(&dir, err))?;
        Ok(Scratch(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
