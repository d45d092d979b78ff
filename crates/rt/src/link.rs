//! The link ends of measured threads, made outside of them, where devices and addresses are looked up.

use crate::LogWriter;
use crate::line::Line;
#[cfg(target_arch = "x86_64")]
use punctual_model::Link;
use punctual_model::Span;
#[cfg(target_arch = "x86_64")]
use punctual_sys::registers::Registers;
#[cfg(target_arch = "x86_64")]
use std::ffi::CString;
#[cfg(target_arch = "x86_64")]
use std::fs::File;
#[cfg(target_arch = "x86_64")]
use std::io;
#[cfg(target_arch = "x86_64")]
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
#[cfg(target_arch = "x86_64")]
use std::time::{Duration, Instant};

/// One end of a link.
#[derive(Debug)]
pub enum LinkEnd {
    /// Devices of the lab, each of which interrupts a fixed time after its start.
    #[cfg(target_arch = "x86_64")]
    Timers(Vec<DmaTimer>),
    /// Sends triggers and waits for their answers.
    Logger(Logger),
    /// Waits for triggers and answers them.
    Target(Target),
}

/// The end that sends triggers.
#[derive(Debug)]
pub struct Logger {
    /// The line to the target.
    pub line: Line,
    /// Session id, which distinguishes these triggers from those of other loggers.
    pub session: u64,
    /// The first trigger that counts; earlier ones are warm-up.
    pub first: u64,
    /// Number of triggers sent before, as a test for the peer. Where triggers are levels, the next is the opposite.
    pub tries: u64,
    /// Time without an answer, and [`Logger::MIN_CONSECUTIVE_TIMEOUTS`] triggers, after which the peer is gone.
    pub peer_timeout: Span,
    /// Number of triggers remembered, so that a late answer counts with its own delay.
    pub remembered: usize,
    /// Logs of the parts of each answer, by the kernel's time stamps: sending (not of wires), away, waking; `None` when
    /// they are not recorded.
    pub parts: Option<[LogWriter; 3]>,
    /// Log of triggers that were given up, each with the time waited; `None` when they are not recorded.
    pub unanswered: Option<LogWriter>,
    /// The counters of this end.
    pub counts: Arc<LinkCounts>,
}

impl Logger {
    /// Timeout of the answer to a trigger before the next one is sent, where answers carry no number. The answer is
    /// then lost, unless its level shows that it is late. A thread that is 100 ms late is rare; one that is 200 ms
    /// late, and then answers three triggers at once, is rarer.
    pub const ANSWER_TIMEOUT: Span = Span(100_000_000);
    /// Timeout of late answers after the last trigger; over a serial line, whose bytes are 8 bits of a number, also of
    /// the trigger 256 before.
    pub const LATE_ANSWER_TIMEOUT: Span = Span::SECOND;
    /// Minimum of consecutive triggers without an answer after which the peer is gone.
    pub const MIN_CONSECUTIVE_TIMEOUTS: u64 = 10;
}

/// The end that answers triggers.
#[derive(Debug)]
pub struct Target {
    /// The line to the logger.
    pub line: Line,
    /// Minimum interval between two answers in the long run, ns: no peer can make the target flood a network.
    pub min_interval_ns: u64,
    /// Log of the time from the kernel to the thread of each trigger, where the kernel provides a time stamp.
    pub waking: Option<LogWriter>,
    /// The counters of this end.
    pub counts: Arc<LinkCounts>,
}

/// Counters of one end while it runs, for other threads to read.
#[derive(Debug, Default)]
pub struct LinkCounts {
    /// Triggers sent or received.
    pub triggers: AtomicU64,
    /// Answers that came after the next trigger was due.
    pub late: AtomicU64,
    /// The cycle before which every trigger was answered or given up. Released: its reader finds those in the logs.
    pub settled: AtomicU64,
    /// Triggers that never reached the target, by the gaps in their numbers.
    pub missed: AtomicU64,
    /// Duplicates.
    pub duplicate: AtomicU64,
    /// Data from other senders, or that is neither trigger nor answer.
    pub foreign: AtomicU64,
    /// Triggers that came too soon after another and were not answered.
    pub too_soon: AtomicU64,
    /// Exchanges of the logger with itself over its own link, before the first trigger.
    pub own_exchanges: AtomicU64,
    /// The minimum, the median and the maximum of them, ns.
    pub own_ns: [AtomicU64; 3],
}

