//! The share of CPU time that the kernel leaves to normal threads, and settings that take it away.

use super::Prepare;

/// Defaults of `sched_rt_period_us` and `sched_rt_runtime_us`.
const USUAL_RT_PERIOD_US: i64 = 1_000_000;
const USUAL_RT_RUNTIME_US: i64 = 950_000;

/// A number as the kernel reads it: decimal, 0x for hexadecimal, 0 for octal.
fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.trim_start_matches(['-', '+']);
    let (digits, base) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None if digits.starts_with('0') && digits.len() > 1 => (&digits[1..], 8),
        None => (digits, 10),
    };
    let value = i64::from_str_radix(digits, base).ok()?;
    Some(if text.starts_with('-') { -value } else { value })
}

impl Prepare {
    /// The setting, as it is typed, that lets real-time threads use all CPU time: no limit, one of the whole period, or
    /// no server for normal threads (Linux 6.12).
    pub fn without_realtime_limit(&self) -> Option<String> {
        // A file has several names. Of each that is typed: its value as the kernel reads it, -1 where it would refuse.
        let named = |ends: &str| -> Vec<(String, i64)> {
            let is_it = |key: &str| Prepare::file_of(key).is_some_and(|path| path.ends_with(ends));
            let files = self.files.iter().filter(|(key, _)| is_it(key));
            files.map(|(key, value)| (key.clone(), number(value).unwrap_or(-1))).collect()
        };
        let is_whole = |us: i64, period_us: i64| us < 0 || us >= period_us;
        let typed = self.rt_runtime_us.map(|us| ("rt_runtime".to_owned(), us));
        let mut runtimes: Vec<_> = typed.into_iter().chain(named("/sched_rt_runtime_us")).collect();
        let shortest = named("/sched_rt_period_us").into_iter().min_by_key(|(_, us)| *us);
        let period_us = shortest.as_ref().map_or(USUAL_RT_PERIOD_US, |(_, us)| *us);
        if runtimes.is_empty() {
            // A shorter period may be no longer than the time that is left as it is.
            runtimes.extend(shortest.map(|(key, _)| (key, USUAL_RT_RUNTIME_US)));
        }
        let whole = runtimes.into_iter().filter(|(_, us)| is_whole(*us, period_us));
        let groups = named("/cpu.rt_runtime_us").into_iter().filter(|(_, us)| is_whole(*us, USUAL_RT_PERIOD_US));
        let is_server = |key: &str| key.contains("/fair_server/");
        let servers = named("/runtime").into_iter().filter(|(key, ns)| is_server(key) && *ns < 1);
        whole.chain(groups).chain(servers).map(|(key, _)| key).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lets_realtime_threads_use_all_cpu_time_is_named() {
        let named = |text: &str| {
            let mut prepare = Prepare::default();
            prepare.set_all(text).unwrap();
            prepare.without_realtime_limit()
        };
        for text in [
            "rt_runtime=unlimited",
            "rt_runtime=1s",
            "sysctl:kernel.sched_rt_runtime_us=-1",
            "sysctl:kernel/sched_rt_runtime_us=-0x1",
            "sysctl:kernel.sched_rt_runtime_us=1000000",
            "sysctl:kernel.sched_rt_runtime_us=0xf4240",
            "sysctl:kernel.sched_rt_runtime_us=all",
            "/proc/sys/kernel/sched_rt_runtime_us=-1",
            "sysctl:kernel.sched_rt_period_us=950000",
            "/sys/fs/cgroup/cpu/cpu.rt_runtime_us=-1",
            "/sys/fs/cgroup/cpu/robot/cpu.rt_runtime_us=-1",
            "/sys/kernel/debug/sched/fair_server/cpu0/runtime=0",
        ] {
            assert_eq!(named(text).as_deref(), text.split('=').next(), "{text}");
        }
        let twice = "/proc/sys/kernel/sched_rt_runtime_us=-1,sysctl:kernel.sched_rt_runtime_us=500000";
        assert_eq!(named(twice).as_deref(), Some("/proc/sys/kernel/sched_rt_runtime_us"));
        let both = "rt_runtime=400ms,sysctl:kernel.sched_rt_period_us=400000";
        assert_eq!(named(both).as_deref(), Some("rt_runtime"));
        for text in [
            "governor=performance",
            "rt_runtime=950ms",
            "rt_runtime=0us",
            "sysctl:kernel.sched_rt_runtime_us=0",
            "sysctl:kernel.sched_rt_runtime_us=999999",
            "rt_runtime=1s,sysctl:kernel.sched_rt_period_us=2000000",
            "sysctl:kernel.sched_rt_period_us=2000000",
            "/sys/fs/cgroup/cpu/cpu.rt_runtime_us=500000",
            "/sys/kernel/debug/sched/fair_server/cpu0/runtime=50000000",
            "sysctl:vm.stat_interval=-1",
        ] {
            assert_eq!(named(text), None, "{text}");
        }
    }
}
