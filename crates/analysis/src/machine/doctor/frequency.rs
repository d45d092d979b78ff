//! Checks of frequency scaling and temperature.

use super::{Check, Outcome, text};
use punctual_model::{CpuSet, FrequencyPolicy, Host, OnCpus};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "governor",
        why: "A CPU that was idle begins at a low frequency, and changing it takes time: the first work after a sleep is the \
              slowest.",
        source: "Documentation/admin-guide/pm/cpufreq.rst, core-api/real-time/kernel-configuration.rst (CPU_FREQ: high)",
        examine: governor,
    },
    Check {
        name: "frequency-limit",
        why: "Below its full frequency a CPU takes longer for every part of a wake-up.",
        source: "Documentation/admin-guide/pm/cpufreq.rst (scaling_max_freq)",
        examine: frequency_limit,
    },
    Check {
        name: "energy-preference",
        why: "Where the hardware selects the frequency, this preference sets how fast it raises it.",
        source: "Documentation/admin-guide/pm/intel_pstate.rst and amd-pstate.rst (energy_performance_preference)",
        examine: energy_preference,
    },
    Check {
        name: "turbo",
        why: "Above the nominal frequency, the speed of a CPU depends on its neighbors and its temperature, and \
              changes from second to second.",
        source: "Documentation/admin-guide/pm/intel_pstate.rst (no_turbo), cpufreq.rst (boost)",
        examine: turbo,
    },
    Check {
        name: "power-daemon",
        why: "A power management daemon resets governors and limits after they were changed.",
        source: "tuned(8), thermald(8), powerprofilesctl(1)",
        examine: power_daemon,
    },
    Check {
        name: "thermal-throttling",
        why: "A CPU that is too hot is throttled or briefly stopped by the hardware, whatever the kernel sets.",
        source: "Documentation/ABI/testing/sysfs-devices-system-cpu (thermal_throttle)",
        examine: thermal_throttling,
    },
    Check {
        name: "temperature",
        why: "Near the limit the kernel or the hardware will slow the CPUs down soon.",
        source: "Documentation/driver-api/thermal/sysfs-api.rst",
        examine: temperature,
    },
];

const POLICIES: &str = "/sys/devices/system/cpu/cpufreq/policy*";

/// Values of these policies, each once with its CPUs: `CPUs 0-3 powersave`.
fn values_by_cpus(policies: &[&OnCpus<FrequencyPolicy>], value: impl Fn(&FrequencyPolicy) -> Option<String>) -> String {
    let values = policies.iter().filter_map(|on| Some((on.cpus.clone(), value(&on.value)?)));
    let values = OnCpus::gather(values).into_iter().map(|on| format!("{} {}", text::cpus(&on.cpus), on.value));
    values.collect::<Vec<_>>().join(", ")
}

/// Adds commands that write `wanted` to `file` of each policy, and commands that restore `before`.
fn write_each(
    outcome: Outcome,
    host: &Host,
    policies: &[&OnCpus<FrequencyPolicy>],
    file: &str,
    wanted: impl Fn(&FrequencyPolicy) -> Option<String>,
    before: impl Fn(&FrequencyPolicy) -> Option<String>,
) -> Outcome {
    let commands = |value: &dyn Fn(&FrequencyPolicy) -> Option<String>| {
        let values = policies.iter().filter_map(|on| Some((on.cpus.clone(), value(&on.value)?)));
        let groups = OnCpus::gather(values);
        let is_all = policies.len() == host.power.frequency.len();
        match groups.as_slice() {
            [one] if is_all => format!("echo {} | tee {POLICIES}/{file}", one.value),
            groups => groups.iter().map(|on| write_on(&on.cpus, file, &on.value)).collect::<Vec<_>>().join("; "),
        }
    };
    outcome.change(commands(&wanted), commands(&before))
}

fn write_on(cpus: &CpuSet, file: &str, value: &str) -> String {
    let cpus = text::words(&cpus.to_string());
    format!("for cpu in {cpus}; do echo {value} > /sys/devices/system/cpu/cpu$cpu/cpufreq/{file}; done")
}

const NO_SCALING: &str = "no frequency scaling here: hardware, firmware or hypervisor decides";

fn governor(host: &Host) -> Outcome {
    let policies = &host.power.frequency;
    if policies.is_empty() {
        // Hosts recorded by older versions have governors but no policies.
        return match host.governors.iter().find(|governor| *governor != "performance") {
            None if host.governors.is_empty() => Outcome::not_here(NO_SCALING),
            None => Outcome::ok("performance"),
            Some(other) => {
                let file = format!("{POLICIES}/scaling_governor");
                Outcome::will(other.clone()).write_all(&file, "performance", other)
            }
        };
    }
    let is_fixed = |policy: &FrequencyPolicy| policy.min_khz.is_some() && policy.min_khz == policy.max_khz;
    let is_good = |policy: &FrequencyPolicy| policy.governor.as_deref() == Some("performance") || is_fixed(policy);
    let (known, unknown): (Vec<_>, Vec<_>) = policies.iter().partition(|on| on.value.governor.is_some());
    let other: Vec<_> = known.iter().copied().filter(|on| !is_good(&on.value)).collect();
    let governor = |policy: &FrequencyPolicy| policy.governor.clone();
    if !other.is_empty() {
        let performance = |_: &FrequencyPolicy| Some("performance".to_owned());
        let found = Outcome::will(values_by_cpus(&other, governor));
        return write_each(found, host, &other, "scaling_governor", performance, governor);
    }
    if unknown.is_empty() {
        Outcome::ok(values_by_cpus(&known, governor))
    } else {
        Outcome::unknown("the governor cannot be read")
    }
}

