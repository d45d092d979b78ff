//! Reading the settings of the scheduler.

use super::cgroup;
use super::read::{CAP_IPC_LOCK, CAP_SYS_NICE, capabilities, soft_limit};
use crate::HostFs;
use punctual_model::{CpuSet, OnCpus, Permissions, Scheduling};

pub(super) fn read(fs: &HostFs, status: &str) -> Scheduling {
    Scheduling {
        nohz_full: fs.cpu_list("sys/devices/system/cpu/nohz_full"),
        workqueue_cpus: fs.cpu_mask("sys/devices/virtual/workqueue/cpumask"),
        timer_migration: fs.switch("proc/sys/kernel/timer_migration"),
        numa_balancing: fs.switch("proc/sys/kernel/numa_balancing"),
        autogroup: fs.switch("proc/sys/kernel/sched_autogroup_enabled"),
        fair_server_runtime_us: server(fs, "fair_server"),
        ext_server_runtime_us: server(fs, "ext_server"),
        energy_aware: fs.switch("proc/sys/kernel/sched_energy_aware"),
        sched_ext: sched_ext(fs),
        soft_watchdog: fs.switch("proc/sys/kernel/soft_watchdog"),
        nmi_watchdog: fs.switch("proc/sys/kernel/nmi_watchdog"),
        watchdog_cpus: fs.cpu_list("proc/sys/kernel/watchdog_cpumask"),
        permissions: permissions(fs, status),
        ..cgroup::read(fs)
    }
}

/// Runtimes of a deadline server, us.
fn server(fs: &HostFs, name: &str) -> Vec<OnCpus<u64>> {
    let dir = format!("sys/kernel/debug/sched/{name}");
    let of_cpu = |cpu| {
        let runtime_ns: u64 = fs.number(format!("{dir}/cpu{cpu}/runtime"))?;
        Some((CpuSet::from_iter([cpu]), runtime_ns / 1000))
    };
    OnCpus::gather(fs.numbered(&dir, "cpu").into_iter().filter(|cpu| *cpu <= CpuSet::MAX_CPU).filter_map(of_cpu))
}

/// The sched_ext scheduler. `sched_ext/state` is `disabled`, `enabled` or in between
/// (Documentation/scheduler/sched-ext.rst).
fn sched_ext(fs: &HostFs) -> Option<String> {
    let state = fs.text("sys/kernel/sched_ext/state")?;
    if state == "disabled" {
        return Some("none".to_owned());
    }
    fs.text("sys/kernel/sched_ext/root/ops").or(Some(state))
}

fn permissions(fs: &HostFs, status: &str) -> Permissions {
    let capabilities = capabilities(status);
    let limits = fs.text("proc/self/limits").unwrap_or_default();
    let locked = soft_limit(&limits, "Max locked memory");
    Permissions {
        cap_sys_nice: capabilities.map(|bits| bits >> CAP_SYS_NICE & 1 == 1),
        cap_ipc_lock: capabilities.map(|bits| bits >> CAP_IPC_LOCK & 1 == 1),
        realtime_priority: soft_limit(&limits, "Max realtime priority").and_then(|limit| limit.parse().ok()),
        locked_memory_bytes: locked.and_then(|limit| if limit == "unlimited" { Some(-1) } else { limit.parse().ok() }),
    }
}
