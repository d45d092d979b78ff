//! Groups of build options, by their effect on latency.

use crate::words::word::words;

words! {
    /// A group of options, the most important first.
    json ConfigGroup {
        /// The preemption model, and options that follow from it.
        PreemptionModel = "preemption model",
        /// The co-kernel: Dovetail with Xenomai Cobalt or EVL.
        CoKernel = "co-kernel",
        /// Timers and ticks.
        TimersAndTicks = "timers and ticks",
        /// Number of processors, and their topology.
        Processors = "processors",
        /// Checks that cost time.
        Debugging = "debugging",
        /// Tracers and what they need.
        Tracing = "tracing",
        /// Mitigations of processor vulnerabilities, and hardening.
        Mitigations = "mitigations",
        /// Idle states and frequencies.
        IdleStatesAndFrequencies = "idle states and frequencies",
        /// Scheduler and control groups.
        Scheduling = "scheduling",
        /// Interrupts and RCU.
        InterruptsAndRcu = "interrupts and RCU",
        /// Memory management.
        Memory = "memory",
        /// Support of hypervisors.
        Virtualization = "virtualization",
        /// Compiler and its optimization.
        Compiler = "compiler",
        /// All others: drivers, file systems, networks.
        OtherOptions = "other options",
        /// Names and versions of the build, and what tools and architecture can do; these choose no code.
        NamesOfTheBuild = "names of the build",
    }
}

/// A group with names, and beginnings of names, of its options; blanks separate them.
type Rule = (ConfigGroup, &'static str, &'static str);

