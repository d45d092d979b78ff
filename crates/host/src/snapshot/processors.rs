//! Reading the processors and the resources that they share.

use super::read::field;
use crate::HostFs;
use punctual_model::{Cache, CpuPlace, CpuSet, MemoryNode, OnCpus, Processors};
use std::collections::BTreeMap;

const CPUS: &str = "sys/devices/system/cpu";

pub(super) fn read(fs: &HostFs, cpuinfo: &str, online: &CpuSet) -> Processors {
    let caches = |cpu| caches_of(fs, cpu);
    Processors {
        kinds: of_each_cpu(cpuinfo, kind),
        microcode: of_each_cpu(cpuinfo, |cpu| field(cpu, "microcode").map(str::to_owned)),
        capacities: capacities(fs, online),
        offline: fs.cpu_list("sys/devices/system/cpu/offline").map(|offline| present(fs, offline)),
        smt: fs.text("sys/devices/system/cpu/smt/control"),
        smt_active: fs.switch("sys/devices/system/cpu/smt/active"),
        siblings: siblings(fs, online),
        caches: online.iter().next().map(caches).unwrap_or_default(),
        last_level_caches: last_level_caches(fs, online),
        cache_groups: cache_groups(fs, cpuinfo),
        nodes: fs.numbered("sys/devices/system/node", "node").into_iter().map(|node| memory_node(fs, node)).collect(),
        vulnerabilities: vulnerabilities(fs),
    }
}

/// A value of each CPU's paragraph of `/proc/cpuinfo`.
fn of_each_cpu(cpuinfo: &str, value: impl Fn(&str) -> Option<String>) -> Vec<OnCpus<String>> {
    let paragraphs = cpuinfo.split("\n\n").filter_map(|cpu| {
        let number: u32 = field(cpu, "processor")?.parse().ok().filter(|cpu| *cpu <= CpuSet::MAX_CPU)?;
        Some((CpuSet::from_iter([number]), value(cpu)?))
    });
    OnCpus::gather(paragraphs)
}

/// Identification of a CPU type, in the formats of x86, Arm and RISC-V.
fn kind(cpu: &str) -> Option<String> {
    let of = |name| field(cpu, name);
    let x86 = || Some(format!("{} {}-{}-{}", of("vendor_id")?, of("cpu family")?, of("model")?, of("stepping")?));
    let arm = || {
        let revision = format!("r{}p{}", of("CPU variant")?.trim_start_matches("0x"), of("CPU revision")?);
        Some(format!("{} {} {revision}", of("CPU implementer")?, of("CPU part")?))
    };
    x86().or_else(arm).or_else(|| of("uarch").map(str::to_owned))
}

/// Names of Arm's own cores, by their part numbers (arch/arm64/include/asm/cputype.h).
const ARM_CORES: [(&str, &str); 16] = [
    ("0xd03", "Cortex-A53"),
    ("0xd04", "Cortex-A35"),
    ("0xd05", "Cortex-A55"),
    ("0xd07", "Cortex-A57"),
    ("0xd08", "Cortex-A72"),
    ("0xd09", "Cortex-A73"),
    ("0xd0a", "Cortex-A75"),
    ("0xd0b", "Cortex-A76"),
    ("0xd0c", "Neoverse-N1"),
    ("0xd40", "Neoverse-V1"),
    ("0xd41", "Cortex-A78"),
    ("0xd42", "Cortex-A78AE"),
    ("0xd46", "Cortex-A510"),
    ("0xd47", "Cortex-A710"),
    ("0xd49", "Neoverse-N2"),
    ("0xd4f", "Neoverse-V2"),
];

/// The core of an Arm processor, the first of several kinds: its name, or its part number.
pub(super) fn arm_core(cpuinfo: &str) -> Option<String> {
    let part = field(cpuinfo, "CPU part")?;
    let is_arm = field(cpuinfo, "CPU implementer") == Some("0x41");
    let known = ARM_CORES.iter().find(|(number, _)| is_arm && *number == part);
    Some(known.map_or_else(|| format!("CPU part {part}"), |(_, name)| (*name).to_owned()))
}

/// Offline CPUs that are present: `offline` also contains those that are only possible.
fn present(fs: &HostFs, offline: CpuSet) -> CpuSet {
    fs.cpu_list("sys/devices/system/cpu/present").map_or(offline.clone(), |present| offline.common(&present))
}

/// Capacities of the CPUs, which are meaningful only where the CPUs differ.
fn capacities(fs: &HostFs, online: &CpuSet) -> Vec<OnCpus<u64>> {
    let capacity = |cpu| fs.number(format!("{CPUS}/cpu{cpu}/cpu_capacity"));
    if online.iter().next().and_then(capacity).is_none() {
        return Vec::new();
    }
    OnCpus::gather(online.iter().filter_map(|cpu| Some((CpuSet::from_iter([cpu]), capacity(cpu)?))))
}

/// The CPUs that share a core, for each core with several; each core is read once.
fn siblings(fs: &HostFs, online: &CpuSet) -> Vec<CpuSet> {
    let groups = sharing(online, |cpu| core_of(fs, cpu));
    groups.into_iter().filter(|core| core.len() > 1).collect()
}

