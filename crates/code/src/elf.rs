//! ELF files of other programs: their sections by name, read one by one with bounds.

use crate::budget::Budget;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Arc;

/// Longest name of a section that is known, bytes.
const LONGEST_NAME: usize = 64;
/// Longest text in a table of strings, bytes: a table may have a million entries, and no zero byte.
const LONGEST_TEXT: usize = 8192;
/// Most headers of segments and sections.
const MOST_HEADERS: u64 = 4096;
/// `SHF_COMPRESSED`, and its only kind that is read, `ELFCOMPRESS_ZLIB`.
const COMPRESSED: u64 = 1 << 11;
const ZLIB: u64 = 1;
/// `SHT_NOBITS`.
const NO_BITS: u64 = 8;
/// `PT_LOAD`.
const LOAD: u64 = 1;
/// `NT_GNU_BUILD_ID`.
const BUILD_ID: u64 = 3;
/// `EM_*` of this machine; others are refused.
const MACHINE: u64 = if cfg!(target_arch = "x86_64") {
    62
} else if cfg!(target_arch = "aarch64") {
    183
} else if cfg!(target_arch = "riscv64") {
    243
} else {
    40
};

/// A part of the file that is mapped.
#[derive(Debug)]
struct Segment {
    offset: u64,
    address: u64,
    bytes: u64,
}

/// A named part of the file.
#[derive(Debug)]
pub(crate) struct Section {
    name: Vec<u8>,
    kind: u64,
    flags: u64,
    /// Address without relocation.
    pub(crate) address: u64,
    offset: u64,
    bytes: u64,
}

/// An ELF file of this machine's architecture and byte order.
#[derive(Debug)]
pub(crate) struct Elf {
    file: Arc<File>,
    budget: Rc<Budget>,
    segments: Vec<Segment>,
    sections: Vec<Section>,
    is_64: bool,
}

/// Integers in bytes of little endian; `None` beyond the end.
pub(crate) fn integer(bytes: &[u8], at: usize, n: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(n)?)?;
    Some(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

/// A part of a file.
struct Part<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(into.len());
        let n = self.file.read_at(&mut into[..left], self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

/// `bytes` of a file from `offset` on; `None` if it has fewer, or if these are too many.
fn read(file: &File, budget: &Budget, offset: u64, bytes: u64) -> Option<Arc<[u8]>> {
    // A made-up size is not allocated.
    let length = file.metadata().ok()?.len();
    let end = offset.checked_add(bytes).filter(|end| *end <= length)?;
    budget.filled(bytes, Part { file, at: offset, end })
}

impl Elf {
    /// Reads the headers.
    pub(crate) fn open(file: &Arc<File>, budget: &Rc<Budget>) -> Option<Elf> {
        let header = read(file, budget, 0, 52)?;
        let is_64 = match header.get(..6)? {
            [0x7f, b'E', b'L', b'F', 2, 1] => true,
            [0x7f, b'E', b'L', b'F', 1, 1] => false,
            _ => return None,
        };
        let header = if is_64 { read(file, budget, 0, 64)? } else { header };
        if integer(&header, 18, 2)? != MACHINE {
            return None;
        }
        // Offsets of the fields in both classes, elf(5).
        let field = |wide: (usize, usize), narrow: (usize, usize)| {
            let (at, n) = if is_64 { wide } else { narrow };
            integer(&header, at, n)
        };
        let segments = table(
            (file, budget),
            field((32, 8), (28, 4))?,
            field((54, 2), (42, 2))?,
            field((56, 2), (44, 2))?,
            if is_64 { 56 } else { 32 },
        )
        .unwrap_or_default();
        let segments = segments.iter().filter_map(|one| Segment::of(one, is_64)).collect();
        let sections = table(
            (file, budget),
            field((40, 8), (32, 4))?,
            field((58, 2), (46, 2))?,
            field((60, 2), (48, 2))?,
            if is_64 { 64 } else { 40 },
        )
        .unwrap_or_default();
        let mut sections: Vec<(u64, Section)> = sections.iter().filter_map(|one| Section::of(one, is_64)).collect();
        let index = usize::try_from(field((62, 2), (50, 2))?).ok()?;
        let names = sections.get(index).and_then(|(_, one)| read(file, budget, one.offset, one.bytes));
        for (name, section) in &mut sections {
            let name = text(names.as_deref().unwrap_or_default(), *name).filter(|name| name.len() <= LONGEST_NAME);
            section.name = name.unwrap_or_default().to_vec();
        }
        let sections = sections.into_iter().map(|(_, section)| section).collect();
        Some(Elf { file: Arc::clone(file), budget: Rc::clone(budget), segments, sections, is_64 })
    }

    /// What is left for all files.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Another file, of the same budget.
    pub(crate) fn other(&self, file: File) -> Option<Elf> {
        Elf::open(&Arc::new(file), &self.budget)
    }

    /// The address, without relocation, of a byte of the file.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        let segment =
            self.segments.iter().find(|one| offset.checked_sub(one.offset).is_some_and(|within| within < one.bytes))?;
        segment.address.checked_add(offset - segment.offset)
    }

    /// The byte of the file that is mapped to an address without relocation.
    pub(crate) fn offset_of(&self, address: u64) -> Option<u64> {
        let segment = self
            .segments
            .iter()
            .find(|one| address.checked_sub(one.address).is_some_and(|within| within < one.bytes))?;
        segment.offset.checked_add(address - segment.address)
    }

    /// Size of an address, bytes.
    pub(crate) fn address_bytes(&self) -> u8 {
        if self.is_64 { 8 } else { 4 }
    }

    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|one| one.name == name.as_bytes())
    }

    /// The contents of a section, decompressed; `None` if it is not there, too large or damaged.
    pub(crate) fn data(&self, name: &str) -> Option<Arc<[u8]>> {
        let section = self.section(name).filter(|one| one.kind != NO_BITS)?;
        if section.flags & COMPRESSED == 0 {
            return read(&self.file, &self.budget, section.offset, section.bytes);
        }
        let length = if self.is_64 { 24 } else { 12 };
        let header = read(&self.file, &self.budget, section.offset, length)?;
        let bytes = if self.is_64 { integer(&header, 8, 8)? } else { integer(&header, 4, 4)? };
        let end = section.offset.checked_add(section.bytes.max(length))?;
        let packed = Part { file: &self.file, at: section.offset + length, end };
        (integer(&header, 0, 4)? == ZLIB).then_some(())?;
        self.budget.filled(bytes, flate2::read::ZlibDecoder::new(packed))
    }

    /// The identity of the build.
    pub(crate) fn build_id(&self) -> Option<Vec<u8>> {
        let note = self.data(".note.gnu.build-id")?;
        let (name, bytes, kind) = (integer(&note, 0, 4)?, integer(&note, 4, 4)?, integer(&note, 8, 4)?);
        let is_id = name == 4 && kind == BUILD_ID && note.get(12..16)? == b"GNU\0";
        let end = usize::try_from(bytes).ok()?.checked_add(16)?;
        note.get(16..end).filter(|_| is_id).map(<[u8]>::to_vec)
    }
}

