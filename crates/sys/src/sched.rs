//! Scheduling policy and CPU affinity of one thread.

use crate::check;
use punctual_model::{CpuSet, DeadlineBudget, Nice, Policy, RtPriority, Span};
use std::fmt;
use std::io;
use std::mem::MaybeUninit;

/// `struct sched_attr` as of its first version, `SCHED_ATTR_SIZE_VER0` (sched_setattr(2)).
#[repr(C)]
#[derive(Debug, Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const ATTR_BYTES: u32 = 48;
const _: () = assert!(size_of::<SchedAttr>() == ATTR_BYTES as usize);
const SCHED_OTHER: u32 = libc::SCHED_OTHER.cast_unsigned();
const SCHED_BATCH: u32 = libc::SCHED_BATCH.cast_unsigned();
const SCHED_IDLE: u32 = libc::SCHED_IDLE.cast_unsigned();
const SCHED_FIFO: u32 = libc::SCHED_FIFO.cast_unsigned();
/// Not in libc for all targets; `include/uapi/linux/sched.h`.
const SCHED_DEADLINE: u32 = 6;
const SCHED_RR: u32 = libc::SCHED_RR.cast_unsigned();
/// Children of the thread start as SCHED_OTHER (sched_setattr(2)).
const RESET_ON_FORK: u64 = 0x01;

/// A policy as reported by the kernel; its text is comparable with that of a [`Policy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundPolicy {
    /// `None` for a policy that punctual never sets.
    known: Option<Policy>,
    number: u32,
    priority: u32,
    nice: i32,
    resets_on_fork: bool,
}

impl FoundPolicy {
    /// Whether children of the thread start as SCHED_OTHER.
    pub fn resets_on_fork(&self) -> bool {
        self.resets_on_fork
    }

    /// The policy; `None` for one that punctual never sets.
    pub fn known(&self) -> Option<Policy> {
        self.known
    }

    /// Whether it is SCHED_FIFO, SCHED_RR or SCHED_DEADLINE.
    pub fn is_realtime(&self) -> bool {
        matches!(self.number, SCHED_FIFO | SCHED_RR) || self.is_deadline()
    }

    /// Whether it is SCHED_DEADLINE, under which a thread cannot create another (sched(7)).
    pub fn is_deadline(&self) -> bool {
        self.number == SCHED_DEADLINE
    }
}

impl fmt::Display for FoundPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known {
            Some(policy) => policy.fmt(f),
            None => write!(f, "policy {} with priority {} and nice {}", self.number, self.priority, self.nice),
        }
    }
}

/// Sets the policy of thread `tid` (0: the calling thread), `sched_setattr(2)`; its children start as SCHED_OTHER.
/// Errors: `EPERM` without the privilege (also for nice 0 from a higher nice value); for a deadline policy `EBUSY` when
/// the bandwidth is exhausted, and `EPERM` for a thread that may not use all CPUs.
pub fn set_policy(tid: u32, policy: Policy) -> io::Result<()> {
    set(tid, policy, RESET_ON_FORK)
}

/// Sets the policy of thread `tid` (0: the calling thread) and of all threads and processes that it will create, as
/// chrt(1) and nice(1) do. Errors: as for [`set_policy`].
pub fn set_inherited_policy(tid: u32, policy: Policy) -> io::Result<()> {
    set(tid, policy, 0)
}

fn set(tid: u32, policy: Policy, flags: u64) -> io::Result<()> {
    let attr = SchedAttr { size: ATTR_BYTES, flags, ..SchedAttr::default() };
    let attr = match policy {
        Policy::Other(nice) => SchedAttr { policy: SCHED_OTHER, nice: nice.get(), ..attr },
        Policy::Batch => SchedAttr { policy: SCHED_BATCH, ..attr },
        Policy::Idle => SchedAttr { policy: SCHED_IDLE, ..attr },
        Policy::Fifo(priority) => SchedAttr { policy: SCHED_FIFO, priority: priority.get(), ..attr },
        Policy::RoundRobin(priority) => SchedAttr { policy: SCHED_RR, priority: priority.get(), ..attr },
        Policy::Deadline(DeadlineBudget { runtime, deadline, period }) => SchedAttr {
            policy: SCHED_DEADLINE,
            runtime: runtime.ns(),
            deadline: deadline.ns(),
            period: period.ns(),
            ..attr
        },
    };
    // SAFETY: `attr` is a valid sched_attr that contains its own size and outlives the call.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attr, 0_u32) }).map(drop)
}

