//! Facts about a machine, taken at one instant and never changed.

use crate::CpuSet;
use serde::{Deserialize, Serialize};

/// A snapshot of the machine. A fact that could not be read is `null`, never a default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Host {
    /// Node name, `uname(2)`.
    pub hostname: Option<String>,
    /// CPU model as `/proc/cpuinfo` names it.
    pub cpu_model: Option<String>,
    /// CPUs that are on line.
    pub cpus_online: Option<CpuSet>,
    /// CPUs this process may use.
    pub cpus_allowed: Option<CpuSet>,
    /// CPUs taken from the scheduler by `isolcpus=`.
    pub cpus_isolated: Option<CpuSet>,
    /// Memory in all, bytes.
    pub memory_bytes: Option<u64>,
    /// Machine architecture, `uname -m`.
    pub architecture: Option<String>,
    /// Kernel release, `uname -r`.
    pub kernel_release: Option<String>,
    /// Kernel version, `uname -v`.
    pub kernel_version: Option<String>,
    /// Kernel command line.
    pub command_line: Option<String>,
    /// Preemption model in force.
    pub preemption: Option<Preemption>,
    /// The hypervisor that runs this machine; `null` when none shows itself.
    pub hypervisor: Option<String>,
    /// The container this runs in; `null` when none shows itself.
    pub container: Option<String>,
    /// Clock source in use.
    pub clock_source: Option<String>,
    /// Frequency governors in use, each once; empty when there is no frequency scaling.
    pub governors: Vec<String>,
    /// Time, us, that real-time threads may use of each period; -1: no limit (`sched_rt_runtime_us`). Since Linux 6.12
    /// it stops them only with `CONFIG_RT_GROUP_SCHED`; otherwise the fair server does ([`Host::has_fair_server`]).
    pub rt_runtime_us: Option<i64>,
    /// The period, us, of real-time throttling (`sched_rt_period_us`).
    pub rt_period_us: Option<u64>,
    /// Identifies this boot.
    pub boot_id: Option<String>,
}

impl Host {
    /// Major and minor number of the kernel's release; `None` when it is unknown or has another form.
    #[must_use]
    pub fn kernel_version_number(&self) -> Option<(u32, u32)> {
        let mut parts = self.kernel_release.as_ref()?.split(|c: char| !c.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    /// Whether normal threads have a deadline server of their own, which took the place of real-time throttling in
    /// Linux 6.12 (kernel/sched/deadline.c, `fair_server_init`). `None` when the release is unknown.
    #[must_use]
    pub fn has_fair_server(&self) -> Option<bool> {
        Some(self.kernel_version_number()? >= (6, 12))
    }
}

/// Where the kernel lets a task be preempted (kernel/Kconfig.preempt).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Preemption {
    /// Only when a task gives up its CPU or returns to user space.
    None,
    /// Also at explicit points.
    Voluntary,
    /// Nearly everywhere.
    Full,
    /// As full; fair tasks are preempted lazily (since Linux 6.13).
    Lazy,
    /// `PREEMPT_DYNAMIC`: chosen at boot, and which one cannot be read here.
    Dynamic,
    /// `PREEMPT_RT`: also inside most spinlocks and interrupt handlers.
    Realtime,
}

impl Preemption {
    /// The name as kernel documentation spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Preemption::None => "PREEMPT_NONE",
            Preemption::Voluntary => "PREEMPT_VOLUNTARY",
            Preemption::Full => "PREEMPT",
            Preemption::Lazy => "PREEMPT_LAZY",
            Preemption::Dynamic => "PREEMPT_DYNAMIC",
            Preemption::Realtime => "PREEMPT_RT",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
