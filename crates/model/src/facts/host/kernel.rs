//! Kernel build options and debugging features that cost time.

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
    /// and checks that cost time (Documentation/core-api/real-time/kernel-configuration.rst).
    pub const OPTIONS: [&'static str; 48] = [
        "COMPACTION",
        "CPU_FREQ",
        "CPU_IDLE",
        "CPU_ISOLATION",
        "CFS_BANDWIDTH",
        "DEBUG_ATOMIC_SLEEP",
        "DEBUG_KMEMLEAK",
        "DEBUG_LOCK_ALLOC",
        "DEBUG_MUTEXES",
        "DEBUG_OBJECTS",
        "DEBUG_PAGEALLOC",
        "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
        "DEBUG_PREEMPT",
        "DEBUG_SPINLOCK",
        "DEBUG_VM",
        "EFI_DISABLE_RUNTIME",
        "HIGH_RES_TIMERS",
        "HZ",
        "IRQSOFF_TRACER",
        "IRQ_FORCED_THREADING",
        "KASAN",
        "KCSAN",
        "KFENCE",
        "KMSAN",
        "LOCKDEP",
        "LOCKUP_DETECTOR",
        "NO_HZ_FULL",
        "NO_HZ_IDLE",
        "HZ_PERIODIC",
        "NUMA_BALANCING",
        "PAGE_OWNER",
        "PARAVIRT",
        "PREEMPT",
        "PREEMPT_DYNAMIC",
        "PREEMPT_LAZY",
        "PREEMPT_NONE",
        "PREEMPT_RT",
        "PREEMPT_TRACER",
        "PREEMPT_VOLUNTARY",
        "PROVE_LOCKING",
        "RCU_BOOST",
        "RCU_NOCB_CPU",
        "RCU_NOCB_CPU_DEFAULT_ALL",
        "RT_GROUP_SCHED",
        "RT_GROUP_SCHED_DEFAULT_DISABLED",
        "SLUB_DEBUG_ON",
        "UBSAN",
        "VIRT_CPU_ACCOUNTING_GEN",
    ];
}
