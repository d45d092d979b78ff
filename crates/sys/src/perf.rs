//! A kernel timer that interrupts one CPU periodically, independent of the load there.

use crate::check;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// The first 64 bytes of `struct perf_event_attr`, its whole first version (`PERF_ATTR_SIZE_VER0`).
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
}

/// `PERF_TYPE_SOFTWARE`, include/uapi/linux/perf_event.h.
const SOFTWARE: u32 = 1;
/// `PERF_COUNT_SW_CPU_CLOCK`: counts ns, by a timer that restarts itself in its own interrupt.
const CPU_CLOCK: u64 = 0;

/// Interrupts `cpu` every `period_ns` for as long as the file is open (`perf_event_open(2)`), also while it runs
/// non-preemptible code. Nothing is counted or kept.
///
/// # Errors
/// The kernel's error; `EACCES` without `CAP_PERFMON` or because of `perf_event_paranoid`.
pub fn tick(cpu: u32, period_ns: u64) -> io::Result<OwnedFd> {
    let attributes =
        Attributes { kind: SOFTWARE, size: 64, config: CPU_CLOCK, sample_period: period_ns, ..Attributes::default() };
    let cpu = libc::c_long::from(i32::try_from(cpu).map_err(io::Error::other)?);
    let (all, none): (libc::c_long, libc::c_long) = (-1, -1);
    // PERF_FLAG_FD_CLOEXEC.
    let flags: libc::c_ulong = 1 << 3;
    // SAFETY: `attributes` is a valid perf_event_attr that contains its own size, and outlives the call.
    let file =
        check(unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, all, cpu, none, flags) })?;
    let file = i32::try_from(file).map_err(io::Error::other)?;
    // SAFETY: the kernel has just returned this descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attributes_are_as_long_as_they_say() {
        assert_eq!(size_of::<Attributes>(), 64);
        // Succeeds with the capability; without it, fails with an errno.
        match tick(0, 1_000_000) {
            Ok(_) => {}
            Err(err) => assert!(err.raw_os_error().is_some(), "{err}"),
        }
    }
}
