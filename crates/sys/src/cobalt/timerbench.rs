//! Cobalt's driver that measures its own timers, `timerbench`, by ioctls of RTDM.
//!
//! Numbers and layouts are those of `include/cobalt/uapi/syscall.h` and `include/rtdm/uapi/testing.h`, profile 2, the
//! same in Xenomai 3.1 to 3.3.

use super::rtdm::File;
use std::io;

/// File of the device.
pub const DEVICE: &str = "/dev/rtdm/timerbench";

/// The longest period, ns. The driver counts in batches of a second: with a longer period a batch has no sample, and
/// its thread never sleeps.
pub const LONGEST_PERIOD_NS: u32 = 1_000_000_000;

/// The largest number of buckets: three histograms of them in one block of `kmalloc`, 4 MiB at most.
pub const MOST_BUCKETS: u32 = 300_000;

/// What the driver measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Priority of its kernel task, 1 to 99; `None`: its timer handler measures.
    pub priority: Option<u32>,
    /// Time between two due times, ns: 1 to [`LONGEST_PERIOD_NS`].
    pub period_ns: u32,
    /// Number of buckets of the histogram: 1 to [`MOST_BUCKETS`]. The last one counts everything above, too.
    pub buckets: u32,
    /// Width of a bucket, ns: 1 or more.
    pub bucket_ns: u32,
}

/// The driver's result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Mean latency of the complete batches, ns, truncated.
    pub mean_ns: i32,
    /// Smallest latency of the complete batches, ns.
    pub min_ns: i32,
    /// Largest latency of the complete batches, ns.
    pub max_ns: i32,
    /// Due times that were past before the next wait began, in the complete batches.
    pub overruns: i32,
    /// Complete batches after the first, which is its warm-up; negative or 0 before that.
    pub batches: i32,
    /// Counts of the magnitudes of all latencies after the warm-up.
    pub counts: Vec<u32>,
}

/// An open device; closed, and its measurement ended, when dropped.
#[derive(Debug)]
pub struct Timerbench {
    file: File,
    buckets: usize,
}

impl Timerbench {
    /// Opens the device. The process must be bound to Cobalt. Errors: the errno: `EADV` when the kernel has no such
    /// driver.
    pub fn open() -> Result<Timerbench, i32> {
        Ok(Timerbench { file: File::open(c"/dev/rtdm/timerbench")?, buckets: 0 })
    }

    /// Starts to measure; the first due time is 1 ms later. The timer handler runs on CPU 0, the kernel task where
    /// Linux starts its thread. Errors: the errno: `EINVAL` for a value out of its range, which the driver does not
    /// check itself; `ENOMEM` when there is no contiguous memory for the histograms; `EBUSY` when this device measures
    /// already.
    pub fn start(&mut self, request: &Request) -> Result<(), i32> {
        let Request { priority, period_ns, buckets, bucket_ns } = *request;
        // The driver divides by both, and allocates three times the buckets.
        let is_known = (1..=LONGEST_PERIOD_NS).contains(&period_ns)
            && (1..=MOST_BUCKETS).contains(&buckets)
            && (1..=LONGEST_PERIOD_NS).contains(&bucket_ns)
            && priority.is_none_or(|priority| (1..=99).contains(&priority));
        if !is_known {
            return Err(libc::EINVAL);
        }
        // It would forget the first measurement without ending it.
        if self.buckets != 0 {
            return Err(libc::EBUSY);
        }
        device::start(&self.file, request)?;
        self.buckets = usize::try_from(buckets).unwrap_or(0);
        Ok(())
    }

    /// Ends the measurement and returns its result. Errors: the errno: `EINVAL` when nothing was started.
    pub fn stop(&mut self) -> Result<Outcome, i32> {
        let buckets = std::mem::take(&mut self.buckets);
        if buckets == 0 {
            return Err(libc::EINVAL);
        }
        device::stop(&self.file, buckets)
    }
}

/// One line for an errno of [`Timerbench::open`] and [`Timerbench::start`].
pub fn reason(errno: i32) -> String {
    match errno {
        libc::EADV | libc::ENODEV | libc::ENXIO | libc::ENOENT => {
            format!(
                "this kernel has no {DEVICE}; load xeno_timerbench, or build it with CONFIG_XENO_DRIVERS_TIMERBENCH"
            )
        }
        libc::EBUSY => format!("{DEVICE} is in use; end the program that measures by it"),
        libc::ENOMEM => format!("{DEVICE}: the kernel has no contiguous memory for a histogram"),
        libc::EPERM | libc::EACCES => format!("{DEVICE} refuses this user; run as root"),
        errno => format!("{DEVICE}: {}", io::Error::from_raw_os_error(errno)),
    }
}

#[cfg(target_arch = "x86_64")]
mod device {
    use super::super::calls::call;
    use super::{File, Outcome, Request};

    const IOCTL: u64 = 80;

    /// `RTDM_CLASS_TESTING`.
    const TESTING: u64 = 6;
    /// `RTTST_RTIOC_TMBENCH_START`.
    pub(super) const START: u64 = request(1, 0x10, size_of::<Config>());
    /// `RTTST_RTIOC_TMBENCH_STOP`.
    pub(super) const STOP: u64 = request(3, 0x11, size_of::<Overall>());

