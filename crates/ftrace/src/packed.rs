//! Raw pages of the ring buffer and their formats, in a directory or an archive of tar.
//!
//! The files are those that `util/trace.sh` of google/schedviz packs: `traces/cpu0`, `formats/header_page`,
//! `formats/sched/sched_switch/format`.

use super::dat::{DatError, DatFile, DatHead, MOST_CPUS, Parser, path};
use super::format::page_layout;
use super::perf::only_perf;
use std::io::{self, Read, Seek, SeekFrom};

/// The clock of a kernel where no other was chosen, as that script does.
const CLOCK: &str = "local";
/// Most files that are named, and bytes of an archive that is decompressed in memory.
const MOST_FILES: usize = 1 << 16;
pub(super) const MOST_ARCHIVE: u64 = 256 << 20;
/// Bytes of a block of an archive, and the place of what tells its kind (POSIX.1-1988, tar.h).
const BLOCK: usize = 512;
const TAR: &[u8] = b"ustar";
const TAR_AT: usize = 257;

/// A file within another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) at: u64,
    pub(super) bytes: u64,
}

/// Whether these first bytes are those of an archive.
pub(super) fn is_archive(head: &[u8]) -> bool {
    head.get(TAR_AT..).is_some_and(|rest| rest.starts_with(TAR))
}

/// The regular files of an archive. Errors: when it is damaged.
pub(super) fn entries<R: Read + Seek>(input: &mut Parser<R>) -> Result<Vec<Entry>, DatError> {
    let (mut entries, mut at) = (Vec::new(), 0_u64);
    while at < input.length() {
        input.seek(at)?;
        let head: [u8; BLOCK] = input.array()?;
        if head.iter().all(|byte| *byte == 0) {
            break;
        }
        let text = |from: usize, most: usize| super::decode::text(head.get(from..from + most).unwrap_or_default());
        let bytes = u64::from_str_radix(text(124, 12).trim(), 8).map_err(|_| DatError::Damaged("an archive"))?;
        at += BLOCK as u64;
        input.check(at, bytes)?;
        if is_archive(&head) && matches!(head.get(156), Some(b'0' | 0)) && entries.len() < MOST_FILES {
            entries.push(Entry { name: text(0, 100), at, bytes });
        }
        at += bytes.next_multiple_of(BLOCK as u64);
    }
    Ok(entries)
}

/// The pages and formats among these files. Errors: when there are none, or one is damaged.
pub(super) fn open<R: Read + Seek>(mut input: Parser<R>, entries: &[Entry]) -> Result<DatFile<R>, DatError> {
    let (mut head, mut places) = (DatHead::default(), Vec::new());
    for Entry { name, at, bytes } in entries {
        let mut text = || {
            input.seek(*at)?;
            input.text(*bytes)
        };
        match *name.trim_start_matches("./").split('/').collect::<Vec<_>>() {
            ["traces", cpu] => {
                let cpu =
                    cpu.strip_prefix("cpu").and_then(|cpu| cpu.parse::<u32>().ok()).filter(|cpu| *cpu < MOST_CPUS);
                let Some(cpu) = cpu.and_then(|cpu| usize::try_from(cpu).ok()) else { continue };
                places.resize(places.len().max(cpu + 1), (0, 0));
                places.get_mut(cpu).into_iter().for_each(|place| *place = (*at, *bytes));
            }
            ["formats", "header_page"] => head.layouts.page = text()?,
            ["formats", system, _, "format"] => head.layouts.formats.extend(path(system, text()?)),
            _ => {}
        }
    }
    if places.is_empty() || page_layout(&head.layouts.page).is_none() {
        // As perf record --threads writes them.
        if entries.iter().any(|entry| entry.name == "data") {
            return Err(only_perf("perf.data in a directory"));
        }
        let needed = "files without traces/cpu0, formats/header_page and formats/sched/sched_switch/format";
        return Err(DatError::Unsupported(needed.to_owned()));
    }
    Ok(DatFile::of_places(input, head, CLOCK.to_owned(), &places))
}

/// The files of a directory, one after the other. One of them is open at a time.
pub(super) struct Files<F, R> {
    ends: Vec<u64>,
    open: F,
    current: Option<(usize, R)>,
    at: u64,
}

impl<F: FnMut(usize) -> io::Result<R>, R: Read + Seek> Files<F, R> {
    /// Files of these sizes, and how each is opened, by its index. Returns them with the place of each.
    pub(super) fn new(files: Vec<(String, u64)>, open: F) -> (Files<F, R>, Vec<Entry>) {
        let mut end = 0_u64;
        let place = |(name, bytes): (String, u64)| {
            let at = end;
            end = end.saturating_add(bytes);
            Entry { name, at, bytes: end - at }
        };
        let entries: Vec<Entry> = files.into_iter().map(place).collect();
        let ends = entries.iter().map(|entry| entry.at + entry.bytes).collect();
        (Files { ends, open, current: None, at: 0 }, entries)
    }
}

impl<F: FnMut(usize) -> io::Result<R>, R: Read + Seek> Read for Files<F, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let index = self.ends.partition_point(|end| *end <= self.at);
        let Some(end) = self.ends.get(index) else { return Ok(0) };
        let begin = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let (_, file) = match self.current.take().filter(|(current, _)| *current == index) {
            Some(current) => self.current.insert(current),
            None => self.current.insert((index, (self.open)(index)?)),
        };
        file.seek(SeekFrom::Start(self.at - begin))?;
        let n = file.take(end - self.at).read(buffer)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl<F, R> Seek for Files<F, R> {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        let end = self.ends.last().copied().unwrap_or(0);
        let at = match place {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => end.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
