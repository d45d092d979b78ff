//! What experiments need to know about the machine, their limits, and why one cannot be carried out.

use punctual_model::{ClaimCases, Policy, Promise, RtPriority};
use std::io;

/// CPU time and time after which the kernel ends the process itself, s.
pub(super) const CPU_SECONDS: u32 = 8;
pub(super) const SECONDS: u32 = 30;

/// What the experiments need to know about the machine.
#[derive(Debug, Clone)]
pub struct Grounds {
    /// CPU of the experiments.
    pub cpu: u32,
    /// Another one; `None` on a machine with one CPU.
    pub other: Option<u32>,
    /// CPU time of real-time threads in a period, and the period, us; `None` without a limit.
    pub realtime_us: Option<(u64, u64)>,
    /// Whether the fair server is known to give time to normal threads; `None` if that cannot be read.
    pub fair_server: Option<bool>,
}

/// Every claim of a promise with the reason that it cannot be tested.
pub fn unknown(promise: Promise, reason: &str) -> Vec<ClaimCases> {
    promise.claims().iter().map(|claim| ClaimCases::unknown(*claim, reason)).collect()
}

/// The reason of a failed experiment, with a remedy for missing privileges.
pub(super) fn reason(err: &io::Error) -> String {
    match err.raw_os_error() {
        Some(libc::EPERM) => {
            format!("needs real-time priority: {}", punctual_host::how_to_allow(Policy::Fifo(RtPriority::DEFAULT)))
        }
        Some(libc::ENOTSUP | libc::ENOSYS) => format!("this kernel lacks it: {err}"),
        _ => format!("the experiment failed: {err}"),
    }
}
