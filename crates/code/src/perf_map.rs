//! Names of code that a process makes while it runs, from the map that it writes of it: `/tmp/perf-PID.map`.
//!
//! The file has no times, and a range may get another name at any time. So a name holds for a sample if it was in the
//! file before, and nothing else is there for its address after: else it is unknown.

use crate::module::plain;
use punctual_model::CodeFrame;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

/// Most bytes of a map that are read, and that are read at once.
const MOST_BYTES: u64 = 64 << 20;
const PART_BYTES: usize = 1 << 20;
/// Longest line, bytes: a longer one is damaged.
const LONGEST_LINE: usize = 8192;
/// Most ranges of a map.
const MOST_RANGES: usize = 300_000;
/// Bytes at the end of what is known that are compared before more is read.
const COMPARED_BYTES: usize = 4096;

/// A function in a map.
#[derive(Debug, Clone)]
struct Named {
    /// Address behind its last.
    end: u64,
    /// Time at which the map had it, `CLOCK_MONOTONIC`, ns.
    since_ns: u64,
    name: Arc<str>,
}

/// The map of one process, as far as it is read.
#[derive(Debug, Default)]
pub struct PerfMap {
    process: u32,
    /// By first address; the ranges do not overlap.
    ranges: BTreeMap<u64, Named>,
    file: Option<(u64, u64)>,
    read_bytes: u64,
    /// The end of what is read: the beginning of an unfinished line, and the bytes before.
    unfinished: Vec<u8>,
    last: Vec<u8>,
    /// Whether it is larger than what is read of it.
    is_too_large: bool,
}

impl PerfMap {
    /// The map of process `process`; nothing is read yet.
    pub fn of(process: u32) -> PerfMap {
        PerfMap { process, ..PerfMap::default() }
    }

    /// Reads what was written since. A map that was replaced or shortened begins anew.
    pub fn refresh(&mut self) {
        let file = punctual_host::perf_map(self.process);
        if file.and_then(|file| self.read(&file)).is_none() {
            *self = PerfMap::of(self.process);
        }
    }

    /// `None` if the file cannot be read.
    fn read(&mut self, file: &File) -> Option<()> {
        let found = file.metadata().ok()?;
        let id = Some((found.dev(), found.ino()));
        let mut before = vec![0; self.last.len()];
        let at = self.read_bytes.checked_sub(before.len() as u64)?;
        let is_same = self.file == id && found.len() >= self.read_bytes && file.read_exact_at(&mut before, at).is_ok();
        if !is_same || before != self.last {
            *self = PerfMap { file: id, ..PerfMap::of(self.process) };
        }
        let mut part = vec![0; PART_BYTES.min(usize::try_from(found.len() - self.read_bytes).ok()?)];
        while self.read_bytes < found.len() {
            if self.read_bytes + part.len() as u64 > MOST_BYTES || self.ranges.len() > MOST_RANGES {
                self.is_too_large = true;
                break;
            }
            let n = file.read_at(&mut part, self.read_bytes).ok().filter(|n| *n > 0)?;
            let part = part.get(..n)?;
            self.take(part, punctual_sys::clock::monotonic().0);
        }
        Some(())
    }

    /// Takes the next bytes, which were in the file at `since_ns`.
    fn take(&mut self, part: &[u8], since_ns: u64) {
        self.read_bytes += part.len() as u64;
        let keep = part.len().saturating_sub(COMPARED_BYTES);
        self.last.extend_from_slice(part.get(keep..).unwrap_or_default());
        self.last.drain(..self.last.len().saturating_sub(COMPARED_BYTES));
        let mut rest = std::mem::take(&mut self.unfinished);
        rest.extend_from_slice(part);
        let mut lines = rest.split(|byte| *byte == b'\n');
        self.unfinished = lines.next_back().unwrap_or_default().to_vec();
        self.unfinished.truncate(LONGEST_LINE);
        for (start, end, name) in lines.filter_map(entry) {
            self.insert(start, end, Named { end, since_ns, name: name.into() });
        }
    }

