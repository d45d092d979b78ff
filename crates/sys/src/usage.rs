//! Resource usage of a thread or of a finished child.

use crate::time::{self, ns_of, timespec_of};
use crate::{check, unsigned};
use punctual_model::{Span, Usage};
use std::io;
use std::mem::MaybeUninit;

/// Time, us, of a `timeval` that is never negative.
fn us(time: libc::timeval) -> u64 {
    unsigned(time.tv_sec) * 1_000_000 + unsigned(time.tv_usec)
}

fn of(usage: &libc::rusage) -> Usage {
    Usage {
        user_us: us(usage.ru_utime),
        system_us: us(usage.ru_stime),
        minor_faults: unsigned(usage.ru_minflt),
        major_faults: unsigned(usage.ru_majflt),
        voluntary_switches: unsigned(usage.ru_nvcsw),
        involuntary_switches: unsigned(usage.ru_nivcsw),
        allocations: 0,
    }
}

/// Resource usage of the calling thread since it began, `getrusage(2)` with `RUSAGE_THREAD`.
pub fn thread() -> io::Result<Usage> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is memory for an rusage.
    check(unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) }.into())?;
    // SAFETY: all zeroes is a valid rusage, and the kernel has filled it in.
    Ok(of(&unsafe { usage.assume_init() }))
}

/// The difference of two readings of the same thread.
pub fn since(before: &Usage, after: &Usage) -> Usage {
    Usage {
        user_us: after.user_us.saturating_sub(before.user_us),
        system_us: after.system_us.saturating_sub(before.system_us),
        minor_faults: after.minor_faults.saturating_sub(before.minor_faults),
        major_faults: after.major_faults.saturating_sub(before.major_faults),
        voluntary_switches: after.voluntary_switches.saturating_sub(before.voluntary_switches),
        involuntary_switches: after.involuntary_switches.saturating_sub(before.involuntary_switches),
        allocations: 0,
    }
}

/// The CPU time that the calling thread has used, `CLOCK_THREAD_CPUTIME_ID`.
pub fn thread_cpu_time() -> Span {
    let mut used = timespec_of(0);
    // SAFETY: `used` is a valid timespec to write to; the call cannot fail for this clock (clock_gettime(2)).
    unsafe { time::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut used) };
    Span(ns_of(&used))
}

/// CPU time of process `pid` so far: of all its threads, without its children (`clock_getcpuclockid(3)`). Errors: when
/// there is no such process.
pub fn cpu_time_of(pid: u32) -> io::Result<Span> {
    let mut clock = 0;
    // SAFETY: `clock` is memory for a clock id.
    let errno = unsafe { libc::clock_getcpuclockid(pid.cast_signed(), &raw mut clock) };
    if errno != 0 {
        return Err(io::Error::from_raw_os_error(errno));
    }
    let mut used = timespec_of(0);
    // SAFETY: `used` is a valid timespec to write to.
    check(unsafe { time::clock_gettime(clock, &raw mut used) }.into())?;
    Ok(Span(ns_of(&used)))
}

/// A child that has ended, with the resource usage of it and its reaped children.
#[derive(Debug, Clone, Copy)]
pub struct ExitedChild {
    /// Its exit status as `waitpid(2)` encodes it; 0 for success.
    pub status: i32,
    /// CPU time, faults and switches.
    pub usage: Usage,
    /// Largest resident set, KiB.
    pub max_rss_kib: u64,
}

/// Waits for child `pid` and returns its resource usage, `wait4(2)`. Errors: `ECHILD` when the process is not our child
/// or was already reaped.
pub fn wait(pid: u32) -> io::Result<ExitedChild> {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: `status` and `usage` are memory of the right types.
    check(unsafe { libc::wait4(pid.cast_signed(), &raw mut status, 0, usage.as_mut_ptr()) }.into())?;
    // SAFETY: all zeroes is a valid rusage, and the kernel has filled it in.
    let usage = unsafe { usage.assume_init() };
    Ok(ExitedChild { status, usage: of(&usage), max_rss_kib: unsigned(usage.ru_maxrss) })
}
