//! Privileges of this user, found by trying or from the kernel's files.

use super::{DmaLatency, HostFs};
use model::Policy;
use std::io;
use std::thread::Builder;

/// The privileges on which it depends which cells a campaign can measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Privileges {
    /// Whether enough memory may be locked.
    pub lock_memory: bool,
    /// Whether `/dev/cpu_dma_latency` may be held.
    pub dma_latency: bool,
}

/// The reason why this user cannot measure `policy`, and the one command that changes it.
pub fn how_to_allow(policy: Policy) -> String {
    let needs_no_privilege = match policy {
        Policy::Other(nice) => nice.get() >= 0,
        _ => !policy.is_realtime(),
    };
    if needs_no_privilege {
        return format!("{policy} is below the nice value of this process; start it without `nice`");
    }
    if let Policy::Deadline(_) = policy {
        return format!("{policy} needs CAP_SYS_NICE and all CPUs; run as root, without taskset, outside any cpuset");
    }
    let program = std::env::current_exe().map_or_else(|_| "punctual".to_owned(), |path| path.display().to_string());
    // chgrp clears the capabilities of a file, so it comes first (chown(2)).
    format!(
        "{policy} needs CAP_SYS_NICE; run as root, or once, as root: chgrp rt {program}; chmod 750 {program}; setcap \
         cap_sys_nice,cap_ipc_lock+ep {program} (every member of group rt may then occupy CPUs at real-time priority; \
         undo: setcap -r {program})"
    )
}

/// Drops the privileges that came with the file of this program. setcap(8) grants them to this program's own work;
/// every program that it starts would have them on behalf of every user that may start it. The user's own rights, like
/// `RLIMIT_RTPRIO`, stay.
pub fn drop_rights_of_file() -> io::Result<()> {
    if sys::process::has_rights_of_its_file() { sys::process::drop_capabilities() } else { Ok(()) }
}

/// Advice when the kernel refuses a policy after [`drop_rights_of_file`]; empty when those rights do not matter.
pub fn how_to_allow_others(err: &io::Error) -> &'static str {
    match err.raw_os_error() {
        Some(libc::EPERM) if sys::process::has_rights_of_its_file() => {
            "; the capability from setcap is for measured threads only: run as root"
        }
        _ => "",
    }
}

/// `CAP_IPC_LOCK`, capabilities(7).
const CAP_IPC_LOCK: u32 = 14;
/// Maximum memory that a cell locks: program and heap, measured at under 10 MB, and a log and a stack for each CPU.
const LOCKED_BYTES: u64 = 32 << 20;
const LOCKED_BYTES_PER_CPU: u64 = 5 << 20;
/// Additional memory for each CPU when samples are kept: one row group and one full log, in vectors that double.
const LOCKED_BYTES_OF_SAMPLES: u64 = 8 << 20;

impl Privileges {
    /// The privileges of this process for a measurement on `n_cpus` CPUs, with `samples` kept or not.
    pub fn here(n_cpus: usize, samples: bool) -> Self {
        let of_cpu = LOCKED_BYTES_PER_CPU + if samples { LOCKED_BYTES_OF_SAMPLES } else { 0 };
        let need = LOCKED_BYTES + of_cpu * n_cpus as u64;
        Privileges { lock_memory: may_lock_memory(&HostFs::here(), need), dma_latency: DmaLatency::is_permitted() }
    }

    /// Whether a thread of this user may have `policy`. It is tried on a new thread, because limits, capabilities,
    /// control groups and containers all matter. A refusal for another reason than missing rights counts as allowed, as
    /// does a limit on threads: the measurement reports it.
    pub fn may_have(policy: Policy) -> bool {
        let attempt = move || sys::sched::set_policy(sys::thread::id(), policy);
        let Ok(thread) = Builder::new().spawn(attempt) else { return true };
        thread.join().is_ok_and(|set| set.map_or_else(|err| err.raw_os_error() != Some(libc::EPERM), |()| true))
    }
}

/// Whether `need` bytes may be locked.
fn may_lock_memory(fs: &HostFs, need: u64) -> bool {
    let status = fs.text("proc/self/status").unwrap_or_default();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capable = capabilities
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .is_some_and(|bits| bits >> CAP_IPC_LOCK & 1 == 1);
    let limits = fs.text("proc/self/limits").unwrap_or_default();
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max locked memory")?.split_whitespace().next());
    capable || limit.is_some_and(|soft| soft == "unlimited" || soft.parse().is_ok_and(|bytes: u64| bytes >= need))
}
