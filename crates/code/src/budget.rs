//! What all files of all watched programs together may take: memory of their sections, and time.

use punctual_sys::usage::thread_cpu_time;
use std::cell::Cell;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Memory of all that is read, bytes. One section takes at most half of what is left, so that a large file leaves some
/// for the next ones.
const MOST_BYTES: u64 = 128 << 20;
/// Memory of a file besides its sections, bytes.
const FILE_BYTES: u64 = 4096;
/// Bytes of all programs of lines: each may be a line, which takes 24 bytes of memory for as long as the file is open.
const MOST_LINES: u64 = 24 << 20;
/// CPU time of all look-ups, ns.
const MOST_NS: u64 = 10_000_000_000;

/// What is left. Nothing is given back: files stay open until the end.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: Cell<u64>,
    lines: Cell<u64>,
    ns: Cell<u64>,
    is_stopped: Arc<AtomicBool>,
}

impl Budget {
    /// All, until `is_stopped` is set.
    pub(crate) fn new(is_stopped: Arc<AtomicBool>) -> Budget {
        Budget { bytes: Cell::new(MOST_BYTES), lines: Cell::new(MOST_LINES), ns: Cell::new(MOST_NS), is_stopped }
    }

    /// Whether there is any time left.
    pub(crate) fn is_open(&self) -> bool {
        self.ns.get() > 0 && !self.is_stopped.load(Relaxed)
    }

    /// Does `work` and takes the time that it needs.
    pub(crate) fn timed<T>(&self, work: impl FnOnce() -> T) -> T {
        let began = thread_cpu_time();
        let done = work();
        self.ns.set(self.ns.get().saturating_sub(thread_cpu_time().ns().saturating_sub(began.ns())));
        done
    }

    /// Takes the memory of a file; `None` if there is none left.
    pub(crate) fn open_file(&self) -> Option<()> {
        self.take(FILE_BYTES)
    }

    /// Takes programs of lines of this many bytes; `None` if there are too many.
    pub(crate) fn take_lines(&self, bytes: usize) -> Option<()> {
        self.lines.set(self.lines.get().checked_sub(bytes as u64)?);
        Some(())
    }

    /// `bytes` of `from`; `None` if it has fewer, or if these are too many.
    pub(crate) fn filled(&self, bytes: u64, mut from: impl Read) -> Option<Arc<[u8]>> {
        self.take(bytes)?;
        // In place: a copy would need twice as much.
        let mut into: Arc<[u8]> = std::iter::repeat_n(0, usize::try_from(bytes).ok()?).collect();
        from.read_exact(Arc::get_mut(&mut into)?).ok()?;
        Some(into)
    }

    fn take(&self, bytes: u64) -> Option<()> {
        let left = self.bytes.get();
        (bytes <= left / 2 && self.is_open()).then(|| self.bytes.set(left - bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_takes_half_of_what_is_left() {
        let budget = Budget::new(Arc::default());
        let zeros = |bytes| budget.filled(bytes, std::io::repeat(0)).map(|data| data.len());
        assert_eq!(zeros(MOST_BYTES / 2 + 1), None);
        assert_eq!(zeros(MOST_BYTES - (16 << 10)), None);
        budget.bytes.set(8192);
        assert_eq!((zeros(4097), zeros(4096), zeros(2049)), (None, Some(4096), None));
        assert_eq!(budget.filled(5, &[0; 4][..]), None, "its end");
        assert_eq!(zeros(0), Some(0));
        let lines =
            [MOST_LINES + 1, MOST_LINES - 1, 2, 1].map(|bytes| budget.take_lines(usize::try_from(bytes).unwrap()));
        assert_eq!(lines, [None, Some(()), None, Some(())]);
        budget.is_stopped.store(true, Relaxed);
        assert_eq!(zeros(0), None);
    }
}
