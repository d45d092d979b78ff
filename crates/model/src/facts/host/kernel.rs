//! The kernel: build options, preemption model, clocks, and debugging features that cost time.

use super::OnCpus;
use crate::words::word::words;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Facts about the kernel besides its release, version and preemption model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct KernelFacts {
    /// Source file of the configuration; `null`: the configuration is unknown.
    pub config_file: Option<String>,
    /// Values of the options that matter for latency, without `CONFIG_`; unset options are omitted.
    pub options: BTreeMap<String, String>,
    /// Frequency of the timer tick, Hz (`CONFIG_HZ`).
    pub tick_hz: Option<u32>,
    /// Taint flags (Documentation/admin-guide/tainted-kernels.rst).
    pub tainted: Option<u64>,
    /// Tracer in use; `nop` means none.
    pub tracer: Option<String>,
    /// Whether lockdep checks locks at run time (`/proc/lockdep_stats` exists).
    pub lockdep: Option<bool>,
    /// Lockdown mode: `none`, `integrity` or `confidentiality`. The latter two restrict root and close debugfs
    /// (kernel_lockdown(7)).
    pub lockdown: Option<String>,
    /// Whether RCU avoids expedited grace periods.
    pub rcu_normal: Option<bool>,
    /// Whether RCU expedites every grace period.
    pub rcu_expedited: Option<bool>,
    /// Consoles that kernel messages are written to.
    pub consoles: Vec<String>,
    /// Console log level: messages of a lower level go to the consoles, 1 to 15 (syslog(2)).
    pub console_level: Option<u32>,
    /// Whether the machine was booted by EFI.
    pub efi: Option<bool>,
}

impl KernelFacts {
    /// Recorded options: those of preemption, timers and ticks, limits of real-time threads, moving work to other CPUs,
    /// and checks that cost time (Documentation/core-api/real-time/kernel-configuration.rst). Blanks separate them.
    pub const OPTIONS: &str = "COMPACTION CPU_FREQ CPU_IDLE CPU_ISOLATION CFS_BANDWIDTH DEBUG_ATOMIC_SLEEP DEBUG_KMEMLEAK \
         DEBUG_LOCK_ALLOC DEBUG_MUTEXES DEBUG_OBJECTS DEBUG_PAGEALLOC DEBUG_PAGEALLOC_ENABLE_DEFAULT \
         DEBUG_PREEMPT DEBUG_SPINLOCK DEBUG_VM EFI_DISABLE_RUNTIME HIGH_RES_TIMERS HZ IRQSOFF_TRACER \
         IRQ_FORCED_THREADING KASAN KCSAN KFENCE KMSAN LOCKDEP LOCKUP_DETECTOR NO_HZ_FULL NO_HZ_IDLE HZ_PERIODIC \
         NUMA_BALANCING PAGE_OWNER PARAVIRT PREEMPT PREEMPT_DYNAMIC PREEMPT_LAZY PREEMPT_NONE PREEMPT_RT \
         PREEMPT_TRACER PREEMPT_VOLUNTARY PROVE_LOCKING RCU_BOOST RCU_NOCB_CPU RCU_NOCB_CPU_DEFAULT_ALL \
         RT_GROUP_SCHED RT_GROUP_SCHED_DEFAULT_DISABLED SLUB_DEBUG_ON UBSAN VIRT_CPU_ACCOUNTING_GEN";
}

/// Facts about clocks besides the clock source in use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Clocks {
    /// Available clock sources.
    pub available: Vec<String>,
    /// Whether the time stamp counter runs at a constant rate in every state; `null` on machines without one.
    pub tsc_is_invariant: Option<bool>,
    /// Whether its adjustment register shows writes to the counter (`tsc_adjust`); `null` on machines without one.
    pub tsc_has_adjust: Option<bool>,
    /// Rate of the counter that the kernel's clock reads on Arm and RISC-V, Hz: times come in steps of one count.
    /// `null` on x86, and where nothing names it.
    pub counter_hz: Option<u64>,
    /// Timer device of each CPU (`current_device` of clockevents).
    pub timer_devices: Vec<OnCpus<String>>,
}

words! {
    /// Preemption model: the points at which the kernel may preempt a task (kernel/Kconfig.preempt).
    #[derive(Serialize, Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "snake_case")]
    Preemption {
        /// Only when a task gives up its CPU or returns to user space.
        None = "PREEMPT_NONE",
        /// Also at explicit points.
        Voluntary = "PREEMPT_VOLUNTARY",
        /// Nearly everywhere.
        Full = "PREEMPT",
        /// As full; fair tasks are preempted lazily (since Linux 6.13).
        Lazy = "PREEMPT_LAZY",
        /// `PREEMPT_DYNAMIC`: chosen at boot, and not readable here.
        Dynamic = "PREEMPT_DYNAMIC",
        /// `PREEMPT_RT`: also inside most spinlocks and interrupt handlers.
        Realtime = "PREEMPT_RT",
    }
}

impl Preemption {
    /// The models that `preempt=` on a kernel command line asks for, in its order, of which the kernel uses the last.
    pub fn asked_by(command_line: &str) -> impl DoubleEndedIterator<Item = Preemption> {
        command_line.split(' ').filter_map(|word| Preemption::by_parameter(word.strip_prefix("preempt=")?))
    }

    /// The model that `preempt=` chooses by this name; `None` for names that the kernel ignores.
    pub fn by_parameter(name: &str) -> Option<Preemption> {
        match name {
            "none" => Some(Preemption::None),
            "voluntary" => Some(Preemption::Voluntary),
            "full" => Some(Preemption::Full),
            "lazy" => Some(Preemption::Lazy),
            _ => None,
        }
    }
}
