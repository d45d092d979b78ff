//! Reading the facts of a machine.

mod cgroup;
mod cokernel;
mod config;
mod kernel;
mod platform;
mod power;
pub(super) mod preemption;
mod processors;
pub(crate) mod read;
mod scheduling;
mod tasks;

use config::Config;
pub use config::kernel_config;
pub use processors::cpus_at;

use super::HostFs;
use punctual_model::{Clocks, CpuSet, Host, Interrupts, IrqGroup, Memory, NetworkDevice, OnCpus};
use read::field;
use std::collections::BTreeSet;

/// Reads the present facts of a machine. Never fails: unreadable facts are unknown. It takes a few milliseconds, more
/// with many CPUs or threads.
pub fn snapshot(fs: &HostFs) -> Host {
    let text = |path| fs.text(path).unwrap_or_default();
    let (cpuinfo, meminfo, status) = (text("proc/cpuinfo"), text("proc/meminfo"), text("proc/self/status"));
    let kernel_release = fs.text("proc/sys/kernel/osrelease");
    let kernel_version = fs.text("proc/sys/kernel/version");
    let command_line = fs.text("proc/cmdline");
    let cpus_online = fs.cpu_list("sys/devices/system/cpu/online");
    let online = cpus_online.clone().unwrap_or_default();
    let config = Config::read(fs, kernel_release.as_deref());
    let clocks = clocks(fs, &cpuinfo, &online);
    let boot_id = fs.boot_id();
    Host {
        cokernel: cokernel::read(fs, config.as_deref(), kernel_version.as_deref(), command_line.as_deref(), &clocks),
        hostname: fs.text("proc/sys/kernel/hostname").map(|name| punctual_model::plain(&name).into_owned()),
        cpu_model: cpu_model(fs, &cpuinfo),
        cpus_online,
        cpus_allowed: field(&status, "Cpus_allowed_list").and_then(|list| list.parse().ok()),
        cpus_isolated: fs.cpu_list("sys/devices/system/cpu/isolated"),
        memory_bytes: bytes(&meminfo, "MemTotal"),
        // Kernels before 6.1 have no such file.
        architecture: fs.text("proc/sys/kernel/arch").or_else(|| fs.is_running().then(punctual_sys::process::machine)),
        preemption: preemption::read(fs, config.as_deref(), kernel_version.as_deref(), command_line.as_deref()),
        kernel: kernel::read(fs, config.as_deref(), command_line.as_deref()),
        kernel_release,
        kernel_version,
        command_line,
        hypervisor: hypervisor(fs, &cpuinfo),
        container: container(fs),
        clock_source: fs.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        governors: governors(fs),
        rt_runtime_us: fs.number("proc/sys/kernel/sched_rt_runtime_us"),
        rt_period_us: fs.number("proc/sys/kernel/sched_rt_period_us"),
        floor: crate::floor::read(fs, boot_id.as_deref()),
        boot_id,
        processors: processors::read(fs, &cpuinfo, &online),
        clocks,
        power: power::read(fs, &online),
        scheduling: scheduling::read(fs, &status),
        tasks: tasks::read(fs),
        interrupts: interrupts(fs),
        network: network(fs),
        memory: memory(fs, &meminfo),
        platform: platform::read(fs, &online),
    }
}

/// Models in the device trees of virtual machines: that of QEMU, kvmtool and crosvm on Arm, and QEMU's on RISC-V. They
/// name neither a board nor a CPU.
const VIRTUAL_MODELS: [&str; 2] = ["linux,dummy-virt", "riscv-virtio,qemu"];

/// The CPU model: x86 has it in cpuinfo, boards with a device tree have it there; else the name of Arm's part number.
fn cpu_model(fs: &HostFs, cpuinfo: &str) -> Option<String> {
    let is_board = |model: &String| !VIRTUAL_MODELS.contains(&model.as_str());
    (field(cpuinfo, "model name").or_else(|| field(cpuinfo, "Hardware")).map(str::to_owned))
        .or_else(|| fs.text("proc/device-tree/model").filter(is_board))
        .or_else(|| processors::arm_core(cpuinfo))
}

