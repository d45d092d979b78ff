//! A co-kernel beside Linux, which takes interrupts first: Xenomai's Cobalt, EVL.

use crate::CpuSet;
use crate::words::word::words;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Facts about a co-kernel and the interrupt pipeline below it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct CoKernel {
    /// Interrupt pipeline of the kernel; `null` when nothing shows it.
    pub pipeline: Option<Pipeline>,
    /// CPUs whose Linux tick the co-kernel emulates: it has taken over their timer (clockevents device `proxy`).
    /// Dovetail only; empty while the co-kernel is stopped.
    pub proxy_cpus: Option<CpuSet>,
    /// Xenomai's Cobalt core; `null` when the kernel has none.
    pub cobalt: Option<Cobalt>,
    /// The EVL core; `null` when the kernel has none.
    pub evl: Option<Evl>,
}

words! {
    /// Interrupt pipeline: delivers interrupts to the co-kernel before Linux.
    json Pipeline {
        /// `CONFIG_DOVETAIL`.
        Dovetail = "Dovetail",
        /// `CONFIG_IPIPE`, the predecessor.
        Ipipe = "I-pipe",
    }
}

/// Xenomai's Cobalt core (`/proc/xenomai`, kernel/cobalt of Xenomai 3).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Cobalt {
    /// Version of Xenomai.
    pub version: Option<String>,
    /// Whether the core initialized: `/proc/xenomai` exists. It does not when it is disabled or failed to start.
    pub is_initialized: Option<bool>,
    /// Gravity of the core clock. Read while the core runs only: with Dovetail and a stopped core, Xenomai 3.2
    /// dereferences a null pointer when the file is read (`pipeline_timer_name`). Then only `user_ns` is known.
    pub gravity: Option<Gravity>,
    /// Timer device that the core programs.
    pub timer: Option<String>,
    /// Clock that the core reads.
    pub clock: Option<String>,
    /// CPUs that real-time threads may use (`/proc/xenomai/affinity`); `null` on a kernel without SMP.
    pub cpus: Option<CpuSet>,
    /// Module parameters in effect, else those of the kernel command line, without `xenomai.`.
    pub parameters: BTreeMap<String, String>,
    /// Faults of threads in primary mode since boot, by kind, summed over the CPUs; kinds without any are omitted.
    pub faults: Option<BTreeMap<String, u64>>,
    /// Switches from primary to secondary mode; `null` without `CONFIG_XENO_OPT_STATS`.
    pub mode_switches: Option<ModeSwitches>,
    /// Whether the ISA bridge is the one that `xenomai.smi` acts on, an Intel device at 00:1f.0; `null` without PCI.
    pub has_smi_chipset: Option<bool>,
}

/// The EVL core (`/sys/devices/virtual/evl`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Evl {
    /// Revision of the interface to programs.
    pub abi: Option<u32>,
    /// State of the core: `disabled`, `running`, `stopped`, `teardown`, `warmup`.
    pub state: Option<String>,
    /// CPUs that out-of-band threads may use (`evl.oob_cpus=`).
    pub cpus: Option<CpuSet>,
    /// Gravity of the monotonic clock.
    pub gravity: Option<Gravity>,
    /// Switches from out-of-band to in-band mode.
    pub mode_switches: Option<ModeSwitches>,
}

/// Time by which a co-kernel programs its timers early, ns, to compensate for the latency it expects. Latencies are
/// smaller by it, and negative where it exceeds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Gravity {
    /// For interrupt handlers, ns.
    pub irq_ns: Option<i64>,
    /// For threads of the kernel, ns.
    pub kernel_ns: Option<i64>,
    /// For threads of programs, ns.
    pub user_ns: Option<i64>,
}

/// Switches of real-time threads to Linux, each of which costs it the guarantees of the co-kernel until it returns.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ModeSwitches {
    /// Number of real-time threads that exist.
    pub threads: u32,
    /// Switches of these threads since each started.
    pub switches: u64,
    /// The thread with most switches; `null` when none has any.
    pub most: Option<SwitchingThread>,
}

/// A real-time thread that switched to Linux.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SwitchingThread {
    /// Thread name; that of a kernel thread in brackets.
    pub name: String,
    /// Its switches.
    pub switches: u64,
}

impl CoKernel {
    /// Whether the co-kernel runs, as far as Dovetail shows: it has taken over a timer.
    pub fn is_running(&self) -> Option<bool> {
        self.proxy_cpus.as_ref().map(|cpus| !cpus.is_empty())
    }

    /// Gravity of the co-kernel's clock.
    pub fn gravity(&self) -> Option<Gravity> {
        self.cobalt.as_ref().and_then(|cobalt| cobalt.gravity).or_else(|| self.evl.as_ref()?.gravity)
    }

    /// CPUs that real-time threads may use.
    pub fn cpus(&self) -> Option<&CpuSet> {
        self.cobalt.as_ref().and_then(|cobalt| cobalt.cpus.as_ref()).or_else(|| self.evl.as_ref()?.cpus.as_ref())
    }

    /// Switches of real-time threads to Linux.
    pub fn mode_switches(&self) -> Option<&ModeSwitches> {
        let of_cobalt = self.cobalt.as_ref().and_then(|cobalt| cobalt.mode_switches.as_ref());
        of_cobalt.or_else(|| self.evl.as_ref()?.mode_switches.as_ref())
    }

    /// Name and version: `Cobalt 3.2.2`, `EVL ABI 32`; of a pipeline without core its name.
    pub fn name(&self) -> Option<String> {
        let name =
            |word: &str, version: Option<String>| version.map_or_else(|| word.to_owned(), |v| format!("{word} {v}"));
        let cobalt = self.cobalt.as_ref().map(|cobalt| name("Cobalt", cobalt.version.clone()));
        let evl = || self.evl.as_ref().map(|evl| name("EVL", evl.abi.map(|abi| format!("ABI {abi}"))));
        cobalt.or_else(evl).or_else(|| self.pipeline.map(|pipeline| pipeline.name().to_owned()))
    }
}

impl Gravity {
    /// The three values, in the order irq, kernel, user.
    pub fn values(self) -> [(&'static str, Option<i64>); 3] {
        [("irq", self.irq_ns), ("kernel", self.kernel_ns), ("user", self.user_ns)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_co_kernel_is_named_by_its_core_else_by_its_pipeline() {
        let mut it = CoKernel { pipeline: Some(Pipeline::Dovetail), ..CoKernel::default() };
        assert_eq!((it.name().as_deref(), it.is_running()), (Some("Dovetail"), None));
        it.evl = Some(Evl { abi: Some(32), ..Evl::default() });
        assert_eq!(it.name().as_deref(), Some("EVL ABI 32"));
        it.cobalt = Some(Cobalt::default());
        assert_eq!(it.name().as_deref(), Some("Cobalt"));
        assert_eq!(CoKernel::default().name(), None);
    }
}
