//! Checks of interruptions of a CPU: devices, watchdogs, housekeeping.

use super::isolation::{housekeeping, of_isolated};
use super::{Check, Outcome, text};
use punctual_model::{CpuSet, Host, IrqGroup, NetworkDevice, Preemption, RealtimeTask, shell_word};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "irq-affinity",
        why: "The handler of an interrupt runs before any thread of the CPU that it goes to, and its softirqs may follow.",
        source: "Documentation/core-api/irq/irq-affinity.rst",
        examine: |host| of_isolated(host, irq_affinity),
    },
    Check {
        name: "default-irq-affinity",
        why: "Interrupts that are set up later, by a driver or a device that is plugged in, may go to all of these CPUs.",
        source: "Documentation/core-api/irq/irq-affinity.rst, kernel-parameters.txt (irqaffinity=)",
        examine: |host| of_isolated(host, default_irq_affinity),
    },
    Check {
        name: "irqbalance",
        why: "It moves interrupts between CPUs every ten seconds, also to measured CPUs.",
        source: "irqbalance(1)",
        examine: irqbalance,
    },
    Check {
        name: "network-interrupts",
        why: "A network device that collects packets before it interrupts, whose link sleeps between them, whose interrupt thread \
              waits for others, or whose packets go to another CPU first (RPS), delays the thread that waits for a packet.",
        source: "ethtool(8) (--coalesce, --set-eee), Documentation/networking/ethtool-netlink.rst (COALESCE_GET), \
                 scaling.rst (RPS)",
        examine: network_interrupts,
    },
    Check {
        name: "soft-watchdog",
        why: "Every few seconds a timer interrupts each CPU, and a thread of the highest priority runs.",
        source: "Documentation/admin-guide/lockup-watchdogs.rst, kernel-configuration.rst (LOCKUP_DETECTOR: high)",
        examine: soft_watchdog,
    },
    Check {
        name: "nmi-watchdog",
        why: "A non-maskable interrupt from the performance counters arrives every few seconds of work.",
        source: "Documentation/admin-guide/lockup-watchdogs.rst, kernel-configuration.rst (LOCKUP_DETECTOR: high)",
        examine: nmi_watchdog,
    },
    Check {
        name: "statistics-interval",
        why: "At this interval a kernel worker updates each busy CPU's memory statistics; without PREEMPT_RT it is \
              not preempted.",
        source: "Documentation/admin-guide/sysctl/vm.rst (stat_interval), kernel-per-CPU-kthreads.rst (vmstat_update)",
        examine: statistics_interval,
    },
];

fn irq_affinity(host: &Host, isolated: &CpuSet) -> Outcome {
    let groups = &host.interrupts.groups;
    if groups.is_empty() {
        return Outcome::unknown("the affinities of interrupts cannot be read");
    }
    let there: Vec<&IrqGroup> = groups.iter().filter(|group| !group.reached().common(isolated).is_empty()).collect();
    if there.is_empty() {
        return Outcome::ok("none goes to an isolated CPU");
    }
    let count: u64 = there.iter().map(|group| u64::from(group.count)).sum();
    let irqs = there.iter().map(|group| group.irqs.as_str()).collect::<Vec<_>>().join(",");
    let each = |irqs: &str, cpus: &CpuSet| {
        format!("for irq in {}; do echo {cpus} > /proc/irq/$irq/smp_affinity_list; done", text::words(irqs))
    };
    let before: Vec<_> = there.iter().map(|group| each(&group.irqs, &group.cpus)).collect();
    Outcome::may(format!("{} to isolated {}: {irqs}", crate::wording::things(count, "interrupt"), text::cpus(isolated)))
        .change(each(&irqs, &housekeeping(host, isolated)), before.join("; "))
        .caution("some refuse (EIO): the kernel manages them, isolcpus=managed_irq keeps them away")
}

fn default_irq_affinity(host: &Host, isolated: &CpuSet) -> Outcome {
    let Some(default) = &host.interrupts.default_cpus else {
        return Outcome::unknown("the default affinity cannot be read");
    };
    let common = default.common(isolated);
    if common.is_empty() {
        return Outcome::ok(text::cpus(default));
    }
    let (wanted, before) = (text::mask(&default.minus(isolated)), text::mask(default));
    Outcome::may(format!("new interrupts may go to isolated {}", text::cpus(&common))).write(
        "/proc/irq/default_smp_affinity",
        wanted,
        before,
    )
}

fn irqbalance(host: &Host) -> Outcome {
    if host.tasks.daemons.iter().any(|daemon| daemon == "irqbalance") {
        return Outcome::may("running").change("systemctl stop irqbalance", "systemctl start irqbalance");
    }
    if super::scheduling::sees_all_tasks(host) {
        Outcome::ok("not running")
    } else {
        Outcome::unknown("not all programs of the machine can be seen here")
    }
}

