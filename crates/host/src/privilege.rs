//! Privileges of this user, found by trying or from the kernel's files.

use super::snapshot::{container, scheduling};
use super::{DmaLatency, HostFs};
use punctual_model::{Permissions, Policy, Scheduling, shell_word};
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
    let here = HostFs::here();
    how_to_allow_in(policy, &scheduling(&here), container(&here).as_deref(), is_member(&here))
}

/// The same for a process with these privileges in `container`, if it is in one, that is a member of the group or not.
fn how_to_allow_in(
    policy: Policy,
    scheduling: &Scheduling,
    container: Option<&str>,
    is_member: Option<bool>,
) -> String {
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
    let permissions = &scheduling.permissions;
    let is_privileged = permissions.cap_sys_nice == Some(true) || permissions.realtime_priority.unwrap_or(0) > 0;
    if is_privileged && scheduling.lacks_rt_budget() {
        let file = format!("/sys/fs/cgroup/{}", scheduling.rt_budget_file());
        return format!(
            "{policy} is refused in control group {}, which has no real-time budget: echo {} > {file} (undo: echo 0 > \
             {file}; the group above it must have as much to give)",
            scheduling.group(),
            Scheduling::RT_BUDGET_US
        );
    }
    if let Some(container) = container {
        return format!(
            "{policy} needs CAP_SYS_NICE, which this container ({container}) lacks; start it with --cap-add SYS_NICE \
             --cap-add IPC_LOCK (Kubernetes: securityContext.capabilities.add)"
        );
    }
    if let Some(false) = is_member {
        return format!(
            "{policy} needs CAP_SYS_NICE; run with sudo, or once: sudo usermod -aG {} $USER, and log in again",
            Permissions::GROUP
        );
    }
    let program = std::env::current_exe().map_or_else(|_| "punctual".to_owned(), |path| path.display().to_string());
    let program = shell_word(&program);
    format!(
        "{policy} needs CAP_SYS_NICE; run with sudo, or once: sudo setcap {} {program} (any user may then occupy CPUs; undo: \
         sudo setcap -r {program})",
        Permissions::OF_FILE
    )
}

/// Whether this process is in the group that may use real-time policies; `None` where the machine has no such group.
fn is_member(fs: &HostFs) -> Option<bool> {
    let groups = fs.text("etc/group")?;
    let group = groups.lines().find_map(|line| line.strip_prefix(Permissions::GROUP)?.strip_prefix(':'))?;
    let id = group.split(':').nth(1)?;
    let status = fs.text("proc/self/status")?;
    let own = status.lines().find_map(|line| line.strip_prefix("Groups:"))?;
    Some(own.split_ascii_whitespace().any(|own| own == id))
}

/// Drops the privileges that came with the file of this program. setcap(8) grants them to this program's own work;
/// every program that it starts would have them on behalf of every user that may start it. The user's own rights, like
/// `RLIMIT_RTPRIO`, stay.
pub fn drop_rights_of_file() -> io::Result<()> {
    if punctual_sys::process::has_rights_of_its_file() { punctual_sys::process::drop_capabilities() } else { Ok(()) }
}

/// Advice when the kernel refuses a policy after [`drop_rights_of_file`]; empty when those rights do not matter.
pub fn how_to_allow_others(err: &io::Error) -> &'static str {
    match err.raw_os_error() {
        Some(libc::EPERM) if punctual_sys::process::has_rights_of_its_file() => {
            "; the capability from setcap is for measured threads only: run as root"
        }
        _ => "",
    }
}

/// Maximum address space of a cell, which is what mlockall(2) compares with the limit: measured at 15 MB, and room for
/// the heap to grow.
const LOCKED_BYTES: u64 = 24 << 20;
/// Stack and histograms of a measured thread.
const LOCKED_BYTES_PER_CPU: u64 = 1 << 20;
/// A log holds 16 bytes for each cycle, for 2^18 cycles at most.
const LOG_BYTES_PER_CYCLE: u64 = 16;
const MAX_LOG_CYCLES: u64 = 1 << 18;
/// Additional memory for each CPU when samples are kept: one row group and one full log, in vectors that double.
const LOCKED_BYTES_OF_SAMPLES: u64 = 8 << 20;

impl Privileges {
    /// The privileges of this process for a measurement of `cycles` on each of `n_cpus` CPUs, with `samples` kept or
    /// not.
    pub fn here(n_cpus: usize, cycles: u64, samples: bool) -> Self {
        let bytes = usize::try_from(locked_bytes(n_cpus as u64, cycles, samples)).unwrap_or(usize::MAX);
        let lock_memory = punctual_sys::memory::try_to_lock(bytes).is_ok();
        Privileges { lock_memory, dma_latency: DmaLatency::is_permitted() }
    }

