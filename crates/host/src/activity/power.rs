//! Electrical power, where reading it does not disturb the measured CPUs.

use crate::HostFs;
use punctual_model::{CpuSet, Span};

const POWERCAP: &str = "sys/class/powercap";
const HWMON: &str = "sys/class/hwmon";
const SUPPLIES: &str = "sys/class/power_supply";

/// The meter of this machine.
#[derive(Debug)]
pub(super) enum Meter {
    /// Counters of energy, uJ, with the value after which each begins again at 0 (powercap.rst).
    Counters(Vec<(String, u64)>),
    /// Readings of power, uW (sysfs-interface.rst of hwmon).
    Readings(Vec<String>),
    /// Directories of batteries (ABI/testing/sysfs-class-power).
    Batteries(Vec<String>),
    /// There is none, or it cannot be read.
    Unknown,
}

impl Meter {
    /// The first of: processor packages, meters of the machine, batteries. The kernel reads the counter of a package by
    /// interrupting its first CPU, so packages are left out if that of this machine is measured.
    pub(super) fn find(fs: &HostFs, measured: &CpuSet) -> Meter {
        let online: Option<CpuSet> = fs.text("sys/devices/system/cpu/online").and_then(|list| list.parse().ok());
        let first = online.and_then(|online| online.iter().next());
        let is_free = first.is_some_and(|first| measured.iter().all(|cpu| cpu != first));
        // `intel-rapl:0` is a package, `intel-rapl:0:1` a part of it.
        let is_package = |name: &String| {
            let number = name.strip_prefix("intel-rapl:").or_else(|| name.strip_prefix("amd-rapl:"));
            number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let counter = |name: String| {
            let dir = format!("{POWERCAP}/{name}");
            // The whole platform (psys) holds the packages.
            fs.text(format!("{dir}/name")).filter(|name| name.starts_with("package"))?;
            let _readable: u64 = fs.number(format!("{dir}/energy_uj"))?;
            Some((format!("{dir}/energy_uj"), fs.number(format!("{dir}/max_energy_range_uj"))?))
        };
        let counters: Vec<_> = fs.names_in(POWERCAP).into_iter().filter(is_package).filter_map(counter).collect();
        if is_free && !counters.is_empty() {
            return Meter::Counters(counters);
        }
        let mut readings = Vec::new();
        for device in fs.names_in(HWMON) {
            let dir = format!("{HWMON}/{device}");
            let is_reading = |name: &String| name.starts_with("power") && name.ends_with("_input");
            readings.extend(fs.names_in(&dir).into_iter().filter(is_reading).map(|name| format!("{dir}/{name}")));
        }
        readings.retain(|path| fs.number::<u64>(path).is_some());
        if !readings.is_empty() {
            return Meter::Readings(readings);
        }
        let batteries = fs.names_in(SUPPLIES).into_iter().map(|name| format!("{SUPPLIES}/{name}"));
        let is_battery = |dir: &String| {
            let is = |file: &str, value: &str| fs.text(format!("{dir}/{file}")).as_deref() == Some(value);
            // That of a mouse does not supply the machine.
            is("type", "Battery") && !is("scope", "Device")
        };
        let batteries: Vec<String> = batteries.filter(is_battery).collect();
        if batteries.is_empty() { Meter::Unknown } else { Meter::Batteries(batteries) }
    }

    /// The counters now, uJ; empty for other meters.
    pub(super) fn counters(&self, fs: &HostFs) -> Vec<Option<u64>> {
        let Meter::Counters(counters) = self else { return Vec::new() };
        counters.iter().map(|(path, _)| fs.number(path)).collect()
    }

    /// The power, mW, with the counters now and those `elapsed` ago; `None` while it is unknown.
    pub(super) fn power_mw(
        &self,
        fs: &HostFs,
        now: &[Option<u64>],
        before: &[Option<u64>],
        elapsed: Span,
    ) -> Option<u64> {
        match self {
            Meter::Counters(counters) => {
                let mut uj: u128 = 0;
                for (((_, range), now), before) in counters.iter().zip(now).zip(before) {
                    let (now, before) = ((*now)?, (*before)?);
                    let around = if now < before { u128::from(*range) } else { 0 };
                    uj += (u128::from(now) + around).checked_sub(u128::from(before))?;
                }
                // uJ / ns = 10^3 W.
                u64::try_from((uj * 1_000_000).checked_div(u128::from(elapsed.ns()))?).ok()
            }
            Meter::Readings(paths) => {
                let sum: Option<u64> = paths.iter().map(|path| fs.number::<u64>(path)).sum();
                Some(sum? / 1000)
            }
            Meter::Batteries(dirs) => {
                let sum: Option<u64> = dirs.iter().map(|dir| battery_uw(fs, dir)).sum();
                Some(sum? / 1000)
            }
            Meter::Unknown => None,
        }
    }
}

/// The power that a battery gives, uW; `None` unless it discharges.
fn battery_uw(fs: &HostFs, dir: &str) -> Option<u64> {
    fs.text(format!("{dir}/status")).filter(|status| status == "Discharging")?;
    let number = |name: &str| fs.number::<i64>(format!("{dir}/{name}")).map(i64::unsigned_abs);
    let product = || Some(number("current_now")?.checked_mul(number("voltage_now")?)? / 1_000_000);
    number("power_now").or_else(product)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    fn power(scratch: &Scratch, measured: &str, later: impl Fn()) -> Option<u64> {
        let fs = scratch.machine();
        let meter = Meter::find(&fs, &measured.parse().unwrap());
        let before = meter.counters(&fs);
        later();
        meter.power_mw(&fs, &meter.counters(&fs), &before, Span(2_000_000_000))
    }

    #[test]
    fn packages_are_read_unless_that_interrupts_a_measured_cpu() {
        let scratch = Scratch::make();
        let set = |path: &str, value: &str| drop(scratch.file(path, format!("{value}\n")));
        assert_eq!(power(&scratch, "1", || ()), None, "a machine without a meter");
        set("sys/devices/system/cpu/online", "0-3");
        for (zone, name) in [("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "core"), ("intel-rapl:1", "psys")] {
            set(&format!("{POWERCAP}/{zone}/name"), name);
            set(&format!("{POWERCAP}/{zone}/energy_uj"), "1000000");
            set(&format!("{POWERCAP}/{zone}/max_energy_range_uj"), "262143328850");
        }
        let package = format!("{POWERCAP}/intel-rapl:0/energy_uj");
        assert_eq!(power(&scratch, "1-3", || set(&package, "25000000")), Some(12_000), "24 J in 2 s");
        set(&package, "262143000000");
        assert_eq!(power(&scratch, "1-3", || set(&package, "1671150")), Some(1_000), "past its range");
        assert_eq!(power(&scratch, "1-3", || drop(std::fs::remove_file(scratch.path(&package)))), None, "gone");
        set(&package, "1");
        assert_eq!(power(&scratch, "0-3", || ()), None, "CPU 0 is measured");
        set(&format!("{HWMON}/hwmon0/power1_input"), "4500000");
        set(&format!("{HWMON}/hwmon0/power1_max"), "9000000");
        set(&format!("{HWMON}/hwmon2/power2_input"), "500000");
        assert_eq!(power(&scratch, "0-3", || ()), Some(5_000), "meters of the machine");
    }

    #[test]
    fn a_battery_tells_while_it_discharges() {
        let scratch = Scratch::make();
        let set = |path: &str, value: &str| drop(scratch.file(&format!("{SUPPLIES}/{path}"), format!("{value}\n")));
        for (path, value) in [("AC/type", "Mains"), ("BAT0/type", "Battery"), ("BAT0/status", "Discharging")] {
            set(path, value);
        }
        for (path, value) in [("mouse/type", "Battery"), ("mouse/scope", "Device"), ("mouse/status", "Discharging")] {
            set(path, value);
        }
        assert_eq!(power(&scratch, "0", || ()), None);
        set("BAT0/current_now", "-1500000");
        set("BAT0/voltage_now", "12000000");
        assert_eq!(power(&scratch, "0", || ()), Some(18_000));
        set("BAT0/power_now", "17000000");
        assert_eq!(power(&scratch, "0", || ()), Some(17_000));
        set("BAT0/status", "Charging");
        assert_eq!(power(&scratch, "0", || ()), None, "what it takes is not what the machine needs");
    }
}
