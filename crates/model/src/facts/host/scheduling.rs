//! Scheduling: limits, groups, isolation, balancing, and other programs that run in real time.

use super::OnCpus;
use crate::CpuSet;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Scheduler settings besides real-time throttling.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Scheduling {
    /// Control group of this process in the CPU controller.
    pub cgroup: Option<String>,
    /// CPU time, us, of real-time threads of that group in each period; `null` without real-time group scheduling.
    pub cgroup_rt_runtime_us: Option<i64>,
    /// Period, us, of that limit.
    pub cgroup_rt_period_us: Option<u64>,
    /// CPU time, us, of normal threads of that group in each period, by the tightest limit of its ancestors; -1: no
    /// limit.
    pub cpu_quota_us: Option<i64>,
    /// Period, us, of that quota.
    pub cpu_quota_period_us: Option<u64>,
    /// Partition type of the cpuset: `member`, `root`, `isolated` (cgroup v2).
    pub cpuset_partition: Option<String>,
    /// CPUs whose tick may stop while a single task runs (`nohz_full=`).
    pub nohz_full: Option<CpuSet>,
    /// CPUs of unbound workqueues.
    pub workqueue_cpus: Option<CpuSet>,
    /// Whether timers of an idle CPU may expire on another CPU.
    pub timer_migration: Option<bool>,
    /// Whether automatic NUMA balancing moves memory to the threads that use it.
    pub numa_balancing: Option<bool>,
    /// Whether each session is a scheduling group of its own.
    pub autogroup: Option<bool>,
    /// Runtime of the fair server in each second, us: CPU time for normal threads on a CPU that real-time threads keep
    /// busy (since Linux 6.12, debugfs).
    pub fair_server_runtime_us: Vec<OnCpus<u64>>,
    /// Whether normal threads are placed where they need the least energy (`kernel.sched_energy_aware`); `null` where
    /// CPUs are alike or the kernel cannot.
    pub energy_aware: Option<bool>,
    /// CPU time, us a period, of threads of a BPF scheduler beside busy real-time threads (`ext_server/cpuN/runtime`);
    /// empty where it cannot be read.
    pub ext_server_runtime_us: Vec<OnCpus<u64>>,
    /// The loaded BPF scheduler, or `none`; `null` where the kernel has no sched_ext.
    pub sched_ext: Option<String>,
    /// Whether the soft lockup detector runs (`kernel.soft_watchdog`).
    pub soft_watchdog: Option<bool>,
    /// Whether the hard lockup detector runs (`kernel.nmi_watchdog`).
    pub nmi_watchdog: Option<bool>,
    /// CPUs with lockup detectors.
    pub watchdog_cpus: Option<CpuSet>,
    /// Scheduling privileges of this process.
    pub permissions: Permissions,
}

impl Scheduling {
    /// A budget that leaves normal threads the rest of a second, us: the kernel's default for the whole machine.
    pub const RT_BUDGET_US: i64 = 950_000;

    /// Whether the kernel refuses FIFO and round-robin in this process's control group, even to root, with EPERM
    /// (`__sched_setscheduler`, kernel/sched/syscalls.c; `CONFIG_RT_GROUP_SCHED`).
    pub fn lacks_rt_budget(&self) -> bool {
        self.cgroup_rt_runtime_us == Some(0)
    }

    /// Path of that group.
    pub fn group(&self) -> &str {
        self.cgroup.as_deref().unwrap_or("/")
    }

    /// The file with its real-time budget, below the directory of control groups (cgroup v1).
    pub fn rt_budget_file(&self) -> String {
        format!("cpu{}/cpu.rt_runtime_us", self.group().trim_end_matches('/'))
    }
}

/// Scheduling privileges of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Permissions {
    /// Whether it may set any policy and priority (`CAP_SYS_NICE`).
    pub cap_sys_nice: Option<bool>,
    /// Whether it may lock any amount of memory (`CAP_IPC_LOCK`).
    pub cap_ipc_lock: Option<bool>,
    /// Highest real-time priority without that capability; 0: none (`RLIMIT_RTPRIO`).
    pub realtime_priority: Option<u32>,
    /// Lockable memory without that capability, bytes; -1: no limit (`RLIMIT_MEMLOCK`).
    pub locked_memory_bytes: Option<i64>,
}

impl Permissions {
    /// Capabilities of a file that allow every policy and locked memory, as setcap(8) takes them.
    pub const OF_FILE: &str = "cap_sys_nice,cap_ipc_lock+ep";
    /// The group that our packages make, as those of Fedora (realtime-setup) and Arch (realtime-privileges) do: its
    /// members may use real-time policies and lock memory.
    pub const GROUP: &str = "realtime";
}

/// Programs and kernel threads visible to this process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Tasks {
    /// Number of threads examined; `null` when they cannot be listed.
    pub looked_at: Option<u32>,
    /// Whether all threads were examined.
    pub is_complete: bool,
    /// Real-time threads of other programs, equal ones together, highest priority first.
    pub realtime: Vec<RealtimeTask>,
    /// Real-time threads of programs that keep a CPU busy and whose parent is PID 1 or systemd.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spinning: Vec<SpinningTask>,
    /// CPUs to which several real-time threads of programs are bound, each of them to no other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub crowded: Vec<CrowdedCpu>,
    /// Running daemons that change settings which affect latency, by name.
    pub daemons: Vec<String>,
}

/// Threads of one name, policy and priority.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RealtimeTask {
    /// Thread name; for several kernel threads the part before the `/`: `migration/*`.
    pub name: String,
    /// `fifo`, `rr` or `deadline`.
    pub policy: String,
    /// Priority, 1 to 99; `null` for deadline threads.
    pub priority: Option<u32>,
    /// Whether they are kernel threads.
    pub is_kernel: bool,
    /// Number of threads.
    pub count: u32,
}

/// A real-time thread that keeps a CPU busy and whose parent is PID 1 or systemd: left over, or of a service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SpinningTask {
    /// Thread ID.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// `fifo`, `rr` or `deadline`.
    pub policy: String,
    /// Priority, 1 to 99; `null` for deadline threads.
    pub priority: Option<u32>,
    /// Share of a CPU that it used in the second in which it was looked at, in percent.
    pub used_percent: u32,
}

impl fmt::Display for SpinningTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SpinningTask { tid, name, policy, priority, used_percent } = self;
        let priority = priority.map(|priority| format!(":{priority}")).unwrap_or_default();
        write!(f, "{name} ({policy}{priority}, thread {tid}, child of init) keeps a CPU busy to {used_percent} %")
    }
}

/// A CPU with several real-time threads that may use no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CrowdedCpu {
    /// The CPU.
    pub cpu: u32,
    /// The names of the threads.
    pub threads: Vec<String>,
}

impl RealtimeTask {
    /// Whether it runs interrupt handlers: the kernel names these threads `irq/NUMBER-NAME`.
    pub fn is_irq_thread(&self) -> bool {
        self.is_kernel && self.name.starts_with("irq/")
    }
}

/// Number of the interrupt that a thread of this name handles: `irq/36-eth0` (kernel/irq/manage.c).
pub fn interrupt_of_thread(name: &str) -> Option<u32> {
    let (number, _) = name.strip_prefix("irq/")?.split_once('-')?;
    number.parse().ok()
}
