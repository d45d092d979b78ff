//! Frequency, temperature and firmware interrupts, where reading them does not disturb the measured CPUs.

use crate::HostFs;
use crate::SmiCounter;
use punctual_model::CpuSet;

/// Sensors that can be read on this machine during a measurement.
#[derive(Debug)]
pub(super) struct Sensors {
    /// Files of temperatures.
    zones: Vec<String>,
    reads_frequency: bool,
    /// Counter of a CPU that is not measured: the firmware interrupts all of them at once.
    smis: Option<SmiCounter>,
}

/// The thermal zone of an x86 package: the kernel reads its sensor by interrupting a CPU of it (drivers/thermal/intel).
const INTERRUPTING_ZONE: &str = "x86_pkg_temp";
/// Release since which an x86 kernel keeps frequencies from its ticks; before, reading one interrupted the CPU
/// (arch/x86/kernel/cpu/aperfmperf.c).
const FREQUENCY_WITHOUT_INTERRUPT: (u32, u32) = (5, 18);

impl Sensors {
    pub(super) fn find(fs: &HostFs, measured: &CpuSet) -> Sensors {
        let names = fs.names_in("sys/class/thermal").into_iter();
        let zones =
            names.filter(|name| name.starts_with("thermal_zone")).map(|name| format!("sys/class/thermal/{name}"));
        let is_quiet = |zone: &String| fs.text(format!("{zone}/type")).is_some_and(|kind| kind != INTERRUPTING_ZONE);
        Sensors {
            zones: zones.filter(is_quiet).map(|zone| format!("{zone}/temp")).collect(),
            reads_frequency: !cfg!(target_arch = "x86_64") || release(fs) >= Some(FREQUENCY_WITHOUT_INTERRUPT),
            smis: smi_counter(fs, measured),
        }
    }

    pub(super) fn temperature_mc(&self, fs: &HostFs) -> Option<i64> {
        self.zones.iter().filter_map(|zone| fs.number(zone)).max()
    }

    pub(super) fn frequency_khz(&self, fs: &HostFs, measured: &CpuSet) -> Option<u64> {
        let path = |cpu: u32| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
        measured.iter().filter(|_| self.reads_frequency).filter_map(|cpu| fs.number(path(cpu))).min()
    }

    pub(super) fn smis(&self) -> Option<u64> {
        self.smis.as_ref()?.count().ok()
    }
}

/// The counter of a CPU that is not measured: reading it interrupts that CPU.
pub(super) fn smi_counter(fs: &HostFs, measured: &CpuSet) -> Option<SmiCounter> {
    let online: CpuSet = fs.text("sys/devices/system/cpu/online")?.parse().ok()?;
    SmiCounter::open(online.minus(measured).iter().next()?).ok()
}

/// Number of heat throttling events of the CPUs; `None` when none of them counts it.
pub(super) fn heat_throttlings(fs: &HostFs, measured: &CpuSet) -> Option<u64> {
    let path = |cpu: u32| format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count");
    let counts: Vec<u64> = measured.iter().filter_map(|cpu| fs.number(path(cpu))).collect();
    (!counts.is_empty()).then(|| counts.iter().fold(0, |sum: u64, n| sum.saturating_add(*n)))
}

fn release(fs: &HostFs) -> Option<(u32, u32)> {
    let release = fs.text("proc/sys/kernel/osrelease")?;
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn only_what_interrupts_nobody_is_read() {
        let scratch = Scratch::make();
        let fs = scratch.machine();
        let set = |path: &str, value: &str| drop(scratch.file(path, value));
        set("sys/class/thermal/thermal_zone0/type", "acpitz\n");
        set("sys/class/thermal/thermal_zone0/temp", "27800\n");
        set("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n");
        set("sys/class/thermal/thermal_zone1/temp", "91000\n");
        for (cpu, khz) in [(0, "800000"), (1, "3400000"), (2, "2000000")] {
            set(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"), khz);
        }
        set("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "3");
        let measured: CpuSet = "1-2".parse().unwrap();
        for (release, khz) in [("6.1.0-21-amd64", Some(2_000_000)), ("5.10.0-8-amd64", None)] {
            set("proc/sys/kernel/osrelease", release);
            let sensors = Sensors::find(&fs, &measured);
            assert_eq!(sensors.temperature_mc(&fs), Some(27_800));
            if cfg!(target_arch = "x86_64") {
                assert_eq!(sensors.frequency_khz(&fs, &measured), khz, "{release}");
            }
        }
        assert_eq!((heat_throttlings(&fs, &measured), heat_throttlings(&fs, &CpuSet::default())), (Some(3), None));
    }
}
