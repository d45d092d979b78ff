//! Checks of the permissions of this user.

use super::{Check, Outcome};
use punctual_model::{Host, Permissions};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "realtime-permission",
        why: "Without permission for real-time policies, a thread shares the CPU with all others.",
        source: "sched(7), Privileges and resource limits; capabilities(7), CAP_SYS_NICE",
        examine: realtime_permission,
    },
    Check {
        name: "memory-lock",
        why: "Memory that is not locked may be reclaimed, and each first access to a page faults.",
        source: "mlockall(2), capabilities(7), CAP_IPC_LOCK",
        examine: memory_lock,
    },
];

const PROGRAM: &str = "\"$(command -v punctual)\"";

fn with_capabilities(outcome: Outcome) -> Outcome {
    let allow = format!("setcap {} {PROGRAM}", Permissions::OF_FILE);
    outcome.change(allow, format!("setcap -r {PROGRAM}"))
}

fn realtime_permission(host: &Host) -> Outcome {
    let permissions = &host.scheduling.permissions;
    match (permissions.cap_sys_nice, permissions.realtime_priority) {
        (Some(true), _) => Outcome::ok("any policy and priority (CAP_SYS_NICE)"),
        (_, Some(0)) => with_capabilities(Outcome::may("none: real-time policies are refused")),
        (_, Some(priority)) => Outcome::ok(format!("priorities up to {priority} (RLIMIT_RTPRIO)")),
        (_, None) => Outcome::unknown("capabilities and limits cannot be read"),
    }
}

/// Memory locked by a measurement with samples, bytes: for the program, and for the logs and stacks of each CPU.
const LOCKED_BYTES: i64 = 32 << 20;
const LOCKED_BYTES_PER_CPU: i64 = 13 << 20;

fn memory_lock(host: &Host) -> Outcome {
    let permissions = &host.scheduling.permissions;
    let n_cpus = host.cpus_allowed.as_ref().or(host.cpus_online.as_ref()).map_or(1, punctual_model::CpuSet::len);
    let n_cpus = i64::try_from(n_cpus).unwrap_or(i64::MAX);
    let need = LOCKED_BYTES.saturating_add(LOCKED_BYTES_PER_CPU.saturating_mul(n_cpus));
    match (permissions.cap_ipc_lock, permissions.locked_memory_bytes) {
        (Some(true), _) => Outcome::ok("any amount (CAP_IPC_LOCK)"),
        (_, Some(-1)) => Outcome::ok("any amount (RLIMIT_MEMLOCK)"),
        (_, Some(bytes)) if bytes >= need => Outcome::ok(format!("up to {} MiB", bytes >> 20)),
        (_, Some(bytes)) => with_capabilities(Outcome::may(format!(
            "{} MiB may be locked, and {} MiB are wanted",
            bytes >> 20,
            need >> 20
        ))),
        (_, None) => Outcome::unknown("capabilities and limits cannot be read"),
    }
}
