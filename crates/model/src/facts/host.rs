//! Facts about a machine: an immutable snapshot.

mod cokernel;
mod hardware;
mod interrupts;
mod kernel;
mod power;
mod scheduling;

pub use cokernel::{CoKernel, Cobalt, Evl, Gravity, ModeSwitches, Pipeline, SwitchingThread};
pub use hardware::{Cache, Memory, MemoryNode, OnCpus, Platform, Processors, ThermalZone};
pub use interrupts::{Interrupts, IrqGroup, NetworkDevice};
pub use kernel::{Clocks, KernelFacts, Preemption};
pub use power::{FrequencyPolicy, IdleState, Power};
pub use scheduling::{CrowdedCpu, Permissions, RealtimeTask, Scheduling, SpinningTask, Tasks, interrupt_of_thread};

use crate::{CpuSet, Floor};
use serde::{Deserialize, Serialize};

/// A snapshot of the machine. A fact that could not be read is `null`, never a default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Host {
    /// Node name, `uname(2)`.
    pub hostname: Option<String>,
    /// CPU model from `/proc/cpuinfo`.
    pub cpu_model: Option<String>,
    /// CPUs that are online.
    pub cpus_online: Option<CpuSet>,
    /// CPUs that this process may use.
    pub cpus_allowed: Option<CpuSet>,
    /// CPUs isolated by `isolcpus=`.
    pub cpus_isolated: Option<CpuSet>,
    /// Total memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Machine architecture, `uname -m`.
    pub architecture: Option<String>,
    /// Kernel release, `uname -r`.
    pub kernel_release: Option<String>,
    /// Kernel version, `uname -v`.
    pub kernel_version: Option<String>,
    /// Kernel command line.
    pub command_line: Option<String>,
    /// Preemption model in effect.
    pub preemption: Option<Preemption>,
    /// Hypervisor of this machine; `null` when none is detected.
    pub hypervisor: Option<String>,
    /// Container of this process; `null` when none is detected.
    pub container: Option<String>,
    /// Clock source in use.
    pub clock_source: Option<String>,
    /// Frequency governors in use, each once; empty when there is no frequency scaling.
    pub governors: Vec<String>,
    /// CPU time, us, of real-time threads in each period; -1: no limit (`sched_rt_runtime_us`). Since Linux 6.12 it
    /// takes effect only with `CONFIG_RT_GROUP_SCHED`; otherwise the fair server limits them
    /// ([`Host::has_fair_server`]).
    pub rt_runtime_us: Option<i64>,
    /// Period, us, of real-time throttling (`sched_rt_period_us`).
    pub rt_period_us: Option<u64>,
    /// Identifier of this boot.
    pub boot_id: Option<String>,
    /// Processors: models, topology, caches and mitigations.
    #[serde(default)]
    pub processors: Processors,
    /// Kernel build options and debugging features that cost time.
    #[serde(default)]
    pub kernel: KernelFacts,
    /// Clock sources and timers.
    #[serde(default)]
    pub clocks: Clocks,
    /// Frequency and idle states.
    #[serde(default)]
    pub power: Power,
    /// Scheduler settings.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// Other programs that affect latency.
    #[serde(default)]
    pub tasks: Tasks,
    /// Interrupt affinities.
    #[serde(default)]
    pub interrupts: Interrupts,
    /// Network devices of hardware.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<NetworkDevice>,
    /// Memory management settings.
    #[serde(default)]
    pub memory: Memory,
    /// Firmware, temperature and steal time.
    #[serde(default)]
    pub platform: Platform,
    /// Its floor, if `punctual floor` has measured it since the boot; `null` if not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<Floor>,
    /// A co-kernel beside Linux; `null` when nothing shows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cokernel: Option<CoKernel>,
}

impl Host {
    /// Major and minor number of the kernel release; `None` when it is unknown or has another form.
    pub fn kernel_version_number(&self) -> Option<(u32, u32)> {
        let mut parts = self.kernel_release.as_ref()?.split(|c: char| !c.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    /// Value of the last `key=value` on the kernel command line; empty for a bare `key`.
    pub fn boot_parameter(&self, key: &str) -> Option<&str> {
        let words = self.command_line.as_deref()?.split_whitespace();
        let pairs = words.map(|word| word.split_once('=').unwrap_or((word, "")));
        pairs.filter(|(name, _)| *name == key).map(|(_, value)| value).next_back()
    }

    /// Whether the kernel was built with `option`, like `PREEMPT_RT`; `None` when its configuration is unknown.
    pub fn is_built_with(&self, option: &str) -> Option<bool> {
        self.kernel.config_file.as_ref()?;
        Some(self.kernel.options.get(option).is_some_and(|value| value == "y" || value == "m"))
    }

    /// CPUs isolated from the scheduler: `isolcpus=` and `nohz_full=`. `None` when both are unknown.
    pub fn isolated(&self) -> Option<CpuSet> {
        match (&self.cpus_isolated, &self.scheduling.nohz_full) {
            (None, None) => None,
            (isolated, nohz_full) => Some(isolated.iter().chain(nohz_full).flat_map(CpuSet::iter).collect()),
        }
    }

    /// Whether normal threads have a deadline server, which replaced real-time throttling in Linux 6.12
    /// (kernel/sched/deadline.c, `fair_server_init`). `None` when the release is unknown.
    pub fn has_fair_server(&self) -> Option<bool> {
        Some(self.kernel_version_number()? >= (6, 12))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_boot_parameter_counts() {
        let host = Host { command_line: Some("quiet preempt=none nohz preempt=full".to_owned()), ..Host::default() };
        assert_eq!(host.boot_parameter("preempt"), Some("full"));
        assert_eq!((host.boot_parameter("quiet"), host.boot_parameter("qui")), (Some(""), None));
        assert_eq!(Host::default().boot_parameter("quiet"), None);
    }

    #[test]
    fn isolated_cpus_are_those_of_both_parameters() {
        let cpus = |text: &str| Some(text.parse().unwrap());
        let mut host = Host { cpus_isolated: cpus("2-3"), ..Host::default() };
        assert_eq!(host.isolated(), cpus("2-3"));
        host.scheduling.nohz_full = cpus("3-5");
        assert_eq!(host.isolated(), cpus("2-5"));
        assert_eq!(Host::default().isolated(), None, "unknown is not none");
    }

    #[test]
    fn an_old_host_is_read() {
        let json = serde_json::to_value(Host::default()).unwrap();
        let old: serde_json::Map<_, _> = json
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, v)| !v.is_object())
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        assert!(old.len() < json.as_object().unwrap().len());
        assert_eq!(serde_json::from_value::<Host>(old.into()).unwrap(), Host::default());
    }

    #[test]
    fn the_fair_server_came_with_6_12() {
        let of = |release: &str| Host { kernel_release: Some(release.to_owned()), ..Host::default() }.has_fair_server();
        for (release, expected) in [
            ("6.11.9", Some(false)),
            ("6.12.0-rt", Some(true)),
            ("6.1.0-21-rt-amd64", Some(false)),
            ("7.0", Some(true)),
            ("x", None),
        ] {
            assert_eq!(of(release), expected, "{release}");
        }
        assert_eq!(Host::default().has_fair_server(), None);
    }
}
