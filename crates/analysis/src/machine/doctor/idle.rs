//! Checks of idle states of CPUs and links.

use super::{Check, Outcome, text};
use punctual_model::{Host, IdleState};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "idle-states",
        why: "Leaving a deep idle state takes time before the CPU can run anything; its caches may be empty, too.",
        source: "Documentation/admin-guide/pm/cpuidle.rst, core-api/real-time/kernel-configuration.rst (CPU_IDLE)",
        examine: idle_states,
    },
    Check {
        name: "idle-poll",
        why: "CPUs that poll while idle respond fast, but heat the package, slow down the other thread of their core \
              and, in a guest, never yield to the host.",
        source: "Documentation/admin-guide/kernel-parameters.txt (idle=), core-api/real-time/hardware.rst (Virtualization)",
        examine: idle_poll,
    },
    Check {
        name: "guest-halt",
        why: "A vCPU that halts is descheduled by the host, which has to schedule it again before it can take its \
              timer interrupt.",
        source: "Documentation/virt/guest-halt-polling.rst, drivers/cpuidle/governors/haltpoll.c",
        examine: guest_halt,
    },
    Check {
        name: "pcie-aspm",
        why: "A link in a low-power state delays the device's interrupt and every access to its registers.",
        source: "Documentation/core-api/real-time/hardware.rst (Hardware buses), kernel-parameters.txt (pcie_aspm.policy=)",
        examine: pcie_aspm,
    },
    Check {
        name: "pci-suspend",
        why: "A device that the kernel suspends while it is idle takes up to milliseconds to resume, and its driver and every \
              program that uses it wait. A graphics processor is the usual one.",
        source: "Documentation/power/runtime_pm.rst, Documentation/ABI/testing/sysfs-devices-power (control)",
        examine: pci_suspend,
    },
];

/// Exit latencies, us: from 1 % of the default period of 1 ms on visible, from 10 % on most of a wake-up.
const MAY_US: u64 = 10;
const WILL_US: u64 = 100;

fn idle_states(host: &Host) -> Outcome {
    let power = &host.power;
    if host.boot_parameter("idle") == Some("poll") {
        return Outcome::ok("idle=poll: CPUs wait awake");
    }
    if power.idle_states.is_empty() {
        return match power.idle_driver.as_deref() {
            Some("none") => Outcome::ok("no idle driver: only the architecture's own instruction"),
            _ => Outcome::unknown("the idle states cannot be read"),
        };
    }
    let enabled = power.idle_states.iter().filter(|state| !state.cpus.minus(&state.disabled).is_empty());
    let deep: Vec<_> = enabled.filter(|state| state.exit_latency_us.is_some_and(|us| us >= MAY_US)).collect();
    let Some(latency) = deep.iter().filter_map(|state| state.exit_latency_us).max() else {
        return Outcome::ok(format!("none in use takes {} to leave", text::micros(MAY_US)));
    };
    let named = |state: &&IdleState| Some(format!("{} {}", state.name, text::micros(state.exit_latency_us?)));
    let names = deep.iter().filter_map(named).collect::<Vec<_>>().join(", ");
    let found = format!("time to leave: {names}");
    let outcome = if latency >= WILL_US { Outcome::will(found) } else { Outcome::may(found) };
    outcome.change(switch_states(&deep, 1), switch_states(&deep, 0)).caution(DMA_LATENCY_CAUTION)
}

/// Commands that switch these states off (1) or on (0), on the CPUs that use them.
fn switch_states(states: &[&IdleState], value: u32) -> String {
    let on_all = |state: &IdleState| format!("/sys/devices/system/cpu/cpu*/cpuidle/state{}/disable", state.index);
    if states.iter().all(|state| state.disabled.is_empty()) {
        let mut files: Vec<_> = states.iter().map(|state| on_all(state)).collect();
        files.dedup();
        return format!("echo {value} | tee {}", files.join(" "));
    }
    let on_some = |state: &&IdleState| {
        let (cpus, index) = (text::words(&state.cpus.minus(&state.disabled).to_string()), state.index);
        format!(
            "for cpu in {cpus}; do echo {value} > /sys/devices/system/cpu/cpu$cpu/cpuidle/state{index}/disable; done"
        )
    };
    states.iter().map(on_some).collect::<Vec<_>>().join("; ")
}