/// The hypervisor's own name, or QEMU where its firmware configuration device or the firmware's tables show it. When
/// only the CPU flag `hypervisor` (cpufeatures.h) or the device tree's model shows one: its product name, the name by
/// its clock source, or `unnamed`.
fn hypervisor(fs: &HostFs, cpuinfo: &str) -> Option<String> {
    let flagged = field(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let named = fs.text("sys/hypervisor/type").or_else(|| fs.text("proc/device-tree/hypervisor/compatible"));
    let is_fw_cfg = |name: &String| name.starts_with("fw-cfg");
    let dmi = |name: &str| fs.text(format!("sys/class/dmi/id/{name}"));
    let product = || {
        let names: Vec<_> = [dmi("sys_vendor"), dmi("product_name")].into_iter().flatten().collect();
        (!names.is_empty()).then(|| names.join(" "))
    };
    // The clock source identifies the hypervisor (drivers/clocksource, arch/x86/kernel/kvmclock.c).
    let clocks = || fs.text("sys/devices/system/clocksource/clocksource0/available_clocksource").unwrap_or_default();
    let by_clock = |clocks: String| {
        let makers = [("kvm-clock", "KVM"), ("hyperv_", "Hyper-V"), ("xen", "Xen")];
        makers.into_iter().find(|(clock, _)| clocks.contains(clock)).map(|(_, maker)| maker.to_owned())
    };
    let unnamed = || product().or_else(|| by_clock(clocks())).unwrap_or_else(|| "unnamed".to_owned());
    let is_qemu = || {
        fs.names_in("proc/device-tree").iter().any(is_fw_cfg)
            || dmi("sys_vendor").is_some_and(|vendor| vendor == "QEMU")
    };
    let is_virtual = || fs.text("proc/device-tree/model").is_some_and(|model| VIRTUAL_MODELS.contains(&model.as_str()));
    match named {
        None if flagged => Some(unnamed()),
        None if is_qemu() => Some("QEMU".to_owned()),
        None => is_virtual().then(unnamed),
        named => named,
    }
}

/// Real-time threads of other programs that keep a CPU busy and whose parent is PID 1 or systemd. It takes a second
/// where one may be.
pub fn spinning_tasks() -> Vec<punctual_model::SpinningTask> {
    tasks::read(&HostFs::running()).spinning
}

/// Scheduler settings and privileges of this process.
pub(super) fn scheduling(fs: &HostFs) -> punctual_model::Scheduling {
    scheduling::read(fs, &fs.text("proc/self/status").unwrap_or_default())
}

/// The container engine, by its name in the cgroup path or by a marker file. Such a file is also on a machine whose
/// disk was made from a container's image; there the kernel threads are visible, which no container shows.
pub(super) fn container(fs: &HostFs) -> Option<String> {
    let cgroup = fs.text("proc/self/cgroup").unwrap_or_default();
    let in_path = engine_in(&cgroup);
    let marks = [(".dockerenv", "docker"), ("run/.containerenv", "podman")];
    let is_whole = fs.text("proc/2/comm").as_deref() == Some("kthreadd");
    let marked = || marks.into_iter().find_map(|(path, name)| (!is_whole && fs.exists(path)).then_some(name));
    in_path.or_else(marked).map(str::to_owned)
}

/// The container engine that the paths of control groups name.
pub(super) fn engine_in(cgroup: &str) -> Option<&'static str> {
    ["kubepods", "docker", "libpod", "lxc"].into_iter().find(|name| cgroup.contains(*name))
}

fn governors(fs: &HostFs) -> Vec<String> {
    let policies = std::fs::read_dir(fs.root.join("sys/devices/system/cpu/cpufreq")).into_iter().flatten().flatten();
    let governor = |dir: std::fs::DirEntry| fs.text(dir.path().join("scaling_governor"));
    policies.filter_map(governor).collect::<BTreeSet<_>>().into_iter().collect()
}

fn memory(fs: &HostFs, meminfo: &str) -> Memory {
    Memory {
        huge_pages: fs.chosen("sys/kernel/mm/transparent_hugepage/enabled"),
        swap_bytes: bytes(meminfo, "SwapTotal"),
        // 2 unmerges the merged pages and stops.
        ksm: fs.number::<u32>("sys/kernel/mm/ksm/run").map(|run| run == 1),
        compaction_proactiveness: fs.number("proc/sys/vm/compaction_proactiveness"),
        compacts_locked_pages: fs.switch("proc/sys/vm/compact_unevictable_allowed"),
        stat_interval_s: fs.number("proc/sys/vm/stat_interval"),
    }
}

