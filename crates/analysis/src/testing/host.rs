//! A machine for tests.

use punctual_model::{
    Clocks, CpuSet, FrequencyPolicy, Host, IdleState, Interrupts, IrqGroup, KernelFacts, Memory, MemoryNode, OnCpus,
    Permissions, Platform, Power, Preemption, Processors, Scheduling, Tasks, ThermalZone,
};

fn cpus(list: &str) -> CpuSet {
    let cpus: Result<CpuSet, _> = list.parse();
    cpus.expect("a list of CPUs")
}

fn on_all<T>(value: T) -> Vec<OnCpus<T>> {
    vec![OnCpus { cpus: cpus("0-1"), value }]
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// A machine without any fault: no hypervisor, `PREEMPT_RT`, no throttling, a fixed frequency, an isolated CPU.
pub fn host() -> Host {
    Host {
        hostname: some("board7"),
        cpu_model: some("Cortex-A53"),
        cpus_online: Some(cpus("0-1")),
        cpus_allowed: Some(cpus("0-1")),
        cpus_isolated: Some(cpus("1")),
        memory_bytes: Some(1 << 30),
        architecture: some("aarch64"),
        kernel_release: some("6.1.0-21-rt-arm64"),
        kernel_version: some("#1 SMP PREEMPT_RT Debian 6.1.90-1"),
        command_line: some("root=/dev/mmcblk0p2 isolcpus=managed_irq,domain,1 rcu_nocbs=1 irqaffinity=0"),
        preemption: Some(Preemption::Realtime),
        hypervisor: None,
        container: None,
        clock_source: some("arch_sys_counter"),
        governors: vec!["performance".to_owned()],
        rt_runtime_us: Some(-1),
        rt_period_us: Some(1_000_000),
        boot_id: some("b7"),
        floor: None,
        processors: processors(),
        kernel: kernel(),
        clocks: Clocks {
            available: vec!["arch_sys_counter".to_owned()],
            tsc_is_invariant: None,
            tsc_has_adjust: None,
            counter_hz: Some(54_000_000),
            timer_devices: on_all("arch_sys_timer".to_owned()),
        },
        power: power(),
        scheduling: scheduling(),
        tasks: Tasks { looked_at: Some(90), is_complete: true, ..Tasks::default() },
        interrupts: Interrupts {
            default_cpus: Some(cpus("0")),
            groups: vec![IrqGroup { irqs: "9-30".to_owned(), count: 22, cpus: cpus("0"), effective: Some(cpus("0")) }],
        },
        network: Vec::new(),
        memory: Memory {
            huge_pages: some("madvise"),
            swap_bytes: Some(0),
            ksm: Some(false),
            compaction_proactiveness: Some(0),
            compacts_locked_pages: Some(false),
            stat_interval_s: Some(1),
        },
        platform: Platform {
            machine: some("Board 7"),
            throttle_events: Some(0),
            steal_ms: Some(0),
            cpu_time_ms: Some(7_200_000),
            hottest: Some(ThermalZone {
                kind: some("cpu-thermal"),
                millicelsius: 45_000,
                limit_millicelsius: Some(80_000),
            }),
            ..Platform::default()
        },
        cokernel: None,
    }
}

fn processors() -> Processors {
    Processors {
        kinds: on_all("0x41 0xd03 r0p4".to_owned()),
        capacities: on_all(1024),
        offline: Some(CpuSet::default()),
        smt: some("notimplemented"),
        smt_active: Some(false),
        last_level_caches: vec![cpus("0-1")],
        nodes: vec![MemoryNode { node: 0, cpus: Some(cpus("0-1")), memory_bytes: Some(1 << 30) }],
        ..Processors::default()
    }
}

fn kernel() -> KernelFacts {
    let options = ["HIGH_RES_TIMERS", "PREEMPT_RT", "RCU_NOCB_CPU", "NUMA_BALANCING", "CFS_BANDWIDTH"];
    KernelFacts {
        config_file: some("/boot/config-6.1.0-21-rt-arm64"),
        options: options.map(|option| (option.to_owned(), "y".to_owned())).into(),
        tick_hz: Some(1000),
        tainted: Some(0),
        tracer: some("nop"),
        lockdep: Some(false),
        lockdown: some("none"),
        rcu_normal: Some(true),
        rcu_expedited: Some(false),
        consoles: vec!["tty0".to_owned()],
        console_level: Some(4),
        efi: Some(false),
    }
}

fn power() -> Power {
    let policy = FrequencyPolicy {
        driver: some("cpufreq-dt"),
        governor: some("performance"),
        min_khz: Some(600_000),
        max_khz: Some(1_400_000),
        hardware_min_khz: Some(600_000),
        hardware_max_khz: Some(1_400_000),
        energy_preference: None,
    };
    let state = IdleState {
        name: "WFI".to_owned(),
        index: 0,
        exit_latency_us: Some(1),
        cpus: cpus("0-1"),
        disabled: CpuSet::default(),
    };
    Power {
        frequency: on_all(policy),
        idle_driver: some("psci_idle"),
        idle_governor: some("menu"),
        idle_states: vec![state],
        ..Power::default()
    }
}

fn scheduling() -> Scheduling {
    Scheduling {
        cgroup: some("/"),
        cpu_quota_us: Some(-1),
        nohz_full: Some(CpuSet::default()),
        workqueue_cpus: Some(cpus("0")),
        timer_migration: Some(false),
        autogroup: Some(false),
        soft_watchdog: Some(false),
        nmi_watchdog: Some(false),
        watchdog_cpus: Some(cpus("0-1")),
        permissions: Permissions { cap_sys_nice: Some(true), cap_ipc_lock: Some(true), ..Permissions::default() },
        ..Scheduling::default()
    }
}
