//! System management interrupts: the firmware stops a CPU, which only this counter shows.

use super::HostFs;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// `MSR_SMI_COUNT`: interrupts since reset, of Intel CPUs from Nehalem on (Intel SDM volume 4, table 2-3).
const MSR_SMI_COUNT: u64 = 0x34;

/// The counter of one CPU.
#[derive(Debug)]
pub struct SmiCounter(File);

impl SmiCounter {
    /// Opens the counter of `cpu`, and reads it once as a test. Errors: one line: the CPU has no such counter, the
    /// kernel module is not loaded, or this user may not read it.
    pub fn open(cpu: u32) -> Result<SmiCounter, String> {
        SmiCounter::open_below(&HostFs::here(), cpu).map_err(|err| {
            let path = format!("/dev/cpu/{cpu}/msr");
            let advice = match err.raw_os_error() {
                Some(libc::ENOENT) => "run `modprobe msr`",
                Some(libc::EIO) => "this CPU lacks the counter",
                _ => "run as root",
            };
            format!("cannot count system management interrupts of CPU {cpu}: {path}: {err}; {advice}")
        })
    }

    /// Opens the counter of `cpu` of the machine `fs`, and reads it once as a test.
    pub(super) fn open_below(fs: &HostFs, cpu: u32) -> io::Result<SmiCounter> {
        let counter = SmiCounter(File::open(fs.root.join(format!("dev/cpu/{cpu}/msr")))?);
        counter.count().map(|_| counter)
    }

    /// Interrupts since reset. Reading interrupts that CPU for a moment (msr(4)). Errors: `EIO` when the CPU has no
    /// such register.
    pub fn count(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, MSR_SMI_COUNT)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}
