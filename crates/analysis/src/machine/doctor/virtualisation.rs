//! Checks of layers between the kernel and the hardware: hypervisor, container.

use super::{Check, Outcome};
use punctual_model::Host;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "virtual-machine",
        why: "The host can preempt a vCPU at any time and for any length, and no setting of the guest prevents it.",
        source: "Documentation/core-api/real-time/hardware.rst (Virtualization)",
        examine: virtual_machine,
    },
    Check {
        name: "steal",
        why: "Time in which a vCPU of this guest was runnable and the host ran something else.",
        source: "proc_stat(5), steal",
        examine: steal,
    },
    Check {
        name: "container",
        why: "Limits of a container on CPUs, time and privileges are part of every latency, and settings seen here \
              may be those of its host.",
        source: "namespaces(7), cgroups(7)",
        examine: container,
    },
];

/// Whether a hypervisor gives this guest its kernel and command line, as Firecracker and `qemu -kernel` do: a boot
/// loader in the guest adds the name of the image or of the initial file system.
pub(super) fn is_booted_by_host(host: &Host) -> bool {
    let is_by_loader = || ["BOOT_IMAGE", "initrd"].iter().any(|key| host.boot_parameter(key).is_some());
    host.hypervisor.is_some() && host.command_line.is_some() && !is_by_loader()
}

fn virtual_machine(host: &Host) -> Outcome {
    match (&host.hypervisor, host.architecture.as_deref()) {
        (Some(name), _) => Outcome::will(name.clone())
            .change(
                "measure on the hardware itself; or on the host, pin each vCPU to a CPU of it: virsh vcpupin DOMAIN VCPU CPU",
                "on the host: virsh vcpupin DOMAIN VCPU with all CPUs",
            )
            .caution("a CPU of the host must then be kept free for each CPU of the guest"),
        (None, Some("x86_64")) => Outcome::ok("none detected"),
        (None, _) => Outcome::unknown("none detected, which is not reliable on this architecture"),
    }
}

/// Share of stolen time, percent, from which it is frequent.
const OFTEN_PERCENT: f64 = 1.0;

fn steal(host: &Host) -> Outcome {
    if host.hypervisor.is_none() && host.platform.steal_ms.unwrap_or(0) == 0 {
        return Outcome::not_here("no hypervisor detected");
    }
    let (Some(steal), Some(all)) = (host.platform.steal_ms, host.platform.cpu_time_ms) else {
        return Outcome::unknown("/proc/stat cannot be read");
    };
    if steal == 0 {
        return Outcome::ok("none since boot");
    }
    let percent = steal as f64 / all.max(1) as f64 * 100.0;
    let (time, share) = (crate::wording::duration(steal as f64 * 1e6), crate::wording::number(percent));
    let found = format!("{time} since boot, {share} % of all CPU time");
    let outcome = if percent >= OFTEN_PERCENT { Outcome::will(found) } else { Outcome::may(found) };
    outcome.change(
        "on the host: do not overcommit CPUs, or pin each vCPU of the guest to a CPU of its own",
        "as it \
                    was",
    )
}

fn container(host: &Host) -> Outcome {
    match &host.container {
        Some(name) => Outcome::may(name.clone()).change("measure outside of it", "measure in it").caution(
            "or start it with --cap-add=sys_nice --ulimit rtprio=99 --ulimit memlock=-1 and without a CPU quota",
        ),
        None => Outcome::ok("none detected"),
    }
}