fn soft_watchdog(host: &Host) -> Outcome {
    match host.scheduling.soft_watchdog {
        Some(true) => Outcome::may("on").sysctl("kernel.soft_watchdog", 0, 1),
        Some(false) => Outcome::ok("off"),
        None if host.is_built_with("LOCKUP_DETECTOR") == Some(false) => Outcome::ok("not built in"),
        None => Outcome::unknown("soft_watchdog cannot be read"),
    }
}

fn nmi_watchdog(host: &Host) -> Outcome {
    match host.scheduling.nmi_watchdog {
        Some(true) => Outcome::may("on").sysctl("kernel.nmi_watchdog", 0, 1),
        Some(false) => Outcome::ok("off"),
        None if host.is_built_with("LOCKUP_DETECTOR") == Some(false) => Outcome::ok("not built in"),
        None => Outcome::unknown("nmi_watchdog cannot be read"),
    }
}

/// Interval, s, from which the update is rarer than most other kernel work.
const RARE_S: u64 = 60;

fn statistics_interval(host: &Host) -> Outcome {
    match host.memory.stat_interval_s {
        _ if host.preemption == Some(Preemption::Realtime) => {
            Outcome::ok("with PREEMPT_RT the worker can be preempted")
        }
        Some(seconds) if seconds < RARE_S => {
            Outcome::may(format!("every {seconds} s")).sysctl("vm.stat_interval", 2 * RARE_S, seconds)
        }
        Some(seconds) => Outcome::ok(format!("every {seconds} s")),
        None => Outcome::unknown("stat_interval cannot be read"),
    }
}

/// Delay of a packet, us, from which on it is worth a word: 1 % of the default period.
const PACKET_US: u32 = 10;

fn network_interrupts(host: &Host) -> Outcome {
    of_devices(host, &host.network)
}

/// What these devices of `host` do to packets.
pub(super) fn of_devices(host: &Host, devices: &[NetworkDevice]) -> Outcome {
    if devices.is_empty() {
        return Outcome::not_here("no network device of hardware found");
    }
    let knows = |device: &NetworkDevice| device.rx_delay_us.is_some() || device.link_sleeps.is_some();
    let (mut found, mut change, mut undo) = (Vec::new(), Vec::new(), Vec::new());
    for device in devices {
        let NetworkDevice { name, rx_delay_us, rx_adapts, link_sleeps, rps_cpus, irqs } = device;
        let (us, adapts) = (rx_delay_us.unwrap_or(0), *rx_adapts == Some(true));
        let word = shell_word(name);
        if us >= PACKET_US || adapts {
            found.push(format!("{name} waits {}{}", text::micros(us.into()), if adapts { ", adapted" } else { "" }));
            let set = |adapt, us| format!("ethtool -C {word} adaptive-rx {adapt} rx-usecs {us}");
            change.push(set("off", 0));
            undo.push(set(if adapts { "on" } else { "off" }, us));
        }
        if *link_sleeps == Some(true) {
            found.push(format!("the link of {name} sleeps"));
            change.push(format!("ethtool --set-eee {word} eee off"));
            undo.push(format!("ethtool --set-eee {word} eee on"));
        }
        if let Some(cpus) = rps_cpus.as_ref().filter(|cpus| !cpus.is_empty()) {
            found.push(format!("{name} passes packets on to {} (RPS)", text::cpus(cpus)));
            let set = |mask| format!("echo {mask} | tee /sys/class/net/{word}/queues/rx-*/rps_cpus");
            change.push(set("0".to_owned()));
            undo.push(set(text::mask(cpus)));
        }
        let handles = |task: &&RealtimeTask| {
            task.is_kernel && punctual_model::interrupt_of_thread(&task.name).is_some_and(|irq| irqs.contains(&irq))
        };
        let handler = host.tasks.realtime.iter().filter(handles).min_by_key(|task| task.priority);
        let before = |task: &&RealtimeTask| !task.is_kernel && handler.is_some_and(|own| task.priority >= own.priority);
        if let (Some(own), Some(first)) =
            (handler, host.tasks.realtime.iter().filter(before).max_by_key(|task| task.priority))
        {
            let [lower, higher] = [own, first].map(|task| task.priority.unwrap_or(0));
            found.push(format!("{} at {lower} waits for {} at {higher}", own.name, first.name));
            let own = shell_word(own.name.as_str());
            let set = |priority: u32| format!("chrt --fifo --pid {} $(pgrep -x {own})", priority.min(99));
            change.push(set(higher + 1));
            undo.push(set(lower));
        }
    }
    if found.is_empty() && !devices.iter().any(knows) {
        return Outcome::unknown("no driver tells its settings");
    }
    if found.is_empty() {
        return Outcome::ok("they interrupt at once, and links stay awake");
    }
    Outcome::may(found.join("; ")).change(change.join("; "), undo.join("; "))
}