/// A size of `/proc/meminfo`, which is in KiB.
fn bytes(meminfo: &str, name: &str) -> Option<u64> {
    field(meminfo, name)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn clocks(fs: &HostFs, cpuinfo: &str, online: &CpuSet) -> Clocks {
    let available = fs.text("sys/devices/system/clocksource/clocksource0/available_clocksource").unwrap_or_default();
    // The names of clockevents contain the CPU number.
    let device = |cpu| fs.text(format!("sys/devices/system/clockevents/clockevent{cpu}/current_device"));
    let devices = online.iter().filter_map(|cpu| Some((CpuSet::from_iter([cpu]), device(cpu)?)));
    Clocks {
        available: available.split_whitespace().map(str::to_owned).collect(),
        tsc_is_invariant: tsc_has(cpuinfo, &["constant_tsc", "nonstop_tsc"]),
        tsc_has_adjust: tsc_has(cpuinfo, &["tsc_adjust"]),
        counter_hz: counter_hz(fs),
        timer_devices: OnCpus::gather(devices),
    }
}

/// Whether the first CPU has all these flags, if it has a time stamp counter.
fn tsc_has(cpuinfo: &str, wanted: &[&str]) -> Option<bool> {
    let flags: Vec<&str> = field(cpuinfo, "flags")?.split(' ').collect();
    flags.contains(&"tsc").then(|| wanted.iter().all(|flag| flags.contains(flag)))
}

/// The rate of the architecture's counter: in the device tree (timer/arm,arch_timer.yaml, riscv/cpus.yaml), else in a
/// register.
fn counter_hz(fs: &HostFs) -> Option<u64> {
    let property = |name: &str| fs.cell(format!("proc/device-tree/{name}"));
    let named = property("cpus/timebase-frequency").or_else(|| property("timer/clock-frequency"));
    named.map(u64::from).or_else(|| fs.is_running().then(punctual_sys::clock::counter_hz).flatten())
}

/// The network devices of hardware, whose settings only their driver can tell.
fn network(fs: &HostFs) -> Vec<NetworkDevice> {
    const MOST: usize = 64;
    let dir = "sys/class/net";
    let is_hardware = |name: &String| fs.is_running() && fs.exists(format!("{dir}/{name}/device"));
    let rps_cpus = |name: &str| {
        let queues = fs.names(&format!("{dir}/{name}/queues")).into_iter().filter(|queue| queue.starts_with("rx-"));
        let all: Vec<CpuSet> =
            queues.filter_map(|queue| fs.cpu_mask(&format!("{dir}/{name}/queues/{queue}/rps_cpus"))).collect();
        (!all.is_empty()).then(|| all.iter().flat_map(CpuSet::iter).collect())
    };
    // Those of a virtio device belong to the device around it.
    let irqs = |name: &str| {
        let numbers = |place: &str| fs.numbered(&format!("{dir}/{name}/{place}/msi_irqs"), "");
        Some(numbers("device")).filter(|found| !found.is_empty()).unwrap_or_else(|| numbers("device/.."))
    };
    let device = |name: String| {
        let c_name = std::ffi::CString::new(name.as_str()).ok()?;
        let coalescing = punctual_sys::network::coalescing(&c_name).ok();
        Some(NetworkDevice {
            name: punctual_model::plain(&name).into_owned(),
            rx_delay_us: coalescing.map(|(us, _)| us),
            rx_adapts: coalescing.map(|(_, adapts)| adapts),
            link_sleeps: punctual_sys::network::energy_efficient(&c_name).ok(),
            rps_cpus: rps_cpus(&name),
            irqs: irqs(&name),
        })
    };
    fs.names(dir).into_iter().filter(is_hardware).take(MOST).filter_map(device).collect()
}

fn interrupts(fs: &HostFs) -> Interrupts {
    let mut groups: Vec<(CpuSet, Option<CpuSet>, Vec<u32>)> = Vec::new();
    for irq in fs.numbered("proc/irq", "") {
        let Some(cpus) = fs.cpu_list(&format!("proc/irq/{irq}/smp_affinity_list")) else { continue };
        // An interrupt without a handler has no effective affinity.
        let effective = fs.cpu_list(&format!("proc/irq/{irq}/effective_affinity_list")).filter(|cpus| !cpus.is_empty());
        match groups.iter_mut().find(|group| (&group.0, &group.1) == (&cpus, &effective)) {
            Some((.., irqs)) => irqs.push(irq),
            None => groups.push((cpus, effective, vec![irq])),
        }
    }
    Interrupts {
        default_cpus: fs.cpu_mask("proc/irq/default_smp_affinity"),
        groups: groups.into_iter().map(|(cpus, effective, irqs)| IrqGroup::new(&irqs, cpus, effective)).collect(),
    }
}

#[cfg(test)]
mod tests;