/// The policy of thread `tid`, `sched_getattr(2)`. Errors: when the thread does not exist.
pub fn policy(tid: u32) -> io::Result<FoundPolicy> {
    let mut attr = SchedAttr::default();
    // SAFETY: the kernel writes at most `ATTR_BYTES` bytes, which is the size of `attr`.
    check(unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attr, ATTR_BYTES, 0_u32) })?;
    let known = match attr.policy {
        SCHED_OTHER => Nice::new(attr.nice).map(Policy::Other),
        SCHED_BATCH if attr.nice == 0 => Some(Policy::Batch),
        // The kernel keeps a nice value for idle threads, but does not use it.
        SCHED_IDLE => Some(Policy::Idle),
        SCHED_FIFO => RtPriority::new(attr.priority).map(Policy::Fifo),
        SCHED_RR => RtPriority::new(attr.priority).map(Policy::RoundRobin),
        SCHED_DEADLINE => Some(Policy::Deadline(DeadlineBudget {
            runtime: Span(attr.runtime),
            deadline: Span(attr.deadline),
            period: Span(attr.period),
        })),
        _ => None,
    };
    let resets_on_fork = attr.flags & RESET_ON_FORK != 0;
    Ok(FoundPolicy { known, number: attr.policy, priority: attr.priority, nice: attr.nice, resets_on_fork })
}

/// The policy of thread `tid`; `None` where it cannot be read, as after its end, and for one that punctual never sets.
pub fn known_policy(tid: u32) -> Option<Policy> {
    policy(tid).ok()?.known()
}

/// Yields the CPU, `sched_yield(2)`: for a deadline thread, until its next period begins.
#[inline]
pub fn yield_now() -> Result<(), i32> {
    // SAFETY: the call takes no arguments.
    crate::errno_of(unsafe { libc::sched_yield() }.into())
}

/// The time quantum of the calling thread, which has policy SCHED_RR, `sched_rr_get_interval(2)`.
pub fn round_robin_interval() -> io::Result<Span> {
    let mut interval = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: `interval` is memory for a timespec of the C library's function.
    check(unsafe { libc::sched_rr_get_interval(0, interval.as_mut_ptr()) }.into())?;
    // SAFETY: all zeroes is a valid timespec, and the kernel has filled it in.
    let interval = unsafe { interval.assume_init() };
    Ok(Span(crate::unsigned(interval.tv_sec) * 1_000_000_000 + crate::unsigned(interval.tv_nsec)))
}

/// The CPU that the calling thread runs on, `getcpu(2)`; `None` where the kernel has no such call.
#[inline]
pub fn current_cpu() -> Option<u32> {
    // SAFETY: the call takes no arguments.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// A CPU mask with one bit for every CPU that Linux supports.
type Mask = [u64; 1 + CpuSet::MAX_CPU as usize / 64];

/// Restricts thread `tid` (0: the calling thread) to `cpus`, `sched_setaffinity(2)`. Errors: `EINVAL` when none of the
/// CPUs may be used.
pub fn set_affinity(tid: u32, cpus: &CpuSet) -> io::Result<()> {
    let mut mask: Mask = [0; _];
    for cpu in cpus.iter() {
        mask[cpu as usize / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: `mask` is readable for its length and outlives the call.
    check(unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, size_of::<Mask>(), &raw const mask) }).map(drop)
}

/// The CPUs that thread `tid` (0: the calling thread) may use, `sched_getaffinity(2)`. Errors: when the thread does not
/// exist.
pub fn affinity(tid: u32) -> io::Result<CpuSet> {
    let mut mask: Mask = [0; _];
    // SAFETY: `mask` is writable for its length.
    check(unsafe { libc::syscall(libc::SYS_sched_getaffinity, tid, size_of::<Mask>(), &raw mut mask) })?;
    Ok((0..=CpuSet::MAX_CPU).filter(|cpu| mask[*cpu as usize / 64] & (1 << (cpu % 64)) != 0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_reads_back_as_set_and_a_cpu_that_is_not_there_is_refused() {
        let before = affinity(0).unwrap();
        let first = before.iter().take(1).collect::<CpuSet>();
        set_affinity(0, &first).unwrap();
        assert_eq!(affinity(0).unwrap(), first);
        set_affinity(0, &before).unwrap();
        let absent = [CpuSet::MAX_CPU].into_iter().collect();
        assert_eq!(set_affinity(0, &absent).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn a_normal_thread_is_other() {
        set_policy(0, Policy::OTHER).unwrap();
        assert_eq!(policy(0).unwrap().to_string(), "other");
    }
}
