//! Minimal reader of 64-bit ELF files (elf(5), ld.so(8)).

use std::ops::Range;

/// Properties of a program, a library or a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Elf {
    /// The processor, `EM_*`.
    pub(super) machine: u16,
    /// The program interpreter (dynamic loader), if one is needed.
    pub(super) interpreter: Option<String>,
    /// Names of the needed libraries.
    pub(super) needed: Vec<String>,
    /// Its library search path; `$ORIGIN` is the directory of the file itself.
    pub(super) places: Vec<String>,
    /// Whether it is a kernel that QEMU can start directly (`CONFIG_PVH`).
    pub(super) is_pvh: bool,
}

/// Magic number of ELF files.
pub(super) const MAGIC: &[u8] = b"\x7fELF";

/// The file as little-endian numbers.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn number(&self, at: usize, bytes: usize) -> Option<usize> {
        let mut value = [0; 8];
        value.get_mut(..bytes)?.copy_from_slice(self.0.get(at..at.checked_add(bytes)?)?);
        usize::try_from(u64::from_le_bytes(value)).ok()
    }

    fn text(&self, at: usize) -> Option<String> {
        let rest = self.0.get(at..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&rest[..end]).into_owned())
    }
}

/// A segment: its type, its range in the file, and its load address.
struct Segment {
    kind: usize,
    file: Range<usize>,
    address: usize,
}

/// Reads the headers; `None` unless it is a complete 64-bit ELF file.
pub(super) fn read(file: &[u8]) -> Option<Elf> {
    const LOAD: usize = 1;
    const DYNAMIC: usize = 2;
    const INTERPRETER: usize = 3;
    const NOTE: usize = 4;
    let bytes = Bytes(file);
    let segments = segments(&bytes)?;
    let of_kind = |kind| segments.iter().filter(move |segment| segment.kind == kind);
    let mut elf = Elf { machine: u16::try_from(bytes.number(0x12, 2)?).ok()?, ..Elf::default() };
    elf.interpreter = of_kind(INTERPRETER).next().and_then(|segment| bytes.text(segment.file.start));
    elf.is_pvh = of_kind(NOTE).any(|segment| file.get(segment.file.clone()).is_some_and(has_pvh_entry));
    let loaded: Vec<_> = of_kind(LOAD).collect();
    for segment in of_kind(DYNAMIC) {
        read_dynamic(&bytes, segment, &loaded, &mut elf)?;
    }
    Some(elf)
}

/// Truncates a file after its last loaded byte and clears the section table in its header: symbols and debug
/// information are removed. `None` unless it is a complete 64-bit ELF file.
pub fn without_sections(mut file: Vec<u8>) -> Option<Vec<u8>> {
    const SECTION_TABLE: Range<usize> = 0x28..0x30;
    const SECTION_COUNTS: Range<usize> = 0x3c..0x40;
    let bytes = Bytes(&file);
    let segments = segments(&bytes)?;
    let (table, size) = table(&bytes)?;
    let end = segments.iter().map(|segment| segment.file.end).fold(table + size * segments.len(), usize::max);
    file.get_mut(SECTION_TABLE)?.fill(0);
    file.get_mut(SECTION_COUNTS)?.fill(0);
    file.truncate(end);
    file.shrink_to_fit();
    Some(file)
}

/// Offset of the program header table, and the size of its entries.
fn table(bytes: &Bytes<'_>) -> Option<(usize, usize)> {
    Some((bytes.number(0x20, 8)?, bytes.number(0x36, 2)?))
}

fn segments(bytes: &Bytes<'_>) -> Option<Vec<Segment>> {
    const IS_64_BIT_LITTLE_ENDIAN: &[u8] = &[2, 1];
    if !bytes.0.starts_with(MAGIC) || bytes.0.get(4..6)? != IS_64_BIT_LITTLE_ENDIAN {
        return None;
    }
    let (table, size) = table(bytes)?;
    let segment = |n: usize| {
        let at = table.checked_add(n * size)?;
        let (start, length) = (bytes.number(at + 0x08, 8)?, bytes.number(at + 0x20, 8)?);
        Some(Segment {
            kind: bytes.number(at, 4)?,
            file: start..start.checked_add(length)?,
            address: bytes.number(at + 0x10, 8)?,
        })
    };
    (0..bytes.number(0x38, 2)?).map(segment).collect()
}