    /// Whether a thread of this user may have `policy`. It is tried on a new thread, because limits, capabilities,
    /// control groups and containers all matter. A refusal for another reason than missing rights counts as allowed, as
    /// does a limit on threads: the measurement reports it.
    pub fn may_have(policy: Policy) -> bool {
        let attempt = move || punctual_sys::sched::set_policy(punctual_sys::thread::id(), policy);
        let Ok(thread) = Builder::new().spawn(attempt) else { return true };
        thread.join().is_ok_and(|set| set.map_or_else(|err| err.raw_os_error() != Some(libc::EPERM), |()| true))
    }
}

/// Bytes that the process of a cell locks at most.
fn locked_bytes(n_cpus: u64, cycles: u64, samples: bool) -> u64 {
    let log = cycles.min(MAX_LOG_CYCLES) * LOG_BYTES_PER_CYCLE;
    let of_cpu = LOCKED_BYTES_PER_CPU + log + if samples { LOCKED_BYTES_OF_SAMPLES } else { 0 };
    LOCKED_BYTES + of_cpu * n_cpus
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn a_container_needs_another_command_than_a_machine() {
        let policy = |text: &str| text.parse::<Policy>().unwrap();
        let mut scheduling = Scheduling::default();
        let advice = how_to_allow_in(policy("fifo:80"), &scheduling, Some("podman"), None);
        assert!(advice.starts_with("fifo:80 needs CAP_SYS_NICE, which this container (podman) lacks; "), "{advice}");
        assert!(advice.contains("--cap-add SYS_NICE --cap-add IPC_LOCK") && !advice.contains("setcap"), "{advice}");
        let advice = how_to_allow_in(policy("fifo:80"), &scheduling, None, None);
        assert!(advice.contains("setcap cap_sys_nice,cap_ipc_lock+ep") && !advice.contains("--cap-add"), "{advice}");
        for container in [None, Some("docker")] {
            let advice = how_to_allow_in(Policy::OTHER, &scheduling, container, None);
            assert!(advice.ends_with("start it without `nice`"), "{advice}");
        }
        // Without the privilege the group is not examined (user_check_sched_setscheduler, kernel/sched/syscalls.c).
        (scheduling.cgroup, scheduling.cgroup_rt_runtime_us) = (Some("/x".to_owned()), Some(0));
        assert!(how_to_allow_in(policy("fifo:80"), &scheduling, None, None).contains("needs CAP_SYS_NICE"));
        scheduling.permissions.cap_sys_nice = Some(true);
        assert_eq!(
            how_to_allow_in(policy("rr:5"), &scheduling, None, None),
            "rr:5 is refused in control group /x, which has no real-time budget: echo 950000 > \
             /sys/fs/cgroup/cpu/x/cpu.rt_runtime_us (undo: echo 0 > /sys/fs/cgroup/cpu/x/cpu.rt_runtime_us; the group \
             above it must have as much to give)"
        );
        assert!(how_to_allow_in(policy("deadline:1ms/2ms/2ms"), &scheduling, None, None).contains("and all CPUs"));
    }

    #[test]
    fn a_group_that_is_there_is_joined() {
        for (groups, own, is) in [
            ("", "", None),
            ("root:x:0:\nrealtimes:x:5:\n", "5", None),
            ("root:x:0:\nrealtime:x:5:a,b\n", "4 55", Some(false)),
            ("root:x:0:\nrealtime:x:5:\n", "4 5", Some(true)),
            ("realtime:x", "4 5", None),
        ] {
            let scratch = Scratch::make();
            scratch.file("etc/group", groups);
            scratch.file("proc/self/status", format!("Name:\tx\nGroups:\t{own} \n"));
            assert_eq!(is_member(&scratch.machine()), is, "{groups:?}");
        }
        let advice = how_to_allow_in("fifo:80".parse().unwrap(), &Scheduling::default(), None, Some(false));
        assert!(advice.ends_with("or once: sudo usermod -aG realtime $USER, and log in again"), "{advice}");
    }

    #[test]
    fn only_what_a_cell_needs_is_asked_for() {
        const MB: u64 = 1 << 20;
        for (n_cpus, cycles, samples, mb) in [
            (1, 0, false, 25),
            (1, 1 << 18, false, 29),
            (1, u64::MAX, false, 29),
            (2, 1 << 18, true, 50),
            (64, 1 << 16, false, 152),
        ] {
            assert_eq!(locked_bytes(n_cpus, cycles, samples), mb * MB, "{n_cpus} {cycles}");
        }
    }
}
