//! Settings of this machine that may be worth trying, and that a cell can change and put back.

use super::plan;
use crate::HostFs;
use punctual_model::{CpuSet, Prepare};

/// Settings and the values to try, most promising first.
const TRIED: &[(&str, &str)] = &[
    ("governor", "performance"),
    ("irq_cpus", "others"),
    ("housekeeping_cpus", "others"),
    ("irqbalance", "pause"),
    ("transparent_hugepages", "never"),
    ("timer_migration", "off"),
];

/// The settings among those known to matter for the CPUs `measured` that this machine has and that have another value
/// now, with the value to try.
pub fn knobs(fs: &HostFs, measured: &CpuSet) -> Vec<(&'static str, &'static str)> {
    let is_tried = |(key, value): &&(&str, &str)| {
        let mut prepare = Prepare::default();
        prepare.set(key, value).is_ok() && changes_something(fs, &prepare, measured)
    };
    TRIED.iter().filter(is_tried).copied().collect()
}

/// Whether this machine has these settings, and any of them has another value now.
pub fn changes_something(fs: &HostFs, prepare: &Prepare, measured: &CpuSet) -> bool {
    plan::changes(fs, prepare, measured).is_ok_and(|changes| !changes.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn only_what_would_change_something_is_tried() {
        let scratch = Scratch::make();
        let fs = scratch.machine();
        let measured: CpuSet = "1".parse().unwrap();
        assert_eq!(knobs(&fs, &measured), []);
        scratch.file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        scratch.file("proc/sys/kernel/timer_migration", "1\n");
        scratch.file("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n");
        assert_eq!(knobs(&fs, &measured), [("transparent_hugepages", "never"), ("timer_migration", "off")]);
        scratch.file("proc/sys/kernel/timer_migration", "0\n");
        assert_eq!(knobs(&fs, &measured), [("transparent_hugepages", "never")]);
    }
}
