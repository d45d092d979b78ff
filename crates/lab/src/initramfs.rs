//! The initramfs archive of a guest.
//!
//! The format is cpio "newc" (Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! Its output is reproducible, because a guest in virtual time would see a difference.

use super::{LabError, elf};
use punctual_model::Architecture;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// An archive under construction.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    names: Vec<String>,
}

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const FILE: u32 = 0o100_644;
const LINK: u32 = 0o120_777;

impl Archive {
    /// Adds a directory; `name` has no leading slash.
    pub(super) fn directory(&mut self, name: &str) {
        self.entry(name, DIRECTORY, &[]);
    }

    /// Adds a program.
    pub(super) fn program(&mut self, name: &str, content: &[u8]) {
        self.entry(name, PROGRAM, content);
    }

    /// Adds a file.
    pub(super) fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, FILE, content);
    }

    /// Adds a symbolic link to `target`.
    pub(super) fn link(&mut self, name: &str, target: &str) {
        self.entry(name, LINK, target.as_bytes());
    }

    /// Names of the entries, in order.
    #[cfg(test)]
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the archive. Another one may follow it: a kernel unpacks concatenated archives.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.names.push(name.to_owned());
        let links = if mode == DIRECTORY { 2 } else { 1 };
        // inode, mode, uid, gid, links, mtime, size, device (2), special device (2), name length, checksum (0)
        let fields =
            [size(self.names.len()), mode, 0, 0, links, 0, size(content.len()), 0, 0, 0, 0, size(name.len() + 1), 0];
        self.bytes.extend_from_slice(b"070701");
        fields.iter().for_each(|field| self.bytes.extend_from_slice(format!("{field:08X}").as_bytes()));
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    /// Pads with zeros: headers and contents begin at multiples of 4.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// The size as a 32-bit field of the format; no entry here is larger.
fn size(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// This program for guests of an architecture, read once. Sections that are not loaded are removed, because every byte
/// is copied by counted instructions.
pub(super) fn stripped_program(architecture: Architecture) -> Result<Arc<[u8]>, LabError> {
    static STRIPPED: Mutex<BTreeMap<Architecture, Arc<[u8]>>> = Mutex::new(BTreeMap::new());
    let mut stripped = STRIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(program) = stripped.get(&architecture) {
        return Ok(Arc::clone(program));
    }
    let path = punctual_host::program_of(architecture).map_err(|reason| LabError::program("lab", reason))?;
    let whole = std::fs::read(&path).map_err(|err| LabError::file(&path, err))?;
    let program = elf::without_sections(whole).ok_or_else(|| LabError::file(&path, "not a 64-bit ELF program"))?;
    Ok(Arc::clone(stripped.entry(architecture).or_insert(program.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_as_the_kernel_reads_it() {
        let mut archive = Archive::default();
        archive.directory("dev");
        archive.program("init", b"12345");
        let bytes = archive.finish();
        let text = String::from_utf8(bytes).unwrap();
        let zeros = |n: usize| "0".repeat(8 * n);
        let directory = format!("07070100000001000041ED{}00000002{}00000004{}dev", zeros(2), zeros(6), zeros(1));
        assert!(text.starts_with(&directory), "{text:?}");
        // Header and name are 114 bytes, then 115; each is padded to a multiple of 4.
        let end_of_name = |n: usize| "\u{0}".repeat(n);
        assert_eq!(text.find("dev"), Some(110));
        assert!(text.contains(&format!("dev{}07070100000002000081ED", end_of_name(3))), "{text:?}");
        assert!(text.contains(&format!("init{}12345{}070701", end_of_name(2), end_of_name(3))), "{text:?}");
        assert!(text.contains(&format!("TRAILER!!!{}", end_of_name(1))) && text.len().is_multiple_of(4));
    }
}
