//! Events of perf: a timer that interrupts one CPU, and samples of the stack of one thread.

mod ring;

use crate::check;
use punctual_model::SampledAt;
use ring::Ring;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The first 96 bytes of `struct perf_event_attr` (`PERF_ATTR_SIZE_VER3`, Linux 3.7): up to the user's stack.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
}

/// `PERF_ATTR_SIZE_VER3`.
const SIZE: u32 = 96;
/// `PERF_TYPE_SOFTWARE`, include/uapi/linux/perf_event.h.
const SOFTWARE: u32 = 1;
/// `PERF_COUNT_SW_CPU_CLOCK`: counts ns, by a timer that restarts itself in its own interrupt.
const CPU_CLOCK: u64 = 0;
/// `PERF_COUNT_SW_PAGE_FAULTS`.
const PAGE_FAULTS: u64 = 2;
/// Page faults for each sample: those of some MiB come within a millisecond, and would fill any ring.
const FAULTS_PER_SAMPLE: u64 = 16;
/// `PERF_COUNT_SW_CONTEXT_SWITCHES`: each time that the thread leaves a CPU.
const CONTEXT_SWITCHES: u64 = 3;
/// `PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER`.
const SAMPLE_TYPE: u64 = 1 << 16 | 1 << 1 | 1 << 2 | 1 << 12 | 1 << 13;
/// Bits of `perf_event_attr`: `comm` records that tell an execve(2) apart (`comm_exec`), and a chosen clock
/// (`use_clockid`).
const COMM: u64 = 1 << 9 | 1 << 24;
const USE_CLOCKID: u64 = 1 << 25;