    /// The last one holds: it replaces what it covers of those before.
    fn insert(&mut self, start: u64, end: u64, named: Named) {
        let covered: Vec<u64> = (self.ranges.range(..end).rev())
            .take_while(|(_, other)| other.end > start)
            .map(|(other, _)| *other)
            .collect();
        for other in covered {
            let Some(old) = self.ranges.remove(&other) else { continue };
            if old.end > end {
                self.ranges.insert(end, old.clone());
            }
            if other < start {
                self.ranges.insert(other, Named { end: start, ..old });
            }
        }
        self.ranges.insert(start, named);
    }

    /// The frame of a function at an address, if [`PerfMap::name`] is sure of it.
    pub(crate) fn frame(&self, address: u64, at_ns: u64) -> Option<CodeFrame> {
        let name = self.name(address, at_ns)?;
        // Python's trampolines (Python/perf_trampoline.c) write the name and the file.
        let of_python = name.strip_prefix("py::").and_then(|both| both.split_once(':'));
        let (function, file) = of_python.map_or((name, None), |(function, file)| (function, Some(file.to_owned())));
        let object = format!("perf-{}.map", self.process);
        Some(CodeFrame { function: Some(function.to_owned()), file, line: None, object, address: None })
    }

    /// The function at an address at a time, if it is sure: as far as the map is read, which must be after that time.
    fn name(&self, address: u64, at_ns: u64) -> Option<&str> {
        let (_, named) = self.ranges.range(..=address).next_back()?;
        (address < named.end && named.since_ns <= at_ns && !self.is_too_large).then_some(&*named.name)
    }
}

