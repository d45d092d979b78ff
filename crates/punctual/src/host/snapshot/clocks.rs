//! Reading clock sources and timers.

use super::read::field;
use crate::host::HostFs;
use model::{Clocks, CpuSet, OnCpus};

pub(super) fn read(fs: &HostFs, cpuinfo: &str, online: &CpuSet) -> Clocks {
    let available = fs.text("sys/devices/system/clocksource/clocksource0/available_clocksource").unwrap_or_default();
    // The names of clockevents count CPUs.
    let device = |cpu| fs.text(format!("sys/devices/system/clockevents/clockevent{cpu}/current_device"));
    let devices = online.iter().filter_map(|cpu| Some((CpuSet::from_iter([cpu]), device(cpu)?)));
    Clocks {
        available: available.split_whitespace().map(str::to_owned).collect(),
        tsc_is_invariant: tsc_is_invariant(cpuinfo),
        timer_devices: OnCpus::gather(devices),
    }
}

/// By the flags of the first CPU: one rate in all frequencies and in all idle states.
fn tsc_is_invariant(cpuinfo: &str) -> Option<bool> {
    let flags: Vec<&str> = field(cpuinfo, "flags")?.split(' ').collect();
    flags.contains(&"tsc").then(|| flags.contains(&"constant_tsc") && flags.contains(&"nonstop_tsc"))
}