/// Increments a counter. Only one thread writes to it, so that no update is lost.
#[inline]
pub(crate) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

#[inline]
pub(crate) fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn acknowledge(registers: &Registers) {
    registers.write_u32(ACKNOWLEDGE, registers.read_u32(INTERRUPT_STATUS).unwrap_or(0));
}

/// The source of the interrupts of a [`DmaTimer`].
#[cfg(target_arch = "x86_64")]
#[derive(Debug)]
pub enum Interrupts {
    /// `/dev/uioN`: a read waits for the next interrupt. The driver disables it each time (uio_pci_generic).
    Linux(File),
    /// The path of an RTDM device, which a thread of Cobalt opens. The driver acknowledges interrupts out of band.
    Cobalt(CString),
}

/// A PCI device whose DMA takes a known time and ends with an interrupt: `edu` of QEMU (docs/specs/edu.rst).
#[cfg(target_arch = "x86_64")]
#[derive(Debug)]
pub struct DmaTimer {
    pub(crate) registers: Registers,
    pub(crate) interrupts: Interrupts,
    /// `config` of the PCI device.
    pub(crate) config: File,
}

/// Registers of `edu` (QEMU, docs/specs/edu.rst): raised interrupts, their acknowledgment, the command of the DMA.
#[cfg(target_arch = "x86_64")]
const INTERRUPT_STATUS: usize = 0x24;
#[cfg(target_arch = "x86_64")]
const ACKNOWLEDGE: usize = 0x64;
#[cfg(target_arch = "x86_64")]
pub(crate) const DMA_COMMAND: usize = 0x98;
/// Bit of the command while the DMA runs. The device then ignores its registers of the DMA.
#[cfg(target_arch = "x86_64")]
const IS_RUNNING: u64 = 1;

#[cfg(target_arch = "x86_64")]
impl DmaTimer {
    /// Size of the register range in use, bytes.
    const BYTES: usize = 4096;

    /// Command register of a PCI device: ports, memory and bus mastering on, interrupt not disabled.
    const COMMAND: u64 = 4;
    const COMMAND_ON: [u8; 2] = [7, 0];
    /// The same with the interrupt disabled.
    const COMMAND_SILENT: [u8; 2] = [7, 4];
    /// Interval of the checks whether the DMA of an earlier user has ended.
    const POLL_INTERVAL: Duration = Duration::from_millis(1);

    /// Ends what an earlier user of the device with these files has left: a DMA that runs, an interrupt that waits. On
    /// a line that several devices share, it would else be one that no driver handles. Leaves the interrupt disabled.
    /// Errors: as [`DmaTimer::new`], or when the DMA does not end.
    #[expect(clippy::disallowed_methods, reason = "runs before the barrier")]
    pub fn drain(memory: &File, config: &File) -> io::Result<()> {
        config.write_at(&Self::COMMAND_SILENT, Self::COMMAND)?;
        let registers = Registers::map(memory, Self::BYTES)?;
        let began = Instant::now();
        while registers.read_u64(DMA_COMMAND).unwrap_or(0) & IS_RUNNING != 0 {
            if began.elapsed() > Duration::from_nanos(2 * Link::DEVICE_DELAY.ns()) {
                return Err(io::Error::other("in use by another program"));
            }
            std::thread::sleep(Self::POLL_INTERVAL);
        }
        acknowledge(&registers);
        Ok(())
    }

    /// Acknowledges all interrupts.
    #[inline]
    pub(crate) fn acknowledge(&self) {
        acknowledge(&self.registers);
    }

    /// A timer of the device with these files: first memory, interrupts and configuration. Enables the device. Errors:
    /// when the device cannot be enabled, or its registers cannot be mapped.
    pub fn new(memory: &File, interrupts: Interrupts, config: File) -> io::Result<DmaTimer> {
        let timer = DmaTimer { registers: Registers::map(memory, Self::BYTES)?, interrupts, config };
        timer.turn_on()?;
        Ok(timer)
    }

    /// Enables the device and its interrupt.
    pub(crate) fn turn_on(&self) -> io::Result<()> {
        self.config.write_at(&Self::COMMAND_ON, Self::COMMAND).map(drop)
    }
}
