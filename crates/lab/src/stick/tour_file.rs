//! The state of a tour and the name of the next kernel on the stick, replaced whole.

use super::boot_loader::environment;
use super::names::ENVIRONMENT;
use super::tour::Tour;
use super::volume::PLACE;
use std::io;
use std::path::{Path, PathBuf};

fn file() -> PathBuf {
    Path::new(PLACE).join("tour.json")
}

/// The tour that is under way, if any.
pub(super) fn read() -> Option<Tour> {
    serde_json::from_slice(&std::fs::read(file()).ok()?).ok()
}

/// Writes the state, and the kernel that GRUB is to boot once. Errors: if the stick cannot be written.
pub(super) fn write(tour: &Tour, next: Option<usize>) -> io::Result<()> {
    punctual_host::file::replace(&file(), &serde_json::to_vec(tour)?)?;
    punctual_host::file::replace(&Path::new(PLACE).join(ENVIRONMENT), &environment(next))
}

/// Ends the tour.
pub(super) fn remove() {
    let _ = std::fs::remove_file(file());
}
