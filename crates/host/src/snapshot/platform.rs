//! Reading the platform below the kernel.

use crate::HostFs;
use crate::SmiCounter;
use punctual_model::{CpuSet, Platform, ThermalZone};

/// Milliseconds a tick of `/proc/stat`: `USER_HZ` is 100 on every architecture Linux still has (asm-generic/param.h).
const TICK_MS: u64 = 10;

/// Maximum number of zones read: some are slow.
const MAX_ZONES: usize = 32;

pub(super) fn read(fs: &HostFs, online: &CpuSet) -> Platform {
    let dmi = |name: &str| fs.text(format!("sys/class/dmi/id/{name}"));
    let joined = |names: [&str; 2]| {
        let texts: Vec<_> = names.into_iter().filter_map(dmi).collect();
        (!texts.is_empty()).then(|| texts.join(" "))
    };
    let (steal_ms, cpu_time_ms) = cpu_time(&fs.text("proc/stat").unwrap_or_default());
    Platform {
        machine: joined(["sys_vendor", "product_name"]).or_else(|| fs.text("proc/device-tree/model")),
        firmware: joined(["bios_version", "bios_date"]),
        smi_count: online.iter().next().and_then(|cpu| SmiCounter::open_below(fs, cpu).ok()?.count().ok()),
        steal_ms,
        cpu_time_ms,
        throttle_events: throttle_events(fs, online),
        hottest: hottest(fs),
    }
}

/// Steal and the sum of all times of the line `cpu` (proc_stat(5)); guest time is part of user time.
fn cpu_time(stat: &str) -> (Option<u64>, Option<u64>) {
    let line = stat.lines().next().and_then(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    let ticks: Option<Vec<u64>> = line.split_whitespace().take(8).map(|ticks| ticks.parse().ok()).collect();
    let ticks = ticks.filter(|ticks| ticks.len() == 8).unwrap_or_default();
    let ms = |ticks: u64| ticks.saturating_mul(TICK_MS);
    let all = ticks.iter().fold(0_u64, |sum, ticks| sum.saturating_add(*ticks));
    (ticks.last().copied().map(ms), (!ticks.is_empty()).then(|| ms(all)))
}

/// Events of the cores, and the largest count of a package; only Intel CPUs count them.
fn throttle_events(fs: &HostFs, online: &CpuSet) -> Option<u64> {
    let count = |cpu: u32, of: &str| {
        fs.number::<u64>(format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{of}_throttle_count"))
    };
    online.iter().next().and_then(|cpu| count(cpu, "core"))?;
    let of_cores = online.iter().filter_map(|cpu| count(cpu, "core")).fold(0_u64, u64::saturating_add);
    let of_packages = online.iter().filter_map(|cpu| count(cpu, "package")).max().unwrap_or(0);
    Some(of_cores.saturating_add(of_packages))
}

fn hottest(fs: &HostFs) -> Option<ThermalZone> {
    let dir = "sys/class/thermal";
    let zones = fs.numbered(dir, "thermal_zone").into_iter().take(MAX_ZONES);
    let temperatures = zones.filter_map(|zone| Some((fs.number(format!("{dir}/thermal_zone{zone}/temp"))?, zone)));
    let (millicelsius, zone) = temperatures.max()?;
    let of = |name: &str| format!("{dir}/thermal_zone{zone}/{name}");
    let limits = (0..16).map_while(|trip| {
        let kind = fs.text(of(&format!("trip_point_{trip}_type")))?;
        Some(fs.number::<i64>(of(&format!("trip_point_{trip}_temp"))).filter(|limit| kind != "active" && *limit > 0))
    });
    Some(ThermalZone { kind: fs.text(of("type")), millicelsius, limit_millicelsius: limits.flatten().min() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_and_all_time_are_summed() {
        assert_eq!(cpu_time("cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1"), (Some(800), Some(3600)));
        for text in ["", "cpu  1 2", "cpu0 1 2 3 4 5 6 7 8", "cpu  a b c d e f g h"] {
            assert_eq!(cpu_time(text), (None, None), "{text}");
        }
        let most = format!("cpu {}", format!("{} ", u64::MAX).repeat(8));
        assert_eq!(cpu_time(&most), (Some(u64::MAX), Some(u64::MAX)));
    }
}
