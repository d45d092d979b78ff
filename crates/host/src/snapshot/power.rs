//! Reading frequency and idle states.

use crate::HostFs;
use punctual_model::{CpuSet, FrequencyPolicy, IdleState, OnCpus, Power};

const CPUS: &str = "sys/devices/system/cpu";

pub(super) fn read(fs: &HostFs, online: &CpuSet) -> Power {
    let pstates = ["intel_pstate", "amd_pstate"];
    let governor = ["current_governor", "current_governor_ro"];
    Power {
        frequency: frequency(fs),
        pstate: pstates.into_iter().find_map(|driver| fs.text(format!("{CPUS}/{driver}/status"))),
        turbo: turbo(fs),
        idle_driver: fs.text(format!("{CPUS}/cpuidle/current_driver")),
        idle_governor: governor.into_iter().find_map(|name| fs.text(format!("{CPUS}/cpuidle/{name}"))),
        halt_poll_ns: fs.number("sys/module/haltpoll/parameters/guest_halt_poll_ns"),
        idle_states: idle_states(fs, online),
        pcie_aspm: fs.chosen("sys/module/pcie_aspm/parameters/policy"),
        suspendable: suspendable(fs),
    }
}

fn suspendable(fs: &HostFs) -> Option<Vec<String>> {
    let dir = "sys/bus/pci/devices";
    let may_be = |device: &String| {
        let of = |name: &str| fs.text(format!("{dir}/{device}/power/{name}"));
        let is_managed = of("runtime_status").is_some_and(|status| status != "unsupported");
        is_managed && of("control").as_deref() == Some("auto") && fs.exists(format!("{dir}/{device}/driver"))
    };
    fs.exists(dir).then(|| fs.names(dir).into_iter().filter(may_be).collect())
}

fn frequency(fs: &HostFs) -> Vec<OnCpus<FrequencyPolicy>> {
    let policies = fs.numbered(&format!("{CPUS}/cpufreq"), "policy").into_iter().filter_map(|policy| {
        let of = |name: &str| format!("{CPUS}/cpufreq/policy{policy}/{name}");
        // Separated by blanks, not commas.
        let cpus = fs.text(of("affected_cpus"))?.split_whitespace().collect::<Vec<_>>().join(",").parse().ok()?;
        let policy = FrequencyPolicy {
            driver: fs.text(of("scaling_driver")),
            governor: fs.text(of("scaling_governor")),
            min_khz: fs.number(of("scaling_min_freq")),
            max_khz: fs.number(of("scaling_max_freq")),
            hardware_min_khz: fs.number(of("cpuinfo_min_freq")),
            hardware_max_khz: fs.number(of("cpuinfo_max_freq")),
            energy_preference: fs.text(of("energy_performance_preference")),
        };
        Some((cpus, policy))
    });
    OnCpus::gather(policies)
}

fn turbo(fs: &HostFs) -> Option<bool> {
    let off = fs.switch("sys/devices/system/cpu/intel_pstate/no_turbo");
    off.map(|off| !off).or_else(|| fs.switch("sys/devices/system/cpu/cpufreq/boost"))
}

/// The idle states. A state is one number, name and latency; CPUs of another kind may have others.
fn idle_states(fs: &HostFs, online: &CpuSet) -> Vec<IdleState> {
    let mut states: Vec<IdleState> = Vec::new();
    for cpu in online.iter() {
        let dir = format!("{CPUS}/cpu{cpu}/cpuidle");
        for index in fs.numbered(&dir, "state") {
            let of = |name: &str| format!("{dir}/state{index}/{name}");
            let Some(name) = fs.text(of("name")) else { continue };
            let exit_latency_us = fs.number(of("latency"));
            let known = states
                .iter()
                .position(|state| (state.index, &state.name, state.exit_latency_us) == (index, &name, exit_latency_us));
            let place = known.unwrap_or_else(|| {
                states.push(IdleState { name, index, exit_latency_us, ..IdleState::default() });
                states.len() - 1
            });
            states[place].cpus.extend([cpu]);
            if fs.switch(&of("disable")) == Some(true) {
                states[place].disabled.extend([cpu]);
            }
        }
    }
    states
}
