//! This program as a guest gets it: only what is loaded, because every byte of it is copied by counted instructions.

use super::LabError;
use crate::host;
use std::ops::Range;
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
    let stripped = without_sections(whole).ok_or_else(|| LabError::file(path, "not a 64-bit ELF program"))?;
    Ok(STRIPPED.get_or_init(|| stripped))
}

/// Cuts an ELF program after its last loaded byte, and says in its header that there is no table of sections (elf(5)).
fn without_sections(mut program: Vec<u8>) -> Option<Vec<u8>> {
    const MAGIC: &[u8] = b"\x7fELF\x02\x01";
    const SECTION_TABLE: Range<usize> = 0x28..0x30;
    const SECTION_COUNTS: Range<usize> = 0x3c..0x40;
    if !program.starts_with(MAGIC) {
        return None;
    }
    let number = |at: usize, bytes: usize| -> Option<usize> {
        let mut value = [0; 8];
        value.get_mut(..bytes)?.copy_from_slice(program.get(at..at + bytes)?);
        usize::try_from(u64::from_le_bytes(value)).ok()
    };
    let (table, size, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    let mut end = table + size * count;
    for header in (0..count).map(|n| table + n * size) {
        // Offset and size in the file of this segment.
        end = end.max(number(header + 0x08, 8)?.checked_add(number(header + 0x20, 8)?)?);
    }
    program.get_mut(SECTION_TABLE)?.fill(0);
    program.get_mut(SECTION_COUNTS)?.fill(0);
    program.truncate(end);
    program.shrink_to_fit();
    Some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_its_sections_still_runs() {
        let dir = std::env::temp_dir().join(format!("punctual-stripped-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("true");
        let whole = std::fs::read("/bin/true").unwrap();
        let cut = without_sections(whole.clone()).unwrap();
        assert!(cut.len() < whole.len());
        std::fs::write(&path, cut).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert!(std::process::Command::new(&path).status().unwrap().success());
        std::fs::remove_dir_all(dir).unwrap();
        assert_eq!(without_sections(b"#!/bin/sh\n".to_vec()), None);
        assert_eq!(without_sections(b"\x7fELF\x02\x01".to_vec()), None, "cut off");
    }
}