fn read_dynamic(bytes: &Bytes<'_>, segment: &Segment, loaded: &[&Segment], elf: &mut Elf) -> Option<()> {
    const NEEDED: usize = 1;
    const STRINGS: usize = 5;
    const RPATH: usize = 15;
    const RUNPATH: usize = 29;
    let entries =
        segment.file.clone().step_by(16).map_while(|at| Some((bytes.number(at, 8)?, bytes.number(at + 8, 8)?)));
    let entries: Vec<_> = entries.take_while(|(tag, _)| *tag != 0).collect();
    let address = entries.iter().find(|(tag, _)| *tag == STRINGS)?.1;
    let holds = |segment: &&&Segment| (segment.address..segment.address + segment.file.len()).contains(&address);
    let home = loaded.iter().find(holds)?;
    let strings = home.file.start + (address - home.address);
    for (tag, offset) in entries {
        let text = || bytes.text(strings.checked_add(offset)?);
        match tag {
            NEEDED => elf.needed.push(text()?),
            RPATH | RUNPATH => elf.places.extend(text()?.split(':').map(str::to_owned)),
            _ => {}
        }
    }
    Some(())
}

/// Whether notes hold the PVH entry point (`XEN_ELFNOTE_PHYS32_ENTRY`, include/xen/interface/elfnote.h).
fn has_pvh_entry(notes: &[u8]) -> bool {
    const ENTRY: usize = 18;
    let bytes = Bytes(notes);
    let mut at = 0;
    while let (Some(name), Some(content), Some(kind)) =
        (bytes.number(at, 4), bytes.number(at + 4, 4), bytes.number(at + 8, 4))
    {
        if kind == ENTRY && notes.get(at + 12..at + 16) == Some(b"Xen\0") {
            return true;
        }
        at += 12 + name.next_multiple_of(4) + content.next_multiple_of(4);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::testing::Scratch;

    #[test]
    fn a_program_names_its_loader_and_its_libraries() {
        let shell = read(&std::fs::read("/bin/sh").unwrap()).unwrap();
        assert!(shell.interpreter.as_ref().is_none_or(|path| path.starts_with('/')), "{shell:?}");
        assert!(shell.interpreter.is_none() || shell.needed.iter().any(|name| name.contains(".so")), "{shell:?}");
        assert!(!shell.is_pvh);
    }

    #[test]
    fn a_program_without_its_sections_still_runs() {
        let scratch = Scratch::make();
        let whole = std::fs::read("/bin/true").unwrap();
        let cut = without_sections(whole.clone()).unwrap();
        assert!(cut.len() < whole.len());
        let path = scratch.file("true", cut);
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        // A process that another test starts meanwhile has the file open for writing until its exec.
        let status = loop {
            match std::process::Command::new(&path).status() {
                Err(err) if err.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
                ended => break ended.unwrap(),
            }
        };
        assert!(status.success());
        assert_eq!(without_sections(b"#!/bin/sh\n".to_vec()), None);
        assert_eq!(without_sections(b"\x7fELF\x02\x01".to_vec()), None, "cut off");
    }

    #[test]
    fn what_is_cut_off_is_no_elf_file() {
        let shell = std::fs::read("/bin/sh").unwrap();
        for end in [0, 4, 16, 0x38, 0x40, 0x100] {
            assert_eq!(read(&shell[..end]), None, "{end}");
        }
        assert_eq!(read(b"#!/bin/sh\n"), None);
    }

    #[test]
    fn the_entry_of_a_kernel_is_found_among_other_notes() {
        let note = |kind: u32, name: &[u8], content: &[u8]| {
            let mut note = Vec::new();
            for number in [u32::try_from(name.len()).unwrap(), u32::try_from(content.len()).unwrap(), kind] {
                note.extend(number.to_le_bytes());
            }
            for part in [name, content] {
                note.extend(part);
                note.resize(note.len().next_multiple_of(4), 0);
            }
            note
        };
        let other = note(3, b"GNU\0", b"12345");
        assert!(!has_pvh_entry(&other));
        assert!(has_pvh_entry(&[other, note(18, b"Xen\0", &[0; 8])].concat()));
        assert!(!has_pvh_entry(&note(18, b"GNU\0", &[0; 8])));
        assert!(!has_pvh_entry(b"\xff\xff"));
    }
}
