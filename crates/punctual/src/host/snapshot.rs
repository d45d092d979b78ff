//! Reading the facts of a machine.

use super::{HostFs, preemption};
use model::{CpuSet, Host};
use std::collections::BTreeSet;

/// Reads what can be read, now. Never fails: what cannot be read is unknown.
pub(crate) fn snapshot(fs: &HostFs) -> Host {
    let cpuinfo = fs.text("proc/cpuinfo").unwrap_or_default();
    let kernel_release = fs.text("proc/sys/kernel/osrelease");
    let kernel_version = fs.text("proc/sys/kernel/version");
    let command_line = fs.text("proc/cmdline");
    Host {
        hostname: fs.text("proc/sys/kernel/hostname"),
        cpu_model: cpu_model(fs, &cpuinfo),
        cpus_online: cpu_list(fs, "sys/devices/system/cpu/online"),
        cpus_allowed: field(&fs.text("proc/self/status").unwrap_or_default(), "Cpus_allowed_list")
            .and_then(|list| list.parse().ok()),
        cpus_isolated: isolated(fs),
        memory_bytes: memory_bytes(fs),
        architecture: fs.text("proc/sys/kernel/arch").or_else(|| Some(std::env::consts::ARCH.to_owned())),
        preemption: preemption::read(fs, kernel_release.as_deref(), kernel_version.as_deref(), command_line.as_deref()),
        kernel_release,
        kernel_version,
        command_line,
        hypervisor: hypervisor(fs, &cpuinfo),
        container: container(fs),
        clock_source: fs.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        governors: governors(fs),
        rt_runtime_us: fs.number("proc/sys/kernel/sched_rt_runtime_us"),
        rt_period_us: fs.number("proc/sys/kernel/sched_rt_period_us"),
        boot_id: fs.text("proc/sys/kernel/random/boot_id"),
    }
}

/// The value of the first `name : value` line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name && !value.trim().is_empty()).then(|| value.trim())
    })
}

/// x86 names the model in cpuinfo; boards with a device tree name themselves there; else arm64's part number is left.
fn cpu_model(fs: &HostFs, cpuinfo: &str) -> Option<String> {
    (field(cpuinfo, "model name").or_else(|| field(cpuinfo, "Hardware")).map(str::to_owned))
        .or_else(|| fs.text("proc/device-tree/model"))
        .or_else(|| field(cpuinfo, "CPU part").map(|part| format!("CPU part {part}")))
}

fn cpu_list(fs: &HostFs, path: &str) -> Option<CpuSet> {
    fs.text(path)?.parse().ok()
}

/// An empty file means that no CPU is isolated, which is a fact; only a missing one is unknown.
fn isolated(fs: &HostFs) -> Option<CpuSet> {
    let path = "sys/devices/system/cpu/isolated";
    fs.exists(path).then(|| fs.text(path).unwrap_or_default().parse().ok()).flatten()
}

fn memory_bytes(fs: &HostFs) -> Option<u64> {
    let meminfo = fs.text("proc/meminfo")?;
    field(&meminfo, "MemTotal")?.strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The name the hypervisor gives itself, or that there is one: the CPU flag of that name (cpufeatures.h).
fn hypervisor(fs: &HostFs, cpuinfo: &str) -> Option<String> {
    let flagged = field(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let named = fs.text("sys/hypervisor/type").or_else(|| fs.text("proc/device-tree/hypervisor/compatible"));
    named.or_else(|| {
        let dmi = |name: &str| fs.text(format!("sys/class/dmi/id/{name}"));
        let product = [dmi("sys_vendor"), dmi("product_name")].into_iter().flatten().collect::<Vec<_>>().join(" ");
        flagged.then(|| if product.is_empty() { "unnamed".to_owned() } else { product })
    })
}

/// The marks that container engines leave: a file, or their name in the cgroup path.
fn container(fs: &HostFs) -> Option<String> {
    let marks = [(".dockerenv", "docker"), ("run/.containerenv", "podman")];
    let cgroup = fs.text("proc/self/cgroup").unwrap_or_default();
    let in_path = ["kubepods", "docker", "libpod", "lxc"].into_iter().find(|name| cgroup.contains(*name));
    marks.into_iter().find_map(|(path, name)| fs.exists(path).then_some(name)).or(in_path).map(str::to_owned)
}

fn governors(fs: &HostFs) -> Vec<String> {
    let policies = std::fs::read_dir(fs.root.join("sys/devices/system/cpu/cpufreq")).into_iter().flatten().flatten();
    let governor = |dir: std::fs::DirEntry| fs.text(dir.path().join("scaling_governor"));
    policies.filter_map(governor).collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Preemption;
    use std::path::PathBuf;

    fn recorded(machine: &str) -> Host {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/host").join(machine);
        snapshot(&HostFs { root })
    }

    #[test]
    fn a_bare_metal_server_is_read() {
        let host = recorded("server");
        assert_eq!(host.cpu_model.as_deref(), Some("Intel(R) Xeon(R) CPU E5-2643 v4 @ 3.40GHz"));
        assert_eq!(host.cpus_online.unwrap().len(), 12);
        assert_eq!(host.cpus_isolated.unwrap().to_string(), "2-5");
        assert_eq!(host.governors, ["performance"]);
        assert_eq!(host.preemption, Some(Preemption::Realtime));
        assert_eq!((host.rt_runtime_us, host.rt_period_us), (Some(-1), Some(1_000_000)));
        assert_eq!((host.hypervisor, host.container), (None, None));
        assert_eq!(host.memory_bytes, Some(65_768_724 * 1024));
    }

    #[test]
    fn a_virtual_board_with_little_to_read_is_read() {
        let host = recorded("arm64-guest");
        assert_eq!(host.cpu_model.as_deref(), Some("linux,dummy-virt"));
        assert_eq!(host.hypervisor.as_deref(), Some("xen,xen"));
        assert_eq!(host.cpus_isolated, Some(CpuSet::default()));
        assert_eq!((host.rt_runtime_us, host.governors), (None, vec![]));
    }

    #[test]
    fn nothing_to_read_is_unknown_and_no_panic() {
        let host = recorded("does-not-exist");
        assert_eq!(host, Host { architecture: host.architecture.clone(), ..Host::default() });
    }
}
