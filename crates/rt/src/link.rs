//! What a measured thread answers by, or waits for answers by: made outside, where devices and addresses are looked up.

use crate::LogWriter;
use crate::line::Line;
use model::Span;
use std::fs::File;
#[cfg(target_arch = "x86_64")]
use std::io;
#[cfg(target_arch = "x86_64")]
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
#[cfg(target_arch = "x86_64")]
use sys::registers::Registers;

/// One end of a link.
#[derive(Debug)]
pub enum LinkEnd {
    /// Devices of the lab, each of which interrupts a while after it was started.
    #[cfg(target_arch = "x86_64")]
    Timers(Vec<DmaTimer>),
    /// Sends triggers and waits for their answers.
    Logger(Logger),
    /// Waits for triggers and answers them.
    Target(Target),
}

/// What sends triggers.
#[derive(Debug)]
pub struct Logger {
    /// To where.
    pub line: Line,
    /// Told from the triggers of everybody else by this number.
    pub session: u64,
    /// The first trigger that counts; those before are of the warm-up.
    pub first: u64,
    /// How many were sent before, to find out whether the other end is there. Where a trigger is a level, the next one is
    /// another.
    pub tries: u64,
    /// The peer is gone after this time without an answer, and at least [`Logger::MIN_CONSECUTIVE_TIMEOUTS`] triggers.
    pub peer_timeout: Span,
    /// How many triggers are remembered, so that a late answer counts with its own delay.
    pub remembered: usize,
    /// Where the parts of each answer go, by the kernel's time stamps: sending (not of wires), away, waking; where they are
    /// wanted.
    pub parts: Option<[LogWriter; 3]>,
    /// Where triggers go that are waited for no longer, each with how long it was; where that is wanted.
    pub unanswered: Option<LogWriter>,
    /// What it counts.
    pub counts: Arc<LinkCounts>,
}

impl Logger {
    /// Timeout of the answer to a trigger before the next one is sent, where answers carry no number. The answer is then lost,
    /// unless its level shows that it is late: a thread that is 100 ms late is rare, and one that is 200 ms late, and then answers
    /// three triggers at once, rarer.
    pub const ANSWER_TIMEOUT: Span = Span(100_000_000);
    /// Timeout of late answers after the last trigger; and over a serial line, whose bytes are 8 bits of a number, of the trigger
    /// 256 before.
    pub const LATE_ANSWER_TIMEOUT: Span = Span::SECOND;
    /// The fewest triggers in a row without an answer until the peer counts as gone.
    pub const MIN_CONSECUTIVE_TIMEOUTS: u64 = 10;
}

/// What answers triggers.
#[derive(Debug)]
pub struct Target {
    /// From where.
    pub line: Line,
    /// The shortest time between two answers in the long run, ns: no peer can make it flood a network.
    pub min_interval_ns: u64,
    /// Where the time goes that a trigger took from the kernel to the thread, where the kernel says when it came.
    pub waking: Option<LogWriter>,
    /// What it counts.
    pub counts: Arc<LinkCounts>,
}

/// What one end counts while it runs, for others to read.
#[derive(Debug, Default)]
pub struct LinkCounts {
    /// Triggers that were sent, or that came.
    pub triggers: AtomicU64,
    /// Answers that came after the next trigger was due.
    pub late: AtomicU64,
    /// The cycle before which every trigger was answered or given up. Released: who sees it finds those in the logs.
    pub settled: AtomicU64,
    /// Triggers that never came to the target, by the gaps in their numbers.
    pub missed: AtomicU64,
    /// What came a second time.
    pub duplicate: AtomicU64,
    /// What came from somebody else, or was no trigger or answer.
    pub foreign: AtomicU64,
    /// Triggers that came too soon after another and were not answered.
    pub too_soon: AtomicU64,
    /// Exchanges of the logger with itself over its own link, before the first trigger.
    pub own_exchanges: AtomicU64,
    /// The shortest, the median and the longest of them, ns.
    pub own_ns: [AtomicU64; 3],
}

/// Counts one more. Only one thread counts, so that no other can come between.
#[inline]
pub(crate) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

#[inline]
pub(crate) fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
}

/// A PCI device whose DMA takes a known time and ends with an interrupt: `edu` of QEMU (docs/specs/edu.rst).
#[cfg(target_arch = "x86_64")]
#[derive(Debug)]
pub struct DmaTimer {
    pub(crate) registers: Registers,
    /// `/dev/uioN`: a read waits for the next interrupt.
    pub(crate) interrupts: File,
    /// `config` of the PCI device.
    pub(crate) config: File,
}

#[cfg(target_arch = "x86_64")]
impl DmaTimer {
    /// The registers that are used, bytes.
    const BYTES: usize = 4096;

    /// Command register of a PCI device: ports, memory and bus mastering on, its interrupt not disabled.
    const COMMAND: u64 = 4;
    const COMMAND_ON: [u8; 2] = [7, 0];

    /// Of the device with these files: its first memory, its interrupts and its configuration. It is turned on.
    ///
    /// # Errors
    /// When it cannot be turned on, or its registers cannot be mapped.
    pub fn new(memory: &File, interrupts: File, config: File) -> io::Result<DmaTimer> {
        let timer = DmaTimer { registers: Registers::map(memory, Self::BYTES)?, interrupts, config };
        timer.turn_on()?;
        Ok(timer)
    }

    /// Lets it interrupt, which its driver has disabled when it did (uio_pci_generic).
    pub(crate) fn turn_on(&self) -> io::Result<()> {
        self.config.write_at(&Self::COMMAND_ON, Self::COMMAND).map(drop)
    }
}