    /// The number of an ioctl (`_IOC`, include/uapi/asm-generic/ioctl.h); 1 of `direction` is write, 2 is read.
    const fn request(direction: u64, number: u64, n_bytes: usize) -> u64 {
        direction << 30 | (n_bytes as u64) << 16 | TESTING << 8 | number
    }

    /// `struct rttst_tmbench_config`.
    #[repr(C)]
    struct Config {
        /// 0: kernel task; 1: timer handler.
        mode: i32,
        priority: i32,
        period_ns: u64,
        warm_up_batches: i32,
        buckets: i32,
        bucket_ns: i32,
        freezes_trace: i32,
    }

    /// `struct rttst_overall_bench_res`.
    #[repr(C)]
    struct Overall {
        mean_ns: i32,
        min_ns: i32,
        max_ns: i32,
        overruns: i32,
        /// One more than the complete batches after the warm-up.
        loops: i32,
        counts: *mut u32,
        counts_of_minima: *mut u32,
        counts_of_maxima: *mut u32,
    }

    pub(super) fn start(file: &File, request: &Request) -> Result<(), i32> {
        let Request { priority, period_ns, buckets, bucket_ns } = *request;
        let config = Config {
            mode: i32::from(priority.is_none()),
            priority: priority.unwrap_or(0).cast_signed(),
            period_ns: u64::from(period_ns),
            // 0 would never end its warm-up: it looks after the first batch, which has number 1.
            warm_up_batches: 1,
            buckets: buckets.cast_signed(),
            bucket_ns: bucket_ns.cast_signed(),
            freezes_trace: 0,
        };
        let pointer = std::ptr::from_ref(&config) as u64;
        // SAFETY: the driver reads one configuration, which outlives the call, and writes nothing.
        unsafe { call(IOCTL, [file.descriptor(), START, pointer, 0, 0]) }.map(drop)
    }

    pub(super) fn stop(file: &File, buckets: usize) -> Result<Outcome, i32> {
        let [mut counts, mut minima, mut maxima] = [vec![0_u32; buckets], vec![0_u32; buckets], vec![0_u32; buckets]];
        let mut overall = Overall {
            mean_ns: 0,
            min_ns: 0,
            max_ns: 0,
            overruns: 0,
            loops: 0,
            counts: counts.as_mut_ptr(),
            counts_of_minima: minima.as_mut_ptr(),
            counts_of_maxima: maxima.as_mut_ptr(),
        };
        let pointer = std::ptr::from_mut(&mut overall) as u64;
        // SAFETY: the driver writes one result, and through its pointers three histograms with the number of buckets
        // that they were started with, which is that of the vectors; all outlive the call.
        unsafe { call(IOCTL, [file.descriptor(), STOP, pointer, 0, 0]) }?;
        let Overall { mean_ns, min_ns, max_ns, overruns, loops, .. } = overall;
        Ok(Outcome { mean_ns, min_ns, max_ns, overruns, batches: loops.saturating_sub(1), counts })
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::mem::offset_of;

        #[test]
        fn layouts_and_numbers_are_those_of_the_interface() {
            assert_eq!((size_of::<Config>(), size_of::<Overall>()), (32, 48));
            assert_eq!((offset_of!(Config, period_ns), offset_of!(Config, buckets)), (8, 20));
            assert_eq!((offset_of!(Overall, loops), offset_of!(Overall, counts)), (16, 24));
            assert_eq!((START, STOP), (0x4020_0610, 0xc030_0611));
        }
    }
}

/// Other machines: Cobalt's calls were tried on x86-64 only.
#[cfg(not(target_arch = "x86_64"))]
mod device {
    use super::{File, Outcome, Request};

    pub(super) fn start(_: &File, _: &Request) -> Result<(), i32> {
        Err(libc::ENOSYS)
    }

    pub(super) fn stop(_: &File, _: usize) -> Result<Outcome, i32> {
        Err(libc::ENOSYS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_the_driver_does_not_check_are_refused() {
        // Never opened: no call reaches a kernel.
        let file = File::of(i64::MAX).unwrap();
        let mut bench = std::mem::ManuallyDrop::new(Timerbench { file, buckets: 0 });
        let valid = Request { priority: Some(90), period_ns: 1_000_000, buckets: 10, bucket_ns: 10 };
        for wrong in [
            Request { period_ns: 0, ..valid },
            Request { period_ns: LONGEST_PERIOD_NS + 1, ..valid },
            Request { buckets: 0, ..valid },
            Request { buckets: MOST_BUCKETS + 1, ..valid },
            Request { bucket_ns: 0, ..valid },
            Request { priority: Some(0), ..valid },
            Request { priority: Some(100), ..valid },
        ] {
            assert_eq!(bench.start(&wrong), Err(libc::EINVAL), "{wrong:?}");
        }
        assert_eq!(bench.stop(), Err(libc::EINVAL));
    }

    #[test]
    fn reasons_are_one_line() {
        for errno in [libc::EADV, libc::EBUSY, libc::ENOMEM, libc::EPERM, libc::EIO] {
            let reason = reason(errno);
            assert!(!reason.contains('\n') && reason.contains(DEVICE), "{reason}");
        }
    }
}
