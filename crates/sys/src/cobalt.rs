//! System calls of Cobalt, the co-kernel of Xenomai 3, without its library.
//!
//! Numbers and layouts are those of its user-space interface (`include/cobalt/uapi`), revisions 18 and 19.

mod debug;
pub mod rtdm;
pub mod timerbench;
mod timerfd;

use punctual_model::{ClockId, ClockTime};
use std::io;

pub use debug::{debug_reason, warn_of_switches};
pub use timerfd::Timerfd;

/// Counters of a Cobalt thread since it became one (`struct cobalt_threadstat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadCounters {
    /// Switches from primary mode, where Cobalt schedules it, to secondary mode, where Linux does.
    pub mode_switches: u64,
    /// Context switches in primary mode.
    pub context_switches: u64,
    /// System calls of Cobalt.
    pub system_calls: u64,
    /// Page faults in primary mode.
    pub page_faults: u32,
    /// State bits.
    pub status: u32,
}

/// The revision of the interface that is tried first; a kernel of another one returns its own.
const REVISION: u32 = 18;
/// Revisions that have the calls used here, with the same layouts.
const KNOWN_REVISIONS: std::ops::RangeInclusive<u32> = 18..=19;
/// How far Cobalt's monotonic clock may be outside two readings of Linux's, ns. They are one clock on Dovetail, but
/// Cobalt reads a copy that is updated at another moment. On an I-pipe kernel they differ by the time of boot and more.
const CLOCK_TOLERANCE_NS: u64 = 50_000;

/// Binds the calling process to Cobalt; returns the revision of the interface. All memory must be locked. Errors: one
/// line of text: Cobalt is absent, is stopped, has another interface or another clock, or refuses this user.
pub fn bind() -> Result<u32, String> {
    let mut request = calls::Bind::new(REVISION);
    let mut result = calls::bind(&mut request);
    let theirs = request.revision();
    if result == Err(libc::ENOEXEC) && KNOWN_REVISIONS.contains(&theirs) {
        request = calls::Bind::new(theirs);
        result = calls::bind(&mut request);
    }
    result.map_err(|errno| match errno {
        libc::ENOSYS => "this kernel has no Cobalt; boot one of Xenomai 3.2 or 3.3".to_owned(),
        libc::EAGAIN => {
            "Cobalt is stopped; start it with xenomai.state=enabled on the kernel's command line".to_owned()
        }
        libc::ENOEXEC => {
            format!("unsupported: interface revision {theirs} of Cobalt; expected 18 or 19 (Xenomai 3.2 or 3.3)")
        }
        libc::EPERM => {
            "Cobalt refuses this user; run as root, or as a member of the group in xenomai.allowed_group".to_owned()
        }
        errno => format!("Cobalt: {}", io::Error::from_raw_os_error(errno)),
    })?;
    expect_clock_of_linux()?;
    Ok(request.revision())
}

/// Due times and latencies are of Linux's monotonic clock, so that Cobalt's must be the same.
fn expect_clock_of_linux() -> Result<(), String> {
    let before = crate::clock::now(ClockId::Monotonic);
    let theirs = calls::now().map_err(|errno| format!("Cobalt's clock: {}", io::Error::from_raw_os_error(errno)))?;
    let after = crate::clock::now(ClockId::Monotonic);
    if is_between(before, theirs, after) {
        return Ok(());
    }
    Err("unsupported: the clock of this Cobalt is not CLOCK_MONOTONIC of Linux, as on I-pipe kernels; boot a kernel \
         with Dovetail"
        .to_owned())
}

fn is_between(before: ClockTime, theirs: u64, after: ClockTime) -> bool {
    (before.0.saturating_sub(CLOCK_TOLERANCE_NS)..=after.0.saturating_add(CLOCK_TOLERANCE_NS)).contains(&theirs)
}

/// Makes the calling thread, `tid`, a Cobalt thread of SCHED_FIFO with this priority. Errors: the errno: `EPERM` when
/// the process is not bound.
pub fn become_fifo(tid: u32, priority: u32) -> Result<(), i32> {
    calls::become_fifo(tid, priority)
}

/// Sleeps in primary mode until `due_ns` of `CLOCK_MONOTONIC`. Errors: the errno: `EINTR` after a signal.
#[inline]
pub fn sleep_until(due_ns: u64) -> Result<(), i32> {
    calls::sleep_until(due_ns)
}

/// The counters of the calling thread. The call does not change its mode. Errors: the errno: `EPERM` when it is no
/// Cobalt thread.
#[inline]
pub fn counters() -> Result<ThreadCounters, i32> {
    calls::counters()
}

