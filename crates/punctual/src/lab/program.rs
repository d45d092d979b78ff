//! This program as a guest gets it: only what is loaded, because every byte of it is copied by counted instructions.

use super::{LabError, elf};
use crate::host;
use std::path::Path;
use std::sync::OnceLock;

/// The program without symbols and what else no kernel loads; read once.
pub(super) fn stripped() -> Result<&'static [u8], LabError> {
    static STRIPPED: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(stripped) = STRIPPED.get() {
        return Ok(stripped);
    }
    let path = Path::new(host::THIS_PROGRAM);
    let whole = std::fs::read(path).map_err(|err| LabError::file(path, err))?;
    let stripped = elf::without_sections(whole).ok_or_else(|| LabError::file(path, "not a 64-bit ELF program"))?;
    Ok(STRIPPED.get_or_init(|| stripped))
}
