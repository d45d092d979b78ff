//! What the scheduler was told: limits, groups, isolation, balancing.

use super::OnCpus;
use crate::CpuSet;
use serde::{Deserialize, Serialize};

/// Settings of the scheduler beside real-time throttling.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Scheduling {
    /// Control group of this process as far as CPU time is concerned.
    pub cgroup: Option<String>,
    /// Time, us, that real-time threads of that group may use of each period; `null` without such groups.
    pub cgroup_rt_runtime_us: Option<i64>,
    /// The period, us, of that group.
    pub cgroup_rt_period_us: Option<u64>,
    /// Time, us, that normal threads of that group may use of each period, by the tightest limit above them; -1: none.
    pub cpu_quota_us: Option<i64>,
    /// The period, us, of that limit.
    pub cpu_quota_period_us: Option<u64>,
    /// Kind of cpuset: `member`, `root`, `isolated` (cgroup v2).
    pub cpuset_partition: Option<String>,
    /// CPUs whose tick may stop while one task runs (`nohz_full=`).
    pub nohz_full: Option<CpuSet>,
    /// CPUs that work without a CPU of its own may run on.
    pub workqueue_cpus: Option<CpuSet>,
    /// Whether timers of an idle CPU may expire on another.
    pub timer_migration: Option<bool>,
    /// Whether memory follows the threads that use it.
    pub numa_balancing: Option<bool>,
    /// Whether each session is a group of its own.
    pub autogroup: Option<bool>,
    /// What normal threads get of each second where real-time ones keep a CPU busy, us (since Linux 6.12, debugfs).
    pub fair_server_runtime_us: Vec<OnCpus<u64>>,
    /// The scheduler loaded as BPF program, or `none`; `null` where the kernel knows no such thing.
    pub sched_ext: Option<String>,
    /// Whether CPUs that are stuck are looked for (`kernel.soft_watchdog`).
    pub soft_watchdog: Option<bool>,
    /// Whether CPUs that are stuck with interrupts off are looked for (`kernel.nmi_watchdog`).
    pub nmi_watchdog: Option<bool>,
    /// CPUs that are watched.
    pub watchdog_cpus: Option<CpuSet>,
    /// What this process may ask of the scheduler.
    pub permissions: Permissions,
}

/// What a process may ask for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Permissions {
    /// Whether it may set any policy and priority (`CAP_SYS_NICE`).
    pub cap_sys_nice: Option<bool>,
    /// Whether it may lock any amount of memory (`CAP_IPC_LOCK`).
    pub cap_ipc_lock: Option<bool>,
    /// Highest real-time priority without that; 0: none (`RLIMIT_RTPRIO`).
    pub realtime_priority: Option<u32>,
    /// Memory that it may lock without that, bytes; -1: any amount (`RLIMIT_MEMLOCK`).
    pub locked_memory_bytes: Option<i64>,
}