#[cfg(target_arch = "x86_64")]
mod calls {
    use super::ThreadCounters;
    use std::arch::asm;

    /// Marks a system call as one of Cobalt.
    const COBALT: u64 = 0x1000_0000;
    const BIND: u64 = 0;
    const THREAD_SETMODE: u64 = 3;
    const THREAD_SETSCHEDPARAM_EX: u64 = 7;
    const THREAD_GETSTAT: u64 = 9;
    const CLOCK_GETTIME: u64 = 23;
    const CLOCK_NANOSLEEP: u64 = 25;

    /// `struct cobalt_bindreq`.
    #[repr(C)]
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Bind {
        /// No feature is required: those of locks and memory pools are not used.
        features: u32,
        revision: u32,
        answer: Features,
    }

    /// `struct cobalt_featinfo`.
    #[repr(C)]
    #[derive(Debug, Clone, Copy)]
    struct Features {
        clock_frequency: u64,
        vdso_offset: u32,
        revision: u32,
        sets: [u32; 4],
        names: [[u8; 64]; 4],
        // The part of an architecture may grow.
        architecture: [u64; 8],
    }

    /// `struct sched_param_ex`: a priority, and a union of 64 bytes for other policies.
    #[repr(C)]
    struct Parameters {
        priority: i32,
        others: [u64; 8],
    }

    /// `struct cobalt_threadstat`.
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Statistics {
        execution_time: u64,
        timeout: u64,
        mode_switches: u64,
        context_switches: u64,
        system_calls: u64,
        status: u32,
        page_faults: u32,
        cpu: i32,
        priority: i32,
        names: [[u8; 32]; 2],
        // Room for members that later revisions append.
        reserved: [u64; 8],
    }

    impl Bind {
        pub(super) fn new(revision: u32) -> Bind {
            let answer = Features {
                clock_frequency: 0,
                vdso_offset: 0,
                revision: 0,
                sets: [0; 4],
                names: [[0; 64]; 4],
                architecture: [0; 8],
            };
            Bind { features: 0, revision, answer }
        }

        /// The kernel's revision; 0 before it has answered.
        pub(super) fn revision(&self) -> u32 {
            self.answer.revision
        }
    }

    /// One system call of Cobalt.
    ///
    /// # Safety
    /// As for the call: pointers among the arguments must be valid for what it reads and writes.
    #[inline]
    pub(super) unsafe fn call(number: u64, arguments: [u64; 5]) -> Result<i64, i32> {
        let [a, b, c, d, e] = arguments;
        let result: i64;
        // SAFETY: the caller keeps the contract of the call; the kernel changes rax, rcx and r11 only.
        unsafe {
            asm!(
                "syscall",
                inlateout("rax") (COBALT | number) => result,
                in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
                lateout("rcx") _, lateout("r11") _,
                options(nostack),
            );
        }
        if result < 0 { Err(i32::try_from(-result).unwrap_or(libc::EINVAL)) } else { Ok(result) }
    }

    pub(super) fn bind(request: &mut Bind) -> Result<(), i32> {
        // SAFETY: the kernel reads and writes one request, which outlives the call.
        unsafe { call(BIND, [std::ptr::from_mut(request) as u64, 0, 0, 0, 0]) }.map(drop)
    }

    /// Cobalt's monotonic clock, ns.
    pub(super) fn now() -> Result<u64, i32> {
        let mut now = [0_u64; 2];
        let clock = u64::from(libc::CLOCK_MONOTONIC.cast_unsigned());
        // SAFETY: the kernel writes one timespec of two 64-bit numbers, which outlives the call.
        unsafe { call(CLOCK_GETTIME, [clock, now.as_mut_ptr() as u64, 0, 0, 0]) }?;
        Ok(now[0].saturating_mul(1_000_000_000).saturating_add(now[1]))
    }

    /// Clears and sets mode bits of the calling thread.
    pub(super) fn set_mode([clear, set]: [u32; 2]) -> Result<(), i32> {
        let mut old = 0_i32;
        let old = std::ptr::from_mut(&mut old) as u64;
        // SAFETY: the kernel writes one integer, which outlives the call.
        unsafe { call(THREAD_SETMODE, [clear.into(), set.into(), old, 0, 0]) }.map(drop)
    }