fn frequency_limit(host: &Host) -> Outcome {
    let policies = &host.power.frequency;
    if policies.is_empty() {
        return Outcome::not_here(NO_SCALING);
    }
    let both = |policy: &FrequencyPolicy| Some((policy.max_khz?, policy.hardware_max_khz?));
    let is_limited = |policy: &FrequencyPolicy| both(policy).is_some_and(|(limit, most)| limit < most);
    let limited: Vec<_> = policies.iter().filter(|on| is_limited(&on.value)).collect();
    if limited.is_empty() {
        let is_known = policies.iter().all(|on| both(&on.value).is_some());
        return if is_known { Outcome::ok("none") } else { Outcome::unknown("the limits cannot be read") };
    }
    let mhz = |(limit, most): (u64, u64)| format!("{} of {} MHz", limit / 1000, most / 1000);
    write_each(
        Outcome::may(values_by_cpus(&limited, |policy| both(policy).map(mhz))),
        host,
        &limited,
        "scaling_max_freq",
        |policy| policy.hardware_max_khz.map(|khz| khz.to_string()),
        |policy| policy.max_khz.map(|khz| khz.to_string()),
    )
}

fn energy_preference(host: &Host) -> Outcome {
    let with_preference: Vec<_> =
        host.power.frequency.iter().filter(|on| on.value.energy_preference.is_some()).collect();
    let other: Vec<_> = with_preference
        .iter()
        .copied()
        .filter(|on| on.value.energy_preference.as_deref() != Some("performance"))
        .collect();
    if with_preference.is_empty() {
        return Outcome::not_here("no preference is passed to the hardware");
    }
    if other.is_empty() {
        return Outcome::ok("performance");
    }
    let preference = |policy: &FrequencyPolicy| policy.energy_preference.clone();
    let performance = |_: &FrequencyPolicy| Some("performance".to_owned());
    let found = Outcome::may(values_by_cpus(&other, preference));
    write_each(found, host, &other, "energy_performance_preference", performance, preference)
}

fn turbo(host: &Host) -> Outcome {
    match host.power.turbo {
        None => Outcome::not_here("no switch for it"),
        Some(false) => Outcome::ok("off"),
        Some(true) => {
            let drivers = host.power.frequency.iter().filter_map(|on| on.value.driver.as_deref());
            let on = Outcome::may("on: the frequency depends on temperature and neighbors");
            if drivers.into_iter().any(|driver| driver.starts_with("intel")) {
                on.write("/sys/devices/system/cpu/intel_pstate/no_turbo", 1, 0)
            } else {
                on.write("/sys/devices/system/cpu/cpufreq/boost", 0, 1)
            }
        }
    }
}

/// Power daemons: process name as shown by the kernel, and name of the service.
const POWER_DAEMONS: [(&str, &str); 4] = [
    ("auto-cpufreq", "auto-cpufreq"),
    ("power-profiles-", "power-profiles-daemon"),
    ("thermald", "thermald"),
    ("tuned", "tuned"),
];

fn power_daemon(host: &Host) -> Outcome {
    let found: Vec<_> = POWER_DAEMONS
        .into_iter()
        .filter(|(name, _)| host.tasks.daemons.iter().any(|daemon| daemon == name))
        .map(|(_, service)| service)
        .collect();
    match (found.is_empty(), super::scheduling::sees_all_tasks(host)) {
        (false, _) => Outcome::may(found.join(", "))
            .change(format!("systemctl stop {}", found.join(" ")), format!("systemctl start {}", found.join(" "))),
        (true, true) => Outcome::ok("none is running"),
        (true, false) => Outcome::unknown("not all programs of the machine can be seen here"),
    }
}

fn thermal_throttling(host: &Host) -> Outcome {
    match host.platform.throttle_events {
        Some(0) => Outcome::ok("never since boot"),
        Some(events) => Outcome::may(format!("{} since boot", crate::wording::things(events, "event")))
            .change("better cooling, or a lower scaling_max_freq", "raise scaling_max_freq again"),
        None if host.hypervisor.is_some() => Outcome::not_here("only the host counts it"),
        None => Outcome::unknown("not counted by this hardware, or the count cannot be read"),
    }
}

/// Temperature rise of a CPU within a few seconds of work, millidegrees Celsius.
const NEAR_MILLICELSIUS: i64 = 10_000;

fn temperature(host: &Host) -> Outcome {
    let degrees = |millicelsius: i64| crate::wording::number(millicelsius as f64 / 1000.0);
    let Some(zone) = &host.platform.hottest else {
        return if host.hypervisor.is_some() {
            Outcome::not_here("the guest has no temperature sensor")
        } else {
            Outcome::unknown("no thermal zone can be read")
        };
    };
    let name = zone.kind.as_deref().unwrap_or("hottest zone");
    let now = degrees(zone.millicelsius);
    match zone.limit_millicelsius {
        Some(limit) if zone.millicelsius >= limit.saturating_sub(NEAR_MILLICELSIUS) => {
            Outcome::may(format!("{name}: {now} C, with a limit at {} C", degrees(limit)))
                .change("better cooling, or a lower scaling_max_freq", "raise scaling_max_freq again")
        }
        Some(limit) => Outcome::ok(format!("{name}: {now} C, far from its limit at {} C", degrees(limit))),
        None => Outcome::unknown(format!("{name}: {now} C, and its limit is not known")),
    }
}