/// Start, end and name in a line `START SIZE NAME`, numbers in hexadecimal.
fn entry(line: &[u8]) -> Option<(u64, u64, String)> {
    let line = line.get(..line.len().min(LONGEST_LINE)).map(String::from_utf8_lossy)?;
    let mut words = line.splitn(3, ' ');
    let mut number = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
    let (start, size) = (number()?, number()?);
    let name = plain(words.next()?.trim());
    let end = start.checked_add(size).filter(|end| *end > start && !name.is_empty())?;
    Some((start, end, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_host::testing::Scratch;
    use std::io::Write;

    #[test]
    fn only_whole_lines_with_a_range_and_a_name_are_taken() {
        for (line, expected) in [
            ("1000 10 py::step:/a b/control.py", Some((0x1000, 0x1010, "py::step:/a b/control.py"))),
            ("0x7f00 0x1 f", Some((0x7f00, 0x7f01, "f"))),
            ("10 1 \u{1b}[31mred\u{202e}", Some((0x10, 0x11, "[31mred"))),
            ("ffffffffffffffff 1 f", None),
            ("fffffffffffffffe 1 f", Some((u64::MAX - 1, u64::MAX, "f"))),
            ("10 0 f", None),
            ("10 -1 f", None),
            ("10 1", None),
            ("10 1 ", None),
            ("10 1 \u{1}", None),
            ("", None),
            (" 10 1 f", None),
            ("11111111111111111 1 f", None),
            ("+ 1 f", None),
        ] {
            let found = entry(line.as_bytes());
            assert_eq!(found.as_ref().map(|(start, end, name)| (*start, *end, name.as_str())), expected, "{line}");
        }
        assert_eq!(entry(b"10 1 \xff\xfe").map(|(.., name)| name), Some("\u{fffd}\u{fffd}".to_owned()));
    }

    #[test]
    fn a_name_holds_from_when_it_was_seen_until_its_range_is_used_again() {
        let mut map = PerfMap::default();
        map.take(b"1000 100 whole\n", 5);
        assert_eq!(
            [0xfff, 0x1000, 0x10ff, 0x1100].map(|at| map.name(at, 5)),
            [None, Some("whole"), Some("whole"), None]
        );
        assert_eq!(map.name(0x1000, 4), None, "it was there, or not");
        // In the middle; the rest keeps its name and time.
        map.take(b"1040 20 in", 7);
        assert_eq!(map.name(0x1040, 9), Some("whole"), "an unfinished line");
        map.take(b"ner\n", 8);
        assert_eq!(
            [0x103f, 0x1040, 0x105f, 0x1060].map(|at| map.name(at, 8)),
            [Some("whole"), Some("inner"), Some("inner"), Some("whole")]
        );
        // Before the sample one name, after it another: unknown.
        assert_eq!((map.name(0x1040, 7), map.name(0x1060, 7)), (None, Some("whole")));
        map.take(b"0 ffffffff all\n", 9);
        assert_eq!((map.name(0x1040, 9), map.name(0x1040, 8), map.ranges.len()), (Some("all"), None, 1));
    }

    #[test]
    fn a_name_of_python_is_a_function_and_a_file() {
        let mut map = PerfMap::of(7);
        map.take(b"10 1 py::step:/opt/control.py\n20 1 JS:*step /opt/a.js:3:1\n", 0);
        let frame = |at| map.frame(at, 0).map(|one| (one.function.unwrap(), one.file, one.line, one.object));
        let object = || "perf-7.map".to_owned();
        assert_eq!(frame(0x10), Some(("step".to_owned(), Some("/opt/control.py".to_owned()), None, object())));
        assert_eq!(frame(0x20), Some(("JS:*step /opt/a.js:3:1".to_owned(), None, None, object())));
        assert_eq!(frame(0x30), None);
    }

    #[test]
    fn a_file_that_grows_is_read_on_and_one_that_is_replaced_begins_anew() {
        let scratch = Scratch::make();
        let path = scratch.file("map", "1000 10 first\n2000 10 se");
        let (mut map, file) = (PerfMap::default(), File::open(&path).unwrap());
        map.read(&file).unwrap();
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"cond\n").unwrap();
        let seen = map.ranges[&0x1000].since_ns;
        map.read(&file).unwrap();
        assert_eq!((map.name(0x1000, seen), map.name(0x2000, u64::MAX)), (Some("first"), Some("second")));
        // In place, longer, and with another beginning.
        std::fs::write(&path, "1000 10 other\n2000 10 second\n3000 10 third\n").unwrap();
        map.read(&file).unwrap();
        assert_eq!((map.name(0x1000, seen), map.name(0x1000, u64::MAX)), (None, Some("other")));
        std::fs::write(&path, "").unwrap();
        map.read(&file).unwrap();
        assert_eq!((map.name(0x1000, u64::MAX), map.ranges.len()), (None, 0));
        map.refresh();
        assert!(map.file.is_none(), "no process has ID 0");
    }

    #[test]
    fn a_map_without_end_is_not_kept() {
        let mut map = PerfMap::default();
        map.take(&vec![b'1'; 100_000], 1);
        assert!(map.unfinished.len() <= LONGEST_LINE && map.last.len() == COMPARED_BYTES);
        map.take(b"\n1000 10 f\n", 2);
        assert_eq!(map.name(0x1000, 2), Some("f"));
        let scratch = Scratch::make();
        let lines: String = (0..MOST_RANGES + 2000).map(|n| format!("{:x} 1 f\n", n * 2)).collect();
        let file = File::open(scratch.file("map", lines.repeat(2))).unwrap();
        map.read(&file).unwrap();
        assert!(map.ranges.len() < MOST_RANGES + 200_000 && map.name(0, u64::MAX).is_none(), "{}", map.ranges.len());
    }

    proptest! {
        #[test]
        fn the_last_line_that_covers_an_address_names_it(lines in prop::collection::vec((0..64_u64, 1..32_u64), 1..40)) {
            let mut map = PerfMap::default();
            for (n, (start, size)) in (0..).zip(&lines) {
                map.take(format!("{start:x} {size:x} f{n}\n").as_bytes(), n);
            }
            for address in 0..100 {
                let last = lines.iter().rposition(|(start, size)| (*start..start + size).contains(&address));
                let expected = last.map(|n| format!("f{n}"));
                prop_assert_eq!(map.name(address, u64::MAX), expected.as_deref());
                let before = last.and_then(|n| u64::try_from(n).unwrap().checked_sub(1));
                prop_assert_eq!(before.and_then(|at_ns| map.name(address, at_ns)), None);
            }
        }

        #[test]
        fn no_bytes_are_trusted(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..8)) {
            let mut map = PerfMap::default();
            parts.iter().for_each(|part| map.take(part, 0));
            prop_assert!(map.ranges.len() <= 1600);
        }
    }
}