    pub(super) fn become_fifo(tid: u32, priority: u32) -> Result<(), i32> {
        let parameters = Parameters { priority: priority.cast_signed(), others: [0; 8] };
        let (mut window_offset, mut is_promoted) = (0_u32, 0_i32);
        let fifo = u64::from(libc::SCHED_FIFO.cast_unsigned());
        let pointers = [
            std::ptr::from_ref(&parameters) as u64,
            std::ptr::from_mut(&mut window_offset) as u64,
            std::ptr::from_mut(&mut is_promoted) as u64,
        ];
        // SAFETY: the kernel reads the parameters and writes two integers; all outlive the call.
        unsafe { call(THREAD_SETSCHEDPARAM_EX, [u64::from(tid), fifo, pointers[0], pointers[1], pointers[2]]) }
            .map(drop)
    }

    #[inline]
    pub(super) fn sleep_until(due_ns: u64) -> Result<(), i32> {
        let due = [due_ns / 1_000_000_000, due_ns % 1_000_000_000];
        let (clock, flags) = (libc::CLOCK_MONOTONIC.cast_unsigned(), libc::TIMER_ABSTIME.cast_unsigned());
        // SAFETY: the kernel reads one timespec of two 64-bit numbers, which outlives the call, and writes nothing.
        let slept = unsafe { call(CLOCK_NANOSLEEP, [u64::from(clock), u64::from(flags), due.as_ptr() as u64, 0, 0]) };
        slept.map(drop)
    }

    #[inline]
    pub(super) fn counters() -> Result<ThreadCounters, i32> {
        let mut statistics = Statistics::default();
        // SAFETY: the kernel writes one `struct cobalt_threadstat`; there is room for it, and it outlives the call.
        unsafe { call(THREAD_GETSTAT, [0, std::ptr::from_mut(&mut statistics) as u64, 0, 0, 0]) }?;
        let Statistics { mode_switches, context_switches, system_calls, page_faults, status, .. } = statistics;
        Ok(ThreadCounters { mode_switches, context_switches, system_calls, page_faults, status })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn layouts_are_those_of_the_interface() {
            assert_eq!(std::mem::offset_of!(Bind, answer), 8);
            assert_eq!(std::mem::offset_of!(Features, revision), 12);
            assert_eq!(std::mem::offset_of!(Features, names), 32);
            assert_eq!(std::mem::offset_of!(Parameters, others), 8);
            assert_eq!(std::mem::offset_of!(Statistics, status), 40);
            assert_eq!(std::mem::offset_of!(Statistics, names), 56);
        }
    }
}

/// Other machines: Cobalt's calls were tried on x86-64 only.
#[cfg(not(target_arch = "x86_64"))]
mod calls {
    use super::ThreadCounters;

    #[derive(Debug, Clone, Copy)]
    pub(super) struct Bind;

    impl Bind {
        pub(super) fn new(_: u32) -> Bind {
            Bind
        }

        pub(super) fn revision(&self) -> u32 {
            0
        }
    }

    pub(super) fn bind(_: &mut Bind) -> Result<(), i32> {
        Err(libc::ENOSYS)
    }

    pub(super) fn now() -> Result<u64, i32> {
        Err(libc::ENOSYS)
    }

    pub(super) fn set_mode(_: [u32; 2]) -> Result<(), i32> {
        Err(libc::ENOSYS)
    }

    pub(super) fn become_fifo(_: u32, _: u32) -> Result<(), i32> {
        Err(libc::ENOSYS)
    }

    pub(super) fn sleep_until(_: u64) -> Result<(), i32> {
        Err(libc::ENOSYS)
    }

    pub(super) fn counters() -> Result<ThreadCounters, i32> {
        Err(libc::ENOSYS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_cobalt_one_line_says_so() {
        // On a kernel with Cobalt the calls of this process would be answered.
        if let Err(reason) = bind() {
            assert!(!reason.contains('\n') && reason.contains("Cobalt"), "{reason}");
            assert!(counters().is_err());
        }
    }

    #[test]
    fn a_clock_of_another_origin_is_refused() {
        let (before, after) = (ClockTime(5_000_000_000), ClockTime(5_000_000_400));
        for (theirs, expected) in [
            (5_000_000_200, true),
            (5_000_000_400 + CLOCK_TOLERANCE_NS, true),
            (5_000_000_401 + CLOCK_TOLERANCE_NS, false),
            (5_000_000_000 - CLOCK_TOLERANCE_NS, true),
            (4_999_999_999 - CLOCK_TOLERANCE_NS, false),
            (0, false),
            (u64::MAX, false),
        ] {
            assert_eq!(is_between(before, theirs, after), expected, "{theirs}");
        }
    }
}