/// The CPUs at this place, as seen from `cpu`; empty where the machine has none, or does not tell.
pub fn cpus_at(fs: &HostFs, cpu: u32, place: CpuPlace) -> CpuSet {
    let core = core_of(fs, cpu).unwrap_or_else(|| [cpu].into_iter().collect());
    let found = match place {
        CpuPlace::Sibling => Some(core.minus(&[cpu].into_iter().collect())),
        CpuPlace::SameCache => last_level_cache_of(fs, cpu).map(|cache| cache.minus(&core)),
        CpuPlace::OtherSocket => {
            let socket = |name: &str| fs.cpu_list(&format!("{CPUS}/cpu{cpu}/topology/{name}"));
            let online = fs.cpu_list(&format!("{CPUS}/online"));
            // The second name is that of kernels before 5.3.
            let socket = socket("package_cpus_list").or_else(|| socket("core_siblings_list"));
            online.zip(socket).map(|(online, socket)| online.minus(&socket))
        }
    };
    found.unwrap_or_default()
}

fn core_of(fs: &HostFs, cpu: u32) -> Option<CpuSet> {
    fs.cpu_list(&format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list"))
}

fn last_level_cache_of(fs: &HostFs, cpu: u32) -> Option<CpuSet> {
    // Indices ascend with the level (Documentation/ABI/testing/sysfs-devices-system-cpu).
    let last = fs.numbered(&format!("{CPUS}/cpu{cpu}/cache"), "index").into_iter().next_back()?;
    fs.cpu_list(&format!("{CPUS}/cpu{cpu}/cache/index{last}/shared_cpu_list"))
}

fn last_level_caches(fs: &HostFs, online: &CpuSet) -> Vec<CpuSet> {
    sharing(online, |cpu| last_level_cache_of(fs, cpu))
}

/// The groups of resctrl with the root group (Documentation/filesystems/resctrl.rst).
fn cache_groups(fs: &HostFs, cpuinfo: &str) -> Option<u64> {
    let dir = "sys/fs/resctrl";
    let is_able = field(cpuinfo, "flags")?.split(' ').any(|flag| flag == "cat_l3");
    let is_group = |name: &&String| fs.exists(format!("{dir}/{name}/schemata"));
    let count = || fs.names(dir).iter().filter(is_group).count() + usize::from(fs.exists(format!("{dir}/schemata")));
    is_able.then(|| u64::try_from(count()).unwrap_or(u64::MAX))
}

/// Groups of CPUs: the group of each CPU that is in no earlier group.
fn sharing(online: &CpuSet, group_of: impl Fn(u32) -> Option<CpuSet>) -> Vec<CpuSet> {
    let (mut groups, mut seen) = (Vec::new(), CpuSet::default());
    for cpu in online.iter() {
        if !seen.contains(cpu)
            && let Some(group) = group_of(cpu)
        {
            seen.extend(group.iter());
            groups.push(group);
        }
    }
    groups
}

fn caches_of(fs: &HostFs, cpu: u32) -> Vec<Cache> {
    let dir = format!("{CPUS}/cpu{cpu}/cache");
    let cache = |index: u32| {
        let of = |name: &str| format!("{dir}/index{index}/{name}");
        Some(Cache {
            level: fs.number(of("level"))?,
            kind: fs.text(of("type")),
            size_bytes: fs.text(of("size")).and_then(|size| kib(&size)),
            cpus: fs.cpu_list(&of("shared_cpu_list")),
        })
    };
    fs.numbered(&dir, "index").into_iter().filter_map(cache).collect()
}

/// Converts `32K` or `36864 kB` to bytes.
fn kib(text: &str) -> Option<u64> {
    let number = text.trim_end_matches(['K', 'k', 'B', ' ']);
    number.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn memory_node(fs: &HostFs, node: u32) -> MemoryNode {
    let dir = format!("sys/devices/system/node/node{node}");
    // "Node 0 MemTotal:  18966740 kB"
    let meminfo = fs.text(format!("{dir}/meminfo")).unwrap_or_default();
    let total = meminfo.lines().find_map(|line| line.split_once("MemTotal:")).and_then(|(_, size)| kib(size));
    MemoryNode { node, cpus: fs.cpu_list(&format!("{dir}/cpulist")), memory_bytes: total }
}

fn vulnerabilities(fs: &HostFs) -> BTreeMap<String, String> {
    let dir = "sys/devices/system/cpu/vulnerabilities";
    let named = fs.names(dir).into_iter().filter_map(|name| Some((fs.text(format!("{dir}/{name}"))?, name)));
    named.filter(|(state, _)| state != "Not affected").map(|(state, name)| (name, state)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn places_are_seen_from_a_cpu() {
        let scratch = Scratch::make();
        let fs = scratch.machine();
        scratch.file(&format!("{CPUS}/online"), "0-7\n");
        scratch.file(&format!("{CPUS}/cpu2/topology/thread_siblings_list"), "2,6\n");
        scratch.file(&format!("{CPUS}/cpu2/topology/core_siblings_list"), "0,2,4,6\n");
        scratch.file(&format!("{CPUS}/cpu2/cache/index0/shared_cpu_list"), "2,6\n");
        scratch.file(&format!("{CPUS}/cpu2/cache/index3/shared_cpu_list"), "0,2,4,6\n");
        for (place, there) in
            [(CpuPlace::Sibling, "6"), (CpuPlace::SameCache, "0,4"), (CpuPlace::OtherSocket, "1,3,5,7")]
        {
            assert_eq!(cpus_at(&fs, 2, place).to_string(), there);
            assert_eq!(cpus_at(&fs, 3, place), CpuSet::default(), "the machine does not tell");
        }
    }
}