fn idle_poll(host: &Host) -> Outcome {
    if host.boot_parameter("idle") != Some("poll") {
        return Outcome::ok("idle CPUs sleep");
    }
    let (is_guest, is_smt) = (host.hypervisor.is_some(), host.processors.smt_active == Some(true));
    let why = match (is_guest, is_smt) {
        (true, _) => "idle=poll in a guest: its CPUs keep the host's busy",
        (false, true) => "idle=poll with two threads a core: an idle one slows the other down",
        (false, false) => return Outcome::ok("idle=poll, and no thread shares a core"),
    };
    Outcome::may(why).change("boot without idle=poll", "kernel parameter idle=poll")
}

/// Caution on idle states. The haltpoll governor also polls at a latency limit of 0
/// (drivers/cpuidle/governors/haltpoll.c, `haltpoll_select`).
const DMA_LATENCY_CAUTION: &str =
    "during a measurement punctual holds /dev/cpu_dma_latency at 0 by default, which keeps CPUs awake";

const HALT_POLL: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";

fn guest_halt(host: &Host) -> Outcome {
    let power = &host.power;
    if host.hypervisor.is_none() {
        return Outcome::not_here("no hypervisor detected");
    }
    // drivers/cpuidle/Kconfig: HALTPOLL_CPUIDLE depends on X86.
    if host.architecture.as_deref().is_some_and(|architecture| architecture != "x86_64") {
        return Outcome::not_here("guests poll before they halt on x86 only");
    }
    match (power.idle_driver.as_deref(), power.idle_governor.as_deref(), power.halt_poll_ns) {
        _ if host.boot_parameter("idle") == Some("poll") => Outcome::ok("idle=poll: CPUs never halt"),
        (_, Some("haltpoll"), Some(0)) => {
            Outcome::may("the governor haltpoll with guest_halt_poll_ns=0: CPUs halt at once")
                .write(HALT_POLL, 200_000, 0)
                .caution(DMA_LATENCY_CAUTION)
        }
        (_, Some("haltpoll"), Some(ns)) => {
            Outcome::ok(format!("CPUs wait up to {} before they halt", crate::wording::duration(ns as f64)))
        }
        (None, None, _) => Outcome::unknown("the idle driver cannot be read"),
        _ => Outcome::may("idle CPUs halt at once")
            .boot_with("cpuidle_haltpoll.force=1")
            .caution("needs a KVM guest and a kernel with CONFIG_HALTPOLL_CPUIDLE"),
    }
}

fn pcie_aspm(host: &Host) -> Outcome {
    match host.power.pcie_aspm.as_deref() {
        None => Outcome::not_here("the kernel does not manage such links here"),
        _ if host.boot_parameter("pcie_aspm") == Some("off") => Outcome::ok("pcie_aspm=off"),
        Some("performance") => Outcome::ok("performance: links stay awake"),
        Some("default") => Outcome::unknown("left as the firmware set it; `lspci -vv | grep ASPM` shows each link"),
        Some(policy) => Outcome::may(policy).write("/sys/module/pcie_aspm/parameters/policy", "performance", policy),
    }
}

fn pci_suspend(host: &Host) -> Outcome {
    const SHOWN: usize = 3;
    let Some(devices) = &host.power.suspendable else { return Outcome::not_here("no PCI devices here") };
    if devices.is_empty() {
        return Outcome::ok("every device stays awake");
    }
    let more = if devices.len() > SHOWN { ", ..." } else { "" };
    let named = devices.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    let set = |to: &str| {
        format!("for device in {}; do echo {to} > /sys/bus/pci/devices/$device/power/control; done", devices.join(" "))
    };
    let n = crate::wording::things(u64::try_from(devices.len()).unwrap_or(u64::MAX), "device");
    Outcome::may(format!("{n} may be suspended: {named}{more}")).change(set("on"), set("auto"))
}