/// Rules, of which the first that matches holds. The options that follow from the preemption model are those by which
/// Linux 6.12.117 for x86 differs when only the model is changed (`make allnoconfig` with and without SMP).
const RULES: [Rule; 14] = [
    (
        ConfigGroup::PreemptionModel,
        "CONTEXT_TRACKING CONTEXT_TRACKING_IDLE PREEMPT PREEMPTION PREEMPT_BUILD PREEMPT_COUNT \
         PREEMPT_DYNAMIC PREEMPT_LAZY PREEMPT_LAZY_BUILD PREEMPT_NONE PREEMPT_NONE_BUILD PREEMPT_RCU \
         PREEMPT_RT PREEMPT_RT_FULL PREEMPT_VOLUNTARY PREEMPT_VOLUNTARY_BUILD PREEMPT__LL QUEUED_RWLOCKS \
         RCU_CPU_STALL_TIMEOUT RCU_EXP_CPU_STALL_TIMEOUT RCU_NEED_SEGCBLIST RCU_STALL_COMMON \
         SOFTIRQ_ON_OWN_STACK TASKS_RCU TINY_RCU TINY_SRCU TREE_RCU TREE_SRCU UNINLINE_SPIN_UNLOCK",
        "INLINE_READ_ INLINE_SPIN_ INLINE_WRITE_",
    ),
    (ConfigGroup::CoKernel, "DOVETAIL EVL IPIPE IRQ_PIPELINE XENOMAI", "DOVETAIL_ EVL_ XENO_"),
    (
        ConfigGroup::NamesOfTheBuild,
        "BINDGEN_VERSION_TEXT BUILD_SALT CLANG_VERSION DEFAULT_HOSTNAME DEFAULT_INIT GCC_VERSION HZ_100 \
         HZ_1000 HZ_250 HZ_300 IKCONFIG IKCONFIG_PROC IKHEADERS INITRAMFS_SOURCE LD_VERSION LLD_VERSION \
         LOCALVERSION LOCALVERSION_AUTO LOCKDEP_SUPPORT MODULE_SIG_HASH MODULE_SIG_KEY PAHOLE_VERSION \
         RUSTC_LLVM_VERSION RUSTC_VERSION RUSTC_VERSION_TEXT SYSTEM_REVOCATION_KEYS SYSTEM_TRUSTED_KEYS",
        "ARCH_ AS_ CC_CAN_ CC_HAS_ CC_IMPLICIT_ CC_NO_ DEBUG_INFO HAVE_ LD_CAN_ LD_IS_ LD_ORPHAN_ \
         NR_CPUS_ PAHOLE_HAS_ RUSTC_HAS_ TOOLS_SUPPORT_",
    ),
    (
        ConfigGroup::TimersAndTicks,
        "GENERIC_CLOCKEVENTS_BROADCAST HIGH_RES_TIMERS HPET_TIMER HZ HZ_PERIODIC \
         POSIX_CPU_TIMERS_TASK_WORK SCHED_HRTICK TICK_CPU_ACCOUNTING TICK_ONESHOT",
        "CONTEXT_TRACKING_ NO_HZ VIRT_CPU_ACCOUNTING",
    ),
    (
        ConfigGroup::Processors,
        "64BIT BROKEN_ON_SMP GENERIC_CPU HOTPLUG_CPU MAXSMP NR_CPUS NUMA SMP X86_64 X86_X2APIC",
        "NODES_ SCHED_CLUSTER SCHED_MC SCHED_SMT",
    ),
    (
        ConfigGroup::Debugging,
        "KASAN KCOV KCSAN KFENCE KGDB KMSAN LATENCYTOP LOCKDEP LOCK_STAT PAGE_EXTENSION PAGE_OWNER \
         PAGE_POISONING PAGE_TABLE_CHECK SCHEDSTATS SCHED_DEBUG SCHED_INFO SCHED_STACK_END_CHECK \
         SLUB_DEBUG_ON SLUB_STATS SOFTLOCKUP_DETECTOR TRACE_IRQFLAGS UBSAN WQ_WATCHDOG",
        "DEBUG_ DETECT_HUNG_TASK FAULT_INJECTION HARDLOCKUP_DETECTOR KASAN_ KCSAN_ KFENCE_ LOCKDEP_ \
         LOCKUP_DETECTOR PROVE_ RCU_TRACE UBSAN_",
    ),
    (
        ConfigGroup::Tracing,
        "BLK_DEV_IO_TRACE BPF_JIT BPF_SYSCALL DYNAMIC_FTRACE FPROBE FTRACE FTRACE_SYSCALLS HWLAT_TRACER \
         JUMP_LABEL KPROBES OSNOISE_TRACER PREEMPTIRQ_TRACEPOINTS PROFILING SCHED_TRACER STACKTRACE \
         TIMERLAT_TRACER TRACEPOINTS UPROBES",
        "DYNAMIC_FTRACE_ FTRACE_ FUNCTION_GRAPH_ FUNCTION_PROFILER FUNCTION_TRACER HIST_TRIGGERS IRQSOFF_ \
         PREEMPT_TRACER TRACER TRACING",
    ),
    (
        ConfigGroup::Mitigations,
        "CFI_CLANG CPU_MITIGATIONS FORTIFY_SOURCE GCC_PLUGIN_STACKLEAK HARDENED_USERCOPY \
         INIT_ON_ALLOC_DEFAULT_ON INIT_ON_FREE_DEFAULT_ON INIT_STACK_ALL_PATTERN INIT_STACK_ALL_ZERO \
         INIT_STACK_NONE LIST_HARDENED PAGE_TABLE_ISOLATION RANDOMIZE_BASE RANDOM_KMALLOC_CACHES RETHUNK \
         RETPOLINE SCHED_CORE SECCOMP SHADOW_CALL_STACK SLAB_FREELIST_HARDENED SLAB_FREELIST_RANDOM SLS \
         SPECULATION_MITIGATIONS STRICT_KERNEL_RWX VMAP_STACK X86_KERNEL_IBT X86_USER_SHADOW_STACK \
         ZERO_CALL_USED_REGS",
        "CPU_IBPB CPU_IBRS CPU_SRSO CPU_UNRET MITIGATION_ RANDOMIZE_KSTACK STACKPROTECTOR \
         UNMAP_KERNEL_AT_EL0",
    ),
    (
        ConfigGroup::IdleStatesAndFrequencies,
        "ACPI_PROCESSOR CPU_FREQ CPU_IDLE ENERGY_MODEL HALTPOLL_CPUIDLE INTEL_IDLE PM SUSPEND \
         X86_INTEL_PSTATE",
        "CPU_FREQ_ CPU_IDLE_ PM_ X86_AMD_PSTATE",
    ),
    (
        ConfigGroup::Scheduling,
        "CFS_BANDWIDTH CGROUPS CORE_SCHED CPUSETS CPU_ISOLATION FAIR_GROUP_SCHED IRQ_TIME_ACCOUNTING \
         MEMCG PSI RSEQ UCLAMP_TASK",
        "BLK_CGROUP CGROUP_ PARAVIRT_TIME PSI_ RT_GROUP_SCHED RT_MUTEXES SCHED_ TASK_ WQ_",
    ),
    (
        ConfigGroup::InterruptsAndRcu,
        "PCI_MSI RCU_BOOST RCU_EXPERT TASKS_RUDE_RCU TASKS_TRACE_RCU X86_IO_APIC X86_LOCAL_APIC",
        "GENERIC_IRQ_ GENERIC_PENDING_IRQ IRQ_ RCU_",
    ),
    (
        ConfigGroup::Memory,
        "BASE_FULL BASE_SMALL COMPACTION HUGETLBFS KSM LRU_GEN LRU_GEN_ENABLED MIGRATION NUMA_BALANCING \
         NUMA_BALANCING_DEFAULT_ENABLED PER_VMA_LOCK SLAB SLAB_MERGE_DEFAULT SLOB SLUB SLUB_CPU_PARTIAL \
         SLUB_TINY SPARSEMEM_VMEMMAP SWAP USERFAULTFD ZSWAP",
        "COMPACT_ TRANSPARENT_HUGEPAGE",
    ),
    (
        ConfigGroup::Virtualization,
        "HYPERV HYPERVISOR_GUEST HYPERV_TIMER INTEL_TDX_GUEST KVM KVM_GUEST PVH XEN XEN_PV XEN_PVHVM",
        "PARAVIRT",
    ),
    (ConfigGroup::Compiler, "CC_IS_CLANG CC_IS_GCC CC_VERSION_TEXT", "CC_OPTIMIZE_ LTO_ UNWINDER_"),
];

