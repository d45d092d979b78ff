//! Limits of threads that never wait.

use crate::{CpuSet, Host, Policy};

/// Checks threads that never wait, on these CPUs, against the machine: in real time, they must leave the rest of it a
/// CPU and the throttling that ends a mistake. Errors: one line: the reason and the remedy.
pub fn check_endless(policy: Policy, cpus: &CpuSet, host: &Host) -> Result<(), String> {
    if !policy.is_realtime() {
        return Ok(());
    }
    let housekeeping = host.cpus_online.as_ref().map(|online| online.minus(&host.isolated().unwrap_or_default()));
    if let Some(all) = housekeeping.filter(|all| all.minus(cpus).is_empty()) {
        return Err(no_housekeeping(policy, &all));
    }
    let limit = host.rt_runtime_us.and_then(|us| u64::try_from(us).ok()).zip(host.rt_period_us);
    // The fair server took its place in Linux 6.12; unread, it is as the kernel starts it.
    let mut servers = host.scheduling.fair_server_runtime_us.iter();
    let is_unserved = servers.any(|of| of.value == 0 && cpus.iter().any(|cpu| of.cpus.contains(cpu)));
    if limit.is_some_and(|(runtime, period)| runtime < period) && !is_unserved {
        return Ok(());
    }
    Err(format!(
        "a thread that never waits cannot run under {policy} without real-time throttling (sched_rt_runtime_us, \
         fair_server); set it, like `sysctl kernel.sched_rt_runtime_us=950000`, or choose policy other"
    ))
}

pub(super) fn no_housekeeping(policy: Policy, cpus: &CpuSet) -> String {
    format!(
        "threads that never wait under {policy} would take every housekeeping CPU ({cpus}), where all else runs; leave \
         one out, or choose policy other"
    )
}
