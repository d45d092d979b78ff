//! Checks on machines with and without each problem.

mod cokernel;

use super::*;
use crate::testing::host;
use punctual_model::{
    CrowdedCpu, IrqGroup, MemoryNode, NetworkDevice, OnCpus, Preemption, RealtimeTask, SpinningTask, ThermalZone,
};
use std::collections::BTreeSet;

/// A check, a change to a machine without problems, and the severity that the check then reports.
type Row = (&'static str, fn(&mut Host), Severity);

use Severity::{May, NotApplicable, Ok as Good, Unknown, Will};

fn own(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn boot(host: &mut Host, word: &str) {
    let line = host.command_line.get_or_insert_default();
    line.push(' ');
    line.push_str(word);
}

fn built(host: &mut Host, option: &str) {
    host.kernel.options.insert(option.to_owned(), "y".to_owned());
}

fn add_slow_cpu(host: &mut Host) {
    host.processors.capacities.push(OnCpus { cpus: cpus("1"), value: 485 });
}

fn release(host: &mut Host, release: &str) {
    host.kernel_release = own(release);
}

fn spinning() -> SpinningTask {
    let (name, policy) = ("x".to_owned(), "fifo".to_owned());
    SpinningTask { tid: 7, name, policy, priority: Some(50), used_percent: 95 }
}

#[test]
fn real_time_tasks_that_are_unfit_are_named() {
    let mut host = host();
    host.tasks.realtime = vec![task("a", "fifo", Some(99), false), task("b", "rr", Some(5), false)];
    host.tasks.crowded = vec![CrowdedCpu { cpu: 1, threads: vec!["a".to_owned(), "b".to_owned()] }];
    let check = checks().find(|check| check.name == "other-realtime-tasks").unwrap();
    let found = |host: &Host| check.examine(host).outcome.found;
    assert_eq!(found(&host), "a fifo:99, b rr:5; a at 99 runs before the kernel's own threads; all on CPU 1: a, b");
    host.tasks.spinning = vec![spinning()];
    assert_eq!(found(&host), "x (fifo:50, thread 7, child of init) keeps a CPU busy to 95 %");
}

fn task(name: &str, policy: &str, priority: Option<u32>, is_kernel: bool) -> RealtimeTask {
    RealtimeTask { name: name.to_owned(), policy: policy.to_owned(), priority, is_kernel, count: 1 }
}

fn guest(host: &mut Host) {
    host.hypervisor = own("KVM");
}

fn x86_guest(host: &mut Host) {
    guest(host);
    host.architecture = own("x86_64");
}

fn contained(host: &mut Host) {
    host.container = own("docker");
}

fn cpus(list: &str) -> punctual_model::CpuSet {
    list.parse().unwrap()
}

/// A counter that another clock watches.
fn watched(host: &mut Host) {
    host.clock_source = own("tsc");
    host.clocks.available = ["tsc", "hpet"].map(str::to_owned).to_vec();
    (host.clocks.tsc_is_invariant, host.clocks.tsc_has_adjust) = (Some(true), Some(false));
    release(host, "6.2.0");
}

fn nic(rx_delay_us: Option<u32>, rx_adapts: Option<bool>, link_sleeps: Option<bool>) -> NetworkDevice {
    let (rps_cpus, irqs) = (None, vec![38]);
    NetworkDevice { name: "eth0".to_owned(), rx_delay_us, rx_adapts, link_sleeps, rps_cpus, irqs }
}

/// A device that passes packets on to these CPUs, and an interrupt thread of priority 50 beside a program's.
fn nic_beside(host: &mut Host, rps_cpus: &str, priority: u32) {
    host.network = vec![NetworkDevice { rps_cpus: rps_cpus.parse().ok(), ..nic(Some(0), Some(false), None) }];
    let task = |name: &str, priority, is_kernel| RealtimeTask {
        name: name.to_owned(),
        policy: "fifo".to_owned(),
        priority: Some(priority),
        is_kernel,
        count: 1,
    };
    host.tasks.realtime = vec![task("irq/38-eth0", 50, true), task("control", priority, false)];
}

fn nodes(host: &mut Host, n: u32) {
    host.processors.nodes = (0..n).map(|node| MemoryNode { node, cpus: None, memory_bytes: None }).collect();
}

/// A BPF scheduler whose threads have this runtime, us.
fn ext(host: &mut Host, runtime_us: u64) {
    host.scheduling.sched_ext = own("lavd");
    host.scheduling.ext_server_runtime_us = vec![OnCpus { cpus: cpus("0-1"), value: runtime_us }];
}

fn idle_latency(host: &mut Host, us: u64) {
    host.power.idle_states[0].exit_latency_us = Some(us);
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("preemption-model", |h| h.preemption = Some(Preemption::None), Will),
    ("preemption-model", |h| h.preemption = Some(Preemption::Voluntary), Will),
    ("preemption-model", |h| h.preemption = Some(Preemption::Full), May),
    ("preemption-model", |h| h.preemption = Some(Preemption::Lazy), May),
    ("preemption-model", |h| h.preemption = Some(Preemption::Dynamic), May),
    ("preemption-model", |h| h.preemption = None, Unknown),
    ("high-resolution-timers", |h| boot(h, "highres=off"), Will),
    ("high-resolution-timers", |h| boot(h, "highres=on"), Good),
    ("high-resolution-timers", |h| { h.kernel.options.remove("HIGH_RES_TIMERS"); }, Will),
    ("high-resolution-timers", |h| h.kernel.config_file = None, Unknown),
    ("tick-rate", |h| h.kernel.tick_hz = Some(999), May),
    ("tick-rate", |h| h.kernel.tick_hz = Some(0), Good),
    ("tick-rate", |h| h.kernel.tick_hz = None, Unknown),
    ("skew-tick", |h| h.cpus_online = Some(cpus("0-6")), Good),
    ("skew-tick", |h| h.cpus_online = Some(cpus("0-7")), May),
    ("skew-tick", |h| { h.cpus_online = Some(cpus("0-7")); boot(h, "skew_tick=0") }, May),
    ("skew-tick", |h| { h.cpus_online = Some(cpus("0-7")); boot(h, "skew_tick=1") }, Good),
    ("skew-tick", |h| h.cpus_online = None, Unknown),
    ("rcu-priority", |h| h.tasks.realtime = vec![task("rcuc/*", "fifo", Some(1), true)], Good),
    ("rcu-priority", |h| h.tasks.realtime = vec![task("rcuc/*", "fifo", Some(2), true)], May),
    ("rcu-priority", |h| h.tasks.realtime = vec![task("rcu", "fifo", Some(2), false)], Good),
    ("rcu-priority", contained, Unknown),
    ("rcu-expedited", |h| h.kernel.rcu_normal = Some(false), May),
    ("rcu-expedited", |h| (h.kernel.rcu_normal, h.kernel.rcu_expedited) = (Some(false), Some(true)), May),
    ("rcu-expedited", |h| h.kernel.rcu_normal = None, Unknown),
    ("serial-console", |h| { h.kernel.consoles = vec!["ttyS0".into()]; h.kernel.console_level = Some(5); h.preemption = None }, May),
    ("serial-console", |h| { h.kernel.consoles = vec!["ttymxc0".into()]; h.kernel.console_level = Some(7); h.preemption = None }, May),
    ("serial-console", |h| { h.kernel.consoles = vec!["ttyS0".into()]; h.kernel.console_level = Some(4); h.preemption = None }, Good),
    ("serial-console", |h| { h.kernel.consoles = vec!["ttyS0".into()]; h.kernel.console_level = Some(8) }, Good),
    ("serial-console", |h| h.kernel.consoles.clear(), Unknown),
    ("efi-runtime", |h| { h.kernel.efi = Some(true); h.preemption = Some(Preemption::Full) }, May),
    ("efi-runtime", |h| { h.kernel.efi = Some(true); boot(h, "efi=debug,noruntime") }, Good),
    ("efi-runtime", |h| { h.kernel.efi = Some(true); built(h, "EFI_DISABLE_RUNTIME") }, Good),
    ("efi-runtime", |h| { h.kernel.efi = Some(true); built(h, "EFI_DISABLE_RUNTIME"); boot(h, "efi=runtime") }, May),
    ("efi-runtime", |h| h.kernel.efi = None, Unknown),
    ("lock-checking", |h| built(h, "PROVE_LOCKING"), Will),
    ("lock-checking", |h| h.kernel.lockdep = Some(true), Will),
    ("lock-checking", |h| h.kernel.config_file = None, Good),
    ("lock-checking", |h| { h.kernel.config_file = None; h.kernel.lockdep = None }, Unknown),
    ("memory-checking", |h| built(h, "KASAN"), Will),
    ("memory-checking", |h| boot(h, "slub_debug=FZP"), Will),
    ("memory-checking", |h| boot(h, "slub_debug=-"), Good),
    ("memory-checking", |h| h.kernel.config_file = None, Unknown),
    ("debug-checks", |h| built(h, "DEBUG_OBJECTS"), May),
    ("debug-checks", |h| h.kernel.config_file = None, Unknown),
    ("latency-tracers", |h| built(h, "IRQSOFF_TRACER"), May),
    ("latency-tracers", |h| h.kernel.config_file = None, Unknown),
    ("tracer", |h| h.kernel.tracer = own("function"), Will),
    ("tracer", |h| h.kernel.tracer = None, Unknown),
    ("clock-source", |h| h.clock_source = own("hpet"), Will),
    ("clock-source", |h| h.clock_source = None, Unknown),
    ("tsc", |h| { h.clocks.tsc_is_invariant = Some(false); h.clock_source = own("tsc") }, May),
    ("tsc", |h| { h.clocks.tsc_is_invariant = Some(true); h.clock_source = own("tsc") }, Good),
    ("tsc", |h| { h.clocks.tsc_is_invariant = Some(false); h.clock_source = own("hpet") }, NotApplicable),
    ("counter-rate", |h| h.clocks.counter_hz = Some(4_000_000), May),
    ("counter-rate", |h| h.clocks.counter_hz = None, Unknown),
    ("counter-rate", |h| { h.clocks.counter_hz = None; h.architecture = own("x86_64") }, NotApplicable),
    ("timer-device", |h| h.clocks.timer_devices[0].value = "hpet2".into(), May),
    ("timer-device", |h| h.clocks.timer_devices.clear(), Unknown),
    ("governor", |h| h.power.frequency[0].value.governor = own("schedutil"), Will),
    ("governor", |h| { h.power.frequency[0].value.governor = own("userspace"); h.power.frequency[0].value.min_khz = Some(1_400_000) }, Good),
    ("governor", |h| h.power.frequency[0].value.governor = None, Unknown),
    ("governor", |h| h.power.frequency.clear(), Good),
    ("governor", |h| { h.power.frequency.clear(); h.governors = vec!["ondemand".into()] }, Will),
    ("governor", |h| { h.power.frequency.clear(); h.governors.clear() }, NotApplicable),
    ("frequency-limit", |h| h.power.frequency[0].value.max_khz = Some(1_399_999), May),
    ("frequency-limit", |h| h.power.frequency[0].value.max_khz = Some(1_400_001), Good),
    ("frequency-limit", |h| h.power.frequency[0].value.max_khz = None, Unknown),
    ("frequency-limit", |h| h.power.frequency.clear(), NotApplicable),
    ("energy-preference", |h| h.power.frequency[0].value.energy_preference = own("balance_performance"), May),
    ("energy-preference", |h| h.power.frequency[0].value.energy_preference = own("performance"), Good),
    ("turbo", |h| h.power.turbo = Some(true), May),
    ("turbo", |h| h.power.turbo = Some(false), Good),
    ("power-daemon", |h| h.tasks.daemons = vec!["power-profiles-".into(), "tuned".into()], May),
    ("power-daemon", contained, Unknown),
    ("thermal-throttling", |h| h.platform.throttle_events = Some(1), May),
    ("thermal-throttling", |h| h.platform.throttle_events = None, Unknown),
    ("thermal-throttling", |h| { guest(h); h.platform.throttle_events = None }, NotApplicable),
    ("temperature", |h| h.platform.hottest = Some(ThermalZone { kind: None, millicelsius: 70_000, limit_millicelsius: Some(80_000) }), May),
    ("temperature", |h| h.platform.hottest = Some(ThermalZone { kind: None, millicelsius: 69_999, limit_millicelsius: Some(80_000) }), Good),
    ("temperature", |h| h.platform.hottest = Some(ThermalZone { kind: None, millicelsius: i64::MIN, limit_millicelsius: Some(i64::MIN) }), May),
    ("temperature", |h| h.platform.hottest = None, Unknown),
    ("idle-states", |h| idle_latency(h, 100), Will),
    ("idle-states", |h| idle_latency(h, 99), May),
    ("idle-states", |h| idle_latency(h, 10), May),
    ("idle-states", |h| idle_latency(h, 9), Good),
    ("idle-states", |h| { idle_latency(h, 1000); h.power.idle_states[0].disabled = cpus("0-1") }, Good),
    ("idle-states", |h| { idle_latency(h, 1000); h.power.idle_states[0].disabled = cpus("0") }, Will),
    ("idle-states", |h| { idle_latency(h, 1000); boot(h, "idle=poll") }, Good),
    ("idle-states", |h| h.power.idle_states.clear(), Unknown),
    ("idle-states", |h| { h.power.idle_states.clear(); h.power.idle_driver = own("none") }, Good),
    ("idle-poll", |h| { boot(h, "idle=poll"); guest(h) }, May),
    ("idle-poll", |h| { boot(h, "idle=poll"); h.processors.smt_active = Some(true) }, May),
    ("idle-poll", |h| boot(h, "idle=poll"), Good),
    ("guest-halt", |h| { x86_guest(h); h.power.idle_governor = own("haltpoll"); h.power.halt_poll_ns = Some(0) }, May),
    ("guest-halt", |h| { x86_guest(h); h.power.idle_governor = own("haltpoll"); h.power.halt_poll_ns = Some(200_000) }, Good),
    ("guest-halt", x86_guest, May),
    ("guest-halt", guest, NotApplicable),
    ("guest-halt", |h| { x86_guest(h); (h.power.idle_driver, h.power.idle_governor) = (None, None) }, Unknown),
    ("network-interrupts", |h| h.network.clear(), NotApplicable),
    ("network-interrupts", |h| h.network = vec![nic(None, None, None)], Unknown),
    ("network-interrupts", |h| h.network = vec![nic(Some(9), Some(false), Some(false))], Good),
    ("network-interrupts", |h| h.network = vec![nic(Some(10), Some(false), None)], May),
    ("network-interrupts", |h| h.network = vec![nic(Some(0), Some(true), None)], May),
    ("network-interrupts", |h| h.network = vec![nic(None, None, Some(true)), nic(Some(0), None, None)], May),
    ("network-interrupts", |h| nic_beside(h, "", 49), Good),
    ("network-interrupts", |h| nic_beside(h, "", 50), May),
    ("network-interrupts", |h| nic_beside(h, "2-3", 49), May),
    ("pci-suspend", |h| h.power.suspendable = None, NotApplicable),
    ("pci-suspend", |h| h.power.suspendable = Some(vec![]), Good),
    ("pci-suspend", |h| h.power.suspendable = Some(vec!["0000:00:02.0".into()]), May),
    ("shared-cache", |h| h.processors.cache_groups = Some(0), May),
    ("shared-cache", |h| h.processors.cache_groups = Some(1), May),
    ("shared-cache", |h| h.processors.cache_groups = Some(2), Good),
    ("shared-cache", |h| h.processors.cache_groups = None, NotApplicable),
    ("ext-server", |h| h.scheduling.sched_ext = None, NotApplicable),
    ("ext-server", |h| h.scheduling.sched_ext = own("none"), Good),
    ("ext-server", |h| h.scheduling.sched_ext = own("lavd"), Unknown),
    ("ext-server", |h| ext(h, 50_000), May),
    ("ext-server", |h| ext(h, 0), Good),
    ("tsc-watchdog", |h| h.clock_source = own("hpet"), NotApplicable),
    ("tsc-watchdog", watched, May),
    ("tsc-watchdog", |h| { watched(h); boot(h, "tsc=nowatchdog") }, Good),
    ("tsc-watchdog", |h| { watched(h); h.clocks.tsc_has_adjust = Some(true) }, Good),
    ("tsc-watchdog", |h| { watched(h); h.clocks.tsc_has_adjust = Some(true); release(h, "6.1.0") }, Good),
    ("tsc-watchdog", |h| { watched(h); h.clocks.tsc_has_adjust = Some(true); release(h, "6.1.0"); nodes(h, 3) }, May),
    ("tsc-watchdog", |h| { watched(h); h.clocks.tsc_has_adjust = Some(true); release(h, "5.15.0") }, May),
    ("tsc-watchdog", |h| { watched(h); h.clocks.tsc_has_adjust = Some(true); nodes(h, 4) }, Good),
    ("tsc-watchdog", |h| { watched(h); h.clocks.tsc_has_adjust = Some(true); nodes(h, 5) }, May),
    ("tsc-watchdog", |h| { watched(h); h.clocks.available = vec!["tsc".into()] }, Good),
    ("tsc-watchdog", |h| { watched(h); h.kernel_release = None }, Unknown),
    ("pcie-aspm", |h| h.power.pcie_aspm = own("powersave"), May),
    ("pcie-aspm", |h| h.power.pcie_aspm = own("performance"), Good),
    ("pcie-aspm", |h| h.power.pcie_aspm = own("default"), Unknown),
    ("pcie-aspm", |h| { h.power.pcie_aspm = own("powersave"); boot(h, "pcie_aspm=off") }, Good),
    ("rt-throttling", |h| h.rt_runtime_us = Some(950_000), May),
    ("rt-throttling", |h| h.rt_runtime_us = Some(999_999), May),
    ("rt-throttling", |h| h.rt_runtime_us = Some(1_000_000), Good),
    ("rt-throttling", |h| h.rt_runtime_us = None, Unknown),
    ("rt-throttling", |h| { h.rt_runtime_us = Some(950_000); release(h, "6.12.1") }, NotApplicable),
    ("rt-throttling", |h| { h.rt_runtime_us = Some(950_000); release(h, "6.12.1"); built(h, "RT_GROUP_SCHED") }, May),
    ("rt-throttling", |h| { h.rt_runtime_us = Some(950_000); release(h, "6.17"); built(h, "RT_GROUP_SCHED"); boot(h, "rt_group_sched=0") }, NotApplicable),
    ("rt-throttling", |h| { release(h, "6.12.1"); h.kernel.config_file = None }, Unknown),
    ("fair-server", |h| release(h, "6.12.1"), May),
    ("fair-server", |h| { release(h, "6.12.1"); h.scheduling.fair_server_runtime_us = vec![OnCpus { cpus: cpus("0-1"), value: 0 }] }, Good),
    ("fair-server", |h| { release(h, "6.12.1"); h.scheduling.fair_server_runtime_us = vec![OnCpus { cpus: cpus("0"), value: 0 }, OnCpus { cpus: cpus("1"), value: 50_000 }] }, May),
    ("fair-server", |h| { release(h, "6.12.1"); h.kernel.lockdown = Some("integrity".into()) }, May),
    ("fair-server", |h| h.kernel_release = None, Unknown),
    ("rt-group-budget", |h| { h.scheduling.cgroup = own("/x"); h.scheduling.cgroup_rt_runtime_us = Some(0) }, Will),
    ("rt-group-budget", |h| { h.scheduling.cgroup = own("/x"); h.scheduling.cgroup_rt_runtime_us = Some(200_000) }, May),
    ("rt-group-budget", |h| { h.scheduling.cgroup = own("/x"); h.scheduling.cgroup_rt_runtime_us = Some(-1) }, Good),
    ("rt-group-budget", |h| h.scheduling.cgroup_rt_runtime_us = Some(950_000), Good),
    ("rt-group-budget", |h| h.kernel.config_file = None, Unknown),
    ("cpu-quota", |h| (h.scheduling.cpu_quota_us, h.scheduling.cpu_quota_period_us) = (Some(50_000), Some(100_000)), May),
    ("cpu-quota", |h| h.scheduling.cpu_quota_us = None, Unknown),
    ("autogroup", |h| h.scheduling.autogroup = Some(true), May),
    ("autogroup", |h| h.scheduling.autogroup = None, NotApplicable),
    ("energy-aware", |h| { h.scheduling.energy_aware = Some(true); add_slow_cpu(h) }, May),
    ("energy-aware", |h| { h.scheduling.energy_aware = Some(false); add_slow_cpu(h) }, Good),
    ("energy-aware", |h| h.scheduling.energy_aware = Some(true), NotApplicable),
    ("sched-ext", |h| h.scheduling.sched_ext = own("bpfland"), May),
    ("sched-ext", |h| h.scheduling.sched_ext = own("none"), Good),
    ("other-realtime-tasks", |h| h.tasks.realtime = vec![task("pipewire", "rr", Some(20), false)], May),
    ("other-realtime-tasks", |h| h.tasks.realtime = vec![task("x", "deadline", None, false)], May),
    ("other-realtime-tasks", |h| h.tasks.realtime = vec![task("migration/*", "fifo", Some(99), true)], Good),
    ("other-realtime-tasks", |h| { h.tasks.realtime = vec![task("x", "fifo", Some(50), false)]; h.tasks.spinning = vec![spinning()] }, Will),
    ("other-realtime-tasks", contained, Unknown),
    ("other-realtime-tasks", |h| h.tasks.is_complete = false, Unknown),
    ("irq-threads", |h| h.tasks.realtime = vec![task("irq/9-eth0", "fifo", Some(51), true)], May),
    ("irq-threads", |h| h.tasks.realtime = vec![task("irq/*", "fifo", Some(50), true)], Good),
    ("irq-threads", contained, Unknown),
    ("isolated-cpus", |h| h.cpus_isolated = Some(cpus("")), May),
    ("isolated-cpus", |h| { h.cpus_isolated = Some(cpus("")); h.cpus_online = Some(cpus("0")) }, NotApplicable),
    ("isolated-cpus", |h| (h.cpus_isolated, h.scheduling.nohz_full) = (None, None), Unknown),
    ("nohz-full", |h| h.scheduling.nohz_full = Some(cpus("1")), May),
    ("nohz-full", |h| { h.scheduling.nohz_full = None; built(h, "NO_HZ_FULL") }, Unknown),
    ("timer-migration", |h| { h.scheduling.timer_migration = Some(true); h.scheduling.nohz_full = Some(cpus("1")) }, May),
    ("timer-migration", |h| h.scheduling.timer_migration = Some(true), Good),
    ("timer-migration", |h| h.scheduling.timer_migration = None, Unknown),
    ("rcu-callbacks", |h| h.command_line = None, May),
    ("rcu-callbacks", |h| boot(h, "rcu_nocbs=0"), May),
    ("rcu-callbacks", |h| boot(h, "rcu_nocbs=all"), Good),
    ("rcu-callbacks", |h| boot(h, "rcu_nocbs=1-N"), Unknown),
    ("rcu-callbacks", |h| { h.command_line = None; h.scheduling.nohz_full = Some(cpus("1")) }, Good),
    ("rcu-callbacks", |h| h.cpus_isolated = Some(cpus("")), NotApplicable),
    ("workqueues", |h| h.scheduling.workqueue_cpus = Some(cpus("0-1")), May),
    ("workqueues", |h| h.scheduling.workqueue_cpus = None, Unknown),
    ("smt", |h| h.processors.smt_active = Some(true), May),
    ("smt", guest, NotApplicable),
    ("smt", |h| (h.processors.smt_active, h.processors.smt) = (None, None), Unknown),
    ("numa-balancing", |h| { h.scheduling.numa_balancing = Some(true); h.processors.nodes.push(MemoryNode { node: 1, cpus: None, memory_bytes: Some(1) }) }, May),
    ("numa-balancing", |h| { h.scheduling.numa_balancing = Some(false); h.processors.nodes.push(MemoryNode { node: 1, cpus: None, memory_bytes: Some(1) }) }, Good),
    ("numa-balancing", |h| h.scheduling.numa_balancing = Some(true), NotApplicable),
    ("memory-nodes", |h| h.processors.nodes.push(MemoryNode { node: 1, cpus: None, memory_bytes: Some(1) }), May),
    ("memory-nodes", |h| h.processors.nodes.push(MemoryNode { node: 1, cpus: None, memory_bytes: Some(0) }), NotApplicable),
    ("irq-affinity", |h| h.interrupts.groups.push(IrqGroup { irqs: "31-32,40".into(), count: 3, cpus: cpus("0-1"), effective: Some(cpus("1")) }), May),
    ("irq-affinity", |h| h.interrupts.groups.push(IrqGroup { irqs: "31".into(), count: 1, cpus: cpus("0-1"), effective: Some(cpus("0")) }), Good),
    ("irq-affinity", |h| h.interrupts.groups.push(IrqGroup { irqs: "31".into(), count: 1, cpus: cpus("0-1"), effective: None }), May),
    ("irq-affinity", |h| h.interrupts.groups.clear(), Unknown),
    ("default-irq-affinity", |h| h.interrupts.default_cpus = Some(cpus("0-1")), May),
    ("default-irq-affinity", |h| h.interrupts.default_cpus = None, Unknown),
    ("irqbalance", |h| h.tasks.daemons = vec!["irqbalance".into()], May),
    ("irqbalance", contained, Unknown),
    ("soft-watchdog", |h| h.scheduling.soft_watchdog = Some(true), May),
    ("soft-watchdog", |h| h.scheduling.soft_watchdog = None, Good),
    ("nmi-watchdog", |h| h.scheduling.nmi_watchdog = Some(true), May),
    ("nmi-watchdog", |h| { h.scheduling.nmi_watchdog = None; h.kernel.config_file = None }, Unknown),
    ("statistics-interval", |h| h.preemption = Some(Preemption::Full), May),
    ("statistics-interval", |h| { h.preemption = Some(Preemption::Full); h.memory.stat_interval_s = Some(60) }, Good),
    ("statistics-interval", |h| { h.preemption = Some(Preemption::Full); h.memory.stat_interval_s = None }, Unknown),
    ("huge-pages", |h| h.memory.huge_pages = own("always"), May),
    ("huge-pages", |h| h.memory.huge_pages = None, NotApplicable),
    ("swap", |h| h.memory.swap_bytes = Some(1), May),
    ("swap", |h| h.memory.swap_bytes = None, Unknown),
    ("page-merging", |h| h.memory.ksm = Some(true), May),
    ("compaction", |h| h.memory.compaction_proactiveness = Some(20), May),
    ("locked-pages", |h| h.memory.compacts_locked_pages = Some(true), May),
    ("realtime-permission", |h| { h.scheduling.permissions.cap_sys_nice = Some(false); h.scheduling.permissions.realtime_priority = Some(0) }, May),
    ("realtime-permission", |h| { h.scheduling.permissions.cap_sys_nice = Some(false); h.scheduling.permissions.realtime_priority = Some(99) }, Good),
    ("realtime-permission", |h| h.scheduling.permissions.cap_sys_nice = None, Unknown),
    ("memory-lock", |h| { h.scheduling.permissions.cap_ipc_lock = Some(false); h.scheduling.permissions.locked_memory_bytes = Some(8 << 20) }, May),
    ("memory-lock", |h| { h.scheduling.permissions.cap_ipc_lock = Some(false); h.scheduling.permissions.locked_memory_bytes = Some(-1) }, Good),
    ("memory-lock", |h| { h.scheduling.permissions.cap_ipc_lock = Some(false); h.scheduling.permissions.locked_memory_bytes = Some(58 << 20) }, Good),
    ("memory-lock", |h| { h.scheduling.permissions.cap_ipc_lock = Some(false); h.scheduling.permissions.locked_memory_bytes = Some((58 << 20) - 1) }, May),
    ("virtual-machine", guest, Will),
    ("virtual-machine", |h| h.architecture = own("x86_64"), Good),
    ("steal", |h| { guest(h); h.platform.steal_ms = Some(72_000) }, Will),
    ("steal", |h| { guest(h); h.platform.steal_ms = Some(71_000) }, May),
    ("steal", guest, Good),
    ("steal", |h| { guest(h); h.platform.cpu_time_ms = None }, Unknown),
    ("container", contained, May),
    ("smi", |h| { h.architecture = own("x86_64"); h.platform.smi_count = Some(1) }, May),
    ("smi", |h| { h.architecture = own("x86_64"); h.platform.smi_count = Some(0) }, Good),
    ("smi", |h| h.architecture = own("x86_64"), Unknown),
    ("mitigations", |h| { h.processors.vulnerabilities.insert("meltdown".into(), "Mitigation: PTI".into()); }, May),
    ("mitigations", |h| { h.processors.vulnerabilities.insert("spectre_v1".into(), "Mitigation: usercopy".into()); }, Good),
    ("mitigations", |h| h.processors.kinds.clear(), Unknown),
    ("asymmetric-cpus", add_slow_cpu, May),
    ("asymmetric-cpus", |h| { h.processors.capacities.clear(); h.processors.kinds.push(h.processors.kinds[0].clone()) }, Unknown),
];

fn rows() -> impl Iterator<Item = &'static Row> {
    ROWS.iter().chain(cokernel::ROWS)
}

#[test]
fn each_check_says_what_its_fact_means() {
    for (row, (name, change, severity)) in rows().enumerate() {
        let mut changed = host();
        change(&mut changed);
        let check = checks().find(|check| check.name == *name).unwrap_or_else(|| panic!("no check {name}"));
        let said = check.examine(&changed);
        assert_eq!(said.outcome.severity, *severity, "row {row}: {said:?}");
    }
}

#[test]
fn each_check_can_fire() {
    let fired: BTreeSet<_> =
        rows().filter(|(_, _, severity)| matches!(severity, Will | May)).map(|(name, ..)| *name).collect();
    let silent: Vec<_> = checks().map(|check| check.name).filter(|name| !fired.contains(name)).collect();
    assert_eq!(silent, [""; 0], "no row fires these");
}

#[test]
fn a_good_machine_has_nothing_to_change() {
    let said = examine(&host());
    let bad: Vec<_> = said.iter().filter(|one| !matches!(one.outcome.severity, Good | NotApplicable)).collect();
    // A hypervisor may be invisible on this architecture.
    assert_eq!(bad.iter().map(|one| one.name).collect::<Vec<_>>(), ["virtual-machine"], "{bad:#?}");
    assert_eq!(in_brief(&host()), None);
}

#[test]
fn what_is_unknown_is_not_held_against_a_machine() {
    for one in examine(&Host::default()) {
        assert!(!matches!(one.outcome.severity, Will | May), "{one:?}");
        assert_eq!(one.outcome.remedy, None, "{}", one.name);
    }
}

#[test]
fn names_are_unique_and_every_check_says_why_by_whom_and_what_to_do() {
    let names: BTreeSet<_> = checks().map(|check| check.name).collect();
    assert_eq!(names.len(), checks().count());
    for check in checks() {
        assert!(check.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", check.name);
        assert!(check.why.ends_with('.') && !check.why.contains("  ") && !check.source.is_empty(), "{}", check.name);
    }
    for (name, change, _) in rows() {
        let mut changed = host();
        change(&mut changed);
        let said = checks().find(|check| check.name == *name).unwrap().examine(&changed).outcome;
        match said.severity {
            // The timer hardware has no remedy in every case.
            Will | May => assert!(said.remedy.is_some() || *name == "timer-device", "{name}: {said:?}"),
            Unknown | Good | NotApplicable => assert_eq!(said.remedy, None, "{name}"),
        }
    }
}

#[test]
fn worst_comes_first_and_in_brief_only_what_will() {
    let mut bad = host();
    bad.hypervisor = own("KVM");
    bad.clock_source = own("hpet");
    bad.preemption = Some(Preemption::None);
    let said: Vec<_> = examine(&bad).iter().map(|one| one.outcome.severity).collect();
    assert!(said.is_sorted());
    let brief = "doctor: 3 causes of latency: preemption-model, clock-source, virtual-machine (punctual doctor)";
    assert_eq!(in_brief(&bad).as_deref(), Some(brief));
    bad.kernel.tracer = own("function");
    boot(&mut bad, "highres=off");
    assert!(
        in_brief(&bad)
            .unwrap()
            .contains("5 causes of latency: preemption-model, high-resolution-timers, tracer, clock-source, ... (")
    );
}

/// What the check of this name advises: the change, how it is undone, and what to mind.
fn change(name: &str, host: &Host) -> Option<(String, String, Option<String>)> {
    let check = checks().find(|check| check.name == name).unwrap();
    check.examine(host).outcome.remedy.map(|remedy| (remedy.change, remedy.undo, remedy.caution))
}

#[test]
fn advice_fits_the_machine() {
    let mut dynamic = host();
    (dynamic.preemption, dynamic.kernel_version) = (Some(Preemption::None), own("#1 SMP PREEMPT_DYNAMIC Debian"));
    assert_eq!(change("preemption-model", &dynamic).unwrap().0, "kernel parameter preempt=full");
    dynamic.preemption = Some(Preemption::Full);
    assert_eq!(change("preemption-model", &dynamic).unwrap().0, "apt install linux-image-rt-arm64, then boot it");

    let mut closed = host();
    release(&mut closed, "6.18.1");
    assert!(change("fair-server", &closed).unwrap().0.starts_with("echo 0 | tee /sys/kernel/debug/sched/fair_server/"));
    closed.kernel.lockdown = own("integrity");
    let (on, off, _) = change("fair-server", &closed).unwrap();
    assert!(on.starts_with("boot a kernel that is not locked down (here: integrity)"), "{on}: debugfs is closed");
    assert_eq!(off, "boot the former kernel");

    let mut turbo = host();
    turbo.power.turbo = Some(true);
    assert_eq!(change("turbo", &turbo).unwrap().0, "echo 0 > /sys/devices/system/cpu/cpufreq/boost");
    turbo.power.frequency[0].value.driver = own("intel_pstate");
    let (on, off, caution) = change("turbo", &turbo).unwrap();
    let file = "/sys/devices/system/cpu/intel_pstate/no_turbo";
    assert_eq!((on, off, caution), (format!("echo 1 > {file}"), format!("echo 0 > {file}"), None));
    turbo.container = own("docker");
    assert_eq!(change("turbo", &turbo).unwrap().2.as_deref(), Some("to be done outside of the container (docker)"));

    let mut mixed = host();
    let mut slow = mixed.power.frequency[0].clone();
    slow.value.governor = own("ondemand");
    (mixed.power.frequency[0].cpus, slow.cpus) = (cpus("0"), cpus("1"));
    mixed.power.frequency.push(slow);
    let (on, off, _) = change("governor", &mixed).unwrap();
    let file = "/sys/devices/system/cpu/cpu$cpu/cpufreq/scaling_governor";
    assert_eq!(on, format!("for cpu in 1; do echo performance > {file}; done"), "only what differs");
    assert_eq!(off, format!("for cpu in 1; do echo ondemand > {file}; done"));
}

#[test]
fn advice_fits_the_cpus() {
    let mut deep = host();
    idle_latency(&mut deep, 500);
    deep.power.idle_states[0].disabled = cpus("0");
    let off = change("idle-states", &deep).unwrap().1;
    assert_eq!(off, "for cpu in 1; do echo 0 > /sys/devices/system/cpu/cpu$cpu/cpuidle/state0/disable; done");

    let mut threads = host();
    threads.cpus_isolated = Some(cpus(""));
    threads.cpus_online = Some(cpus("0-7"));
    assert!(change("isolated-cpus", &threads).unwrap().0.ends_with(",domain,4-7"));
    threads.processors.siblings = ["0,4", "1,5", "2,6", "3,7"].map(cpus).to_vec();
    assert!(change("isolated-cpus", &threads).unwrap().0.ends_with(",domain,2-3,6-7"), "no core is divided");

    let mut irqs = host();
    irqs.interrupts.groups =
        vec![IrqGroup { irqs: "31-32,40".into(), count: 3, cpus: cpus("0-1"), effective: Some(cpus("1")) }];
    let (on, off, _) = change("irq-affinity", &irqs).unwrap();
    assert_eq!(on, "for irq in $(seq 31 32) 40; do echo 0 > /proc/irq/$irq/smp_affinity_list; done");
    assert_eq!(off, "for irq in $(seq 31 32) 40; do echo 0-1 > /proc/irq/$irq/smp_affinity_list; done");

    let mut masks = host();
    masks.scheduling.workqueue_cpus = Some(cpus("0-1"));
    let file = "/sys/devices/virtual/workqueue/cpumask";
    assert_eq!(change("workqueues", &masks), Some((format!("echo 1 > {file}"), format!("echo 3 > {file}"), None)));
}

#[test]
fn what_a_guest_boots_is_changed_where_it_comes_from() {
    let change = |line: &str, hypervisor: Option<&str>| {
        let mut host = host();
        host.preemption = Some(Preemption::None);
        (host.command_line, host.hypervisor) = (own(line), hypervisor.map(str::to_owned));
        let all = examine(&host);
        let one = all.into_iter().find(|one| one.name == "preemption-model").unwrap();
        one.outcome.remedy.map(|remedy| [remedy.change, remedy.undo]).unwrap()
    };
    let own_boot = change("BOOT_IMAGE=/vmlinuz quiet", Some("KVM"));
    assert_eq!(change("quiet", None), own_boot);
    assert_eq!(change("quiet initrd=\\initrd.img", Some("KVM")), own_boot);
    let place = "on the host: ";
    assert_eq!(change("console=ttyS0 quiet", Some("KVM")), own_boot.map(|text| format!("{place}{text}")));
}