impl ConfigGroup {
    /// The group of an option, named without `CONFIG_`, with this value. A module acts only where it is loaded.
    pub fn of(option: &str, value: &str) -> ConfigGroup {
        let is_in = |(_, names, beginnings): &&Rule| {
            names.split(' ').any(|name| name == option)
                || beginnings.split(' ').any(|beginning| option.starts_with(beginning))
        };
        if value == "m" {
            return ConfigGroup::OtherOptions;
        }
        RULES.iter().find(is_in).map_or(ConfigGroup::OtherOptions, |(group, ..)| *group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_in_the_group_of_their_effect() {
        for (option, group) in [
            ("PREEMPT_RT", ConfigGroup::PreemptionModel),
            ("INLINE_SPIN_UNLOCK_IRQ", ConfigGroup::PreemptionModel),
            ("PREEMPT_TRACER", ConfigGroup::Tracing),
            ("SCHED_TRACER", ConfigGroup::Tracing),
            ("DEBUG_PREEMPT", ConfigGroup::Debugging),
            ("XENO_OPT_STATS", ConfigGroup::CoKernel),
            ("HZ", ConfigGroup::TimersAndTicks),
            ("HZ_PERIODIC", ConfigGroup::TimersAndTicks),
            ("HZ_250", ConfigGroup::NamesOfTheBuild),
            ("NO_HZ_FULL", ConfigGroup::TimersAndTicks),
            ("SMP", ConfigGroup::Processors),
            ("SCHED_SMT", ConfigGroup::Processors),
            ("PROVE_LOCKING", ConfigGroup::Debugging),
            ("SCHED_DEBUG", ConfigGroup::Debugging),
            ("FUNCTION_TRACER", ConfigGroup::Tracing),
            ("FUNCTION_ALIGNMENT", ConfigGroup::OtherOptions),
            ("MITIGATION_RETPOLINE", ConfigGroup::Mitigations),
            ("CPU_IDLE", ConfigGroup::IdleStatesAndFrequencies),
            ("PMBUS", ConfigGroup::OtherOptions),
            ("CFS_BANDWIDTH", ConfigGroup::Scheduling),
            ("RCU_NOCB_CPU", ConfigGroup::InterruptsAndRcu),
            ("TRANSPARENT_HUGEPAGE_ALWAYS", ConfigGroup::Memory),
            ("PARAVIRT_SPINLOCKS", ConfigGroup::Virtualization),
            ("CC_VERSION_TEXT", ConfigGroup::Compiler),
            ("HAVE_PREEMPT_DYNAMIC", ConfigGroup::NamesOfTheBuild),
            ("EXT4_FS", ConfigGroup::OtherOptions),
        ] {
            assert_eq!(ConfigGroup::of(option, "y"), group, "{option}");
        }
        assert_eq!(ConfigGroup::of("KVM", "m"), ConfigGroup::OtherOptions, "it acts where it is loaded");
    }

    #[test]
    fn every_option_that_a_snapshot_records_matters() {
        for option in crate::KernelFacts::OPTIONS.split(' ') {
            let group = ConfigGroup::of(option, "y");
            assert!(group < ConfigGroup::OtherOptions || option == "EFI_DISABLE_RUNTIME", "{option}: {group:?}");
        }
    }

    #[test]
    fn a_rule_names_each_option_once() {
        let mut names: Vec<_> = RULES.iter().flat_map(|(_, names, _)| names.split(' ')).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
