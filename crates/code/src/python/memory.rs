//! Memory of another process, read page by page.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;

/// The smallest page of all machines, bytes: what is in one is mapped as a whole or not at all.
const PAGE_BYTES: usize = 4096;
const PAGE: u64 = PAGE_BYTES as u64;
/// Most parts in one reading (`UIO_MAXIOV`).
const MOST_PARTS: usize = 1024;

/// Memory of a process.
pub(super) trait Memory {
    /// The bytes of each part, given by address and length. Errors: when one is not mapped, or may not be read.
    fn read(&self, parts: &[(u64, usize)]) -> io::Result<Vec<Vec<u8>>>;
}

/// A running process, by its ID.
#[derive(Debug)]
pub(super) struct Process(pub(super) u32);

impl Memory for Process {
    fn read(&self, parts: &[(u64, usize)]) -> io::Result<Vec<Vec<u8>>> {
        let mut all: Vec<Vec<u8>> = parts.iter().map(|(_, length)| vec![0; *length]).collect();
        let mut wanted: Vec<_> =
            parts.iter().zip(&mut all).map(|((address, _), bytes)| (*address, bytes.as_mut_slice())).collect();
        punctual_sys::memory::read_of(self.0, &mut wanted)?;
        Ok(all)
    }
}

/// Pages of a process, each as it was when it was first needed.
pub(super) struct Pages<'a> {
    memory: &'a dyn Memory,
    known: RefCell<HashMap<u64, Vec<u8>>>,
}

impl<'a> Pages<'a> {
    pub(super) fn of(memory: &'a dyn Memory) -> Pages<'a> {
        Pages { memory, known: RefCell::default() }
    }

    /// Reads the pages of these parts at once. Those that cannot be read are tried again one by one.
    pub(super) fn fetch(&self, parts: impl Iterator<Item = (u64, u64)>) -> Option<()> {
        let mut known = self.known.borrow_mut();
        let mut wanted: Vec<(u64, usize)> = Vec::new();
        for (at, length) in parts {
            let last = at.checked_add(length.max(1) - 1)? / PAGE;
            wanted.extend(
                (at / PAGE..=last).filter(|page| !known.contains_key(page)).map(|page| (page * PAGE, PAGE_BYTES)),
            );
        }
        wanted.sort_unstable();
        wanted.dedup();
        wanted.truncate(MOST_PARTS);
        let read = self.memory.read(&wanted).ok()?;
        known.extend(wanted.iter().map(|(at, _)| at / PAGE).zip(read));
        Some(())
    }

    /// `length` bytes, which are to be few.
    pub(super) fn bytes(&self, at: u64, length: u64) -> Option<Vec<u8>> {
        let end = at.checked_add(length)?;
        let is_known = (at / PAGE..end.div_ceil(PAGE)).all(|page| self.known.borrow().contains_key(&page));
        if !is_known {
            self.fetch(std::iter::once((at, length)))?;
        }
        let (known, mut all) = (self.known.borrow(), Vec::new());
        for page in at / PAGE..end.div_ceil(PAGE) {
            let within = |address: u64| usize::try_from(address.saturating_sub(page * PAGE).min(PAGE)).ok();
            all.extend_from_slice(known.get(&page)?.get(within(at)?..within(end)?)?);
        }
        Some(all)
    }

    pub(super) fn word(&self, at: u64) -> Option<u64> {
        if let Some(page) = self.known.borrow().get(&(at / PAGE)).filter(|_| at % PAGE <= PAGE - 8) {
            return word(page, at % PAGE);
        }
        word(&self.bytes(at, 8)?, 0)
    }

    pub(super) fn half(&self, at: u64) -> Option<u32> {
        u32::try_from(self.word(at)? & u64::from(u32::MAX)).ok()
    }
}

/// The word at an offset.
pub(super) fn word(bytes: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}