/// Opens an event of a thread, or of all threads on a CPU (perf_event_open(2)).
fn open(attributes: &Attributes, tid: i32, cpu: i32) -> io::Result<OwnedFd> {
    let (tid, cpu, none) = (libc::c_long::from(tid), libc::c_long::from(cpu), -1 as libc::c_long);
    // PERF_FLAG_FD_CLOEXEC.
    let flags: libc::c_ulong = 1 << 3;
    // SAFETY: `attributes` is a valid perf_event_attr that contains its own size, and outlives the call.
    let file = check(unsafe {
        libc::syscall(libc::SYS_perf_event_open, std::ptr::from_ref(attributes), tid, cpu, none, flags)
    })?;
    let file = i32::try_from(file).map_err(io::Error::other)?;
    // SAFETY: the kernel has just returned this descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// Interrupts `cpu` every `period_ns` for as long as the file is open (`perf_event_open(2)`), also while it runs
/// non-preemptible code. Nothing is counted or kept. Errors: the kernel's error; `EACCES` without `CAP_PERFMON` or
/// because of `perf_event_paranoid`.
pub fn tick(cpu: u32, period_ns: u64) -> io::Result<OwnedFd> {
    let attributes =
        Attributes { kind: SOFTWARE, size: SIZE, config: CPU_CLOCK, sample_period: period_ns, ..Attributes::default() };
    open(&attributes, -1, i32::try_from(cpu).map_err(io::Error::other)?)
}

/// Samples of the user's registers and stack of one thread. The kernel ends them with their descriptors.
#[derive(Debug)]
pub struct StackSampler {
    /// The first one owns the ring; all write to it.
    events: Vec<(OwnedFd, u64, SampledAt)>,
    ring: Ring,
}

impl StackSampler {
    /// Starts to sample thread `tid` when it leaves a CPU, at every 16th page fault, and every `period_ns` of its CPU
    /// time: the registers of `registers` (bits of arch/*/include/uapi/asm/perf_regs.h) and up to `stack_bytes` of its
    /// stack. The times are those of `CLOCK_MONOTONIC`. The ring has `ring_bytes`, a power of two and of pages. Errors:
    /// the kernel's error; `EACCES` without `CAP_PERFMON` or because of `perf_event_paranoid`, `ESRCH` if there is no
    /// such thread, `EOPNOTSUPP` on architectures without registers of users.
    pub fn start(
        tid: u32,
        period_ns: u64,
        registers: u64,
        stack_bytes: u32,
        ring_bytes: usize,
    ) -> io::Result<StackSampler> {
        let tid = i32::try_from(tid).map_err(io::Error::other)?;
        let sources = [
            (CONTEXT_SWITCHES, 1, SampledAt::Switch),
            (PAGE_FAULTS, FAULTS_PER_SAMPLE, SampledAt::Fault),
            (CPU_CLOCK, period_ns, SampledAt::Clock),
        ];
        let mut events: Vec<(OwnedFd, u64, SampledAt)> = Vec::new();
        let mut ring = None;
        for (config, sample_period, kind) in sources {
            let attributes = Attributes {
                kind: SOFTWARE,
                size: SIZE,
                config,
                sample_period,
                sample_type: SAMPLE_TYPE,
                flags: USE_CLOCKID | if ring.is_none() { COMM } else { 0 },
                sample_regs_user: registers,
                sample_stack_user: stack_bytes,
                clockid: libc::CLOCK_MONOTONIC,
                ..Attributes::default()
            };
            let event = open(&attributes, tid, -1)?;
            match events.first() {
                None => ring = Some(Ring::of(&event, ring_bytes)?),
                Some((first, ..)) => redirect(&event, first)?,
            }
            let id = id(&event)?;
            events.push((event, id, kind));
        }
        let ring = ring.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(StackSampler { events, ring })
    }

    /// Passes on each record that the kernel has written since, as in perf_event_open(2), with its header.
    pub fn drain(&mut self, take: impl FnMut(&[u8])) {
        self.ring.drain(take);
    }

    /// The kind of the samples with this identifier.
    pub fn kind(&self, id: u64) -> Option<SampledAt> {
        self.events.iter().find(|(_, known, _)| *known == id).map(|(.., kind)| *kind)
    }
}

/// Lets `event` write to the ring of `owner`.
fn redirect(event: &OwnedFd, owner: &OwnedFd) -> io::Result<()> {
    // PERF_EVENT_IOC_SET_OUTPUT, `_IO('$', 5)`.
    // SAFETY: both are open descriptors of events; the call takes integers only.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), 0x2405, owner.as_raw_fd()) };
    check(result.into()).map(drop)
}

/// The identifier in the samples of an event.
fn id(event: &OwnedFd) -> io::Result<u64> {
    let mut id = 0_u64;
    // PERF_EVENT_IOC_ID, `_IOR('$', 7, __u64 *)`: the size is that of a pointer.
    let request = 2 << 30 | (size_of::<*mut u64>() as u64) << 16 | 0x2407;
    // SAFETY: the call writes 8 bytes to `id`, which outlives it.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), request as _, &raw mut id) };
    check(result.into()).map(|_| id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::comes_true;
    use crate::usage;

    const PERF_RECORD_LOST: u8 = 2;
    const PERF_RECORD_SAMPLE: u8 = 9;

    #[test]
    fn the_attributes_are_as_long_as_they_say() {
        assert_eq!(size_of::<Attributes>(), SIZE as usize);
        // Succeeds with the capability; without it, fails with an errno.
        match tick(0, 1_000_000) {
            Ok(_) => {}
            Err(err) => assert!(err.raw_os_error().is_some(), "{err}"),
        }
    }

    #[test]
    fn own_samples_come_in_whole_records() {
        let own = crate::thread::id();
        let mut sampler = match StackSampler::start(own, 100_000, 1 << 7, 1024, 1 << 18) {
            Ok(sampler) => sampler,
            Err(err) => {
                println!("skipped: {err}");
                return;
            }
        };
        let before = usage::thread().unwrap();
        let (mut ids, mut lost) = (Vec::new(), 0);
        let mut drain = |sampler: &mut StackSampler| {
            sampler.drain(|record| {
                let number = |at: usize| u64::from_ne_bytes(record[at..at + 8].try_into().unwrap());
                assert!(record.len() >= 8 && record.len().is_multiple_of(8), "{}", record.len());
                assert_eq!(usize::from(u16::from_ne_bytes([record[6], record[7]])), record.len());
                match record[0] {
                    PERF_RECORD_LOST => lost += number(16),
                    PERF_RECORD_SAMPLE => ids.push(number(8)),
                    _ => {}
                }
            });
            let of = |kind| ids.iter().filter(|id| sampler.kind(**id) == Some(kind)).count() as u64;
            (of(SampledAt::Clock), of(SampledAt::Switch), lost)
        };
        // Each look sleeps, and the looks use CPU time.
        assert!(comes_true(|| {
            std::hint::black_box((0..1_000_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n)));
            let (clock, switches, _) = drain(&mut sampler);
            clock >= 20 && switches >= 20
        }));
        let used = usage::since(&before, &usage::thread().unwrap());
        let (_, switches, lost) = drain(&mut sampler);
        assert!(switches + lost >= used.voluntary_switches + used.involuntary_switches, "{switches} {lost} {used:?}");
    }
}