/// Entries of a table of headers, each of `entry` bytes of which `least` are needed.
fn table((file, budget): (&File, &Budget), offset: u64, entry: u64, n: u64, least: u64) -> Option<Vec<Vec<u8>>> {
    if n == 0 || n > MOST_HEADERS || entry < least {
        return None;
    }
    let all = read(file, budget, offset, entry.checked_mul(n)?)?;
    Some(all.chunks_exact(usize::try_from(entry).ok()?).map(<[u8]>::to_vec).collect())
}

impl Segment {
    fn of(header: &[u8], is_64: bool) -> Option<Segment> {
        let n = if is_64 { 8 } else { 4 };
        let [offset, address, bytes] = if is_64 { [8, 16, 32] } else { [4, 8, 16] };
        let is_load = integer(header, 0, 4)? == LOAD;
        let segment = Segment {
            offset: integer(header, offset, n)?,
            address: integer(header, address, n)?,
            bytes: integer(header, bytes, n)?,
        };
        is_load.then_some(segment)
    }
}

impl Section {
    /// A section with the offset of its name.
    fn of(header: &[u8], is_64: bool) -> Option<(u64, Section)> {
        let n = if is_64 { 8 } else { 4 };
        let [flags, address, offset, bytes] = if is_64 { [8, 16, 24, 32] } else { [8, 12, 16, 20] };
        let section = Section {
            name: Vec::new(),
            kind: integer(header, 4, 4)?,
            flags: integer(header, flags, n)?,
            address: integer(header, address, n)?,
            offset: integer(header, offset, n)?,
            bytes: integer(header, bytes, n)?,
        };
        Some((integer(header, 0, 4)?, section))
    }
}

/// The text at an offset of a table of strings, to its zero byte; `None` if it is longer than [`LONGEST_TEXT`].
pub(crate) fn text(table: &[u8], offset: u64) -> Option<&[u8]> {
    let from = table.get(usize::try_from(offset).ok()?..)?;
    CStr::from_bytes_until_nul(&from[..from.len().min(LONGEST_TEXT + 1)]).ok().map(CStr::to_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_end_is_none_and_not_searched_whole() {
        let table = [vec![b'x'; LONGEST_TEXT + 1], b"\0y".to_vec()].concat();
        let length = |offset| text(&table, offset).map(<[u8]>::len);
        let end = LONGEST_TEXT as u64 + 1;
        assert_eq!(
            [0, 1, end, end + 1, end + 2, end + 3].map(length),
            [None, Some(LONGEST_TEXT), Some(0), None, None, None]
        );
    }
}
