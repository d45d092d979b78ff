//! The present state of the machine: its load, free memory, CPUs, and the offsets of its clocks.

use super::HostFs;
use punctual_model::{ClockId, CpuSet};

/// `/proc/loadavg`, verbatim: three averages, running and existing threads, the last pid (proc_loadavg(5)).
pub fn load_average(fs: &HostFs) -> Option<String> {
    fs.text("proc/loadavg")
}

/// Numbers of present and of online CPUs; `None` where the kernel does not report them.
pub fn configured_cpus(fs: &HostFs) -> (Option<usize>, Option<usize>) {
    let count = |name: &str| {
        let cpus: CpuSet = fs.text(format!("sys/devices/system/cpu/{name}"))?.parse().ok()?;
        Some(cpus.len())
    };
    (count("present"), count("online"))
}

/// The memory node of `cpu`: the one `nodeN` in its directory. `None` without NUMA.
pub fn node_of_cpu(fs: &HostFs, cpu: u32) -> Option<u32> {
    let entries = std::fs::read_dir(fs.root.join(format!("sys/devices/system/cpu/cpu{cpu}"))).ok()?;
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok();
    entries.flatten().find_map(number)
}

/// Memory, bytes, that could be used without swapping (`MemAvailable` of proc_meminfo(5)).
pub fn memory_available_bytes() -> Option<u64> {
    let text = HostFs::here().text("proc/meminfo")?;
    let kib = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?.trim().strip_suffix("kB")?;
    kib.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// `clock - CLOCK_MONOTONIC`, ns: of a few readings the shortest, so that a preemption between the two clocks does not
/// look like a step. NTP slews both alike, so it changes only when the clock is set.
pub fn offset_from_monotonic_ns(clock: ClockId) -> i64 {
    let reading = |_| {
        let before = punctual_sys::clock::monotonic();
        let there = punctual_sys::clock::now(clock);
        let took = punctual_sys::clock::monotonic().since(before).0;
        (took, there.0.cast_signed().wrapping_sub(before.0.cast_signed()))
    };
    (0..5).map(reading).min_by_key(|(took, _)| *took).map_or(0, |(_, distance)| distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_says_nothing_is_unknown() {
        let nowhere = HostFs { root: "/nonexistent".into() };
        assert_eq!((load_average(&nowhere), node_of_cpu(&nowhere, 0)), (None, None));
        assert_eq!(configured_cpus(&nowhere), (None, None));
    }

    #[test]
    fn this_machine_has_a_load_and_at_least_one_cpu() {
        let here = HostFs::here();
        assert_eq!(load_average(&here).unwrap().split(' ').count(), 5);
        let (present, online) = configured_cpus(&here);
        assert!(present >= online && online >= Some(1), "{present:?} {online:?}");
    }
}
