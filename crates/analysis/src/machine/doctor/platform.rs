//! Checks of processors and firmware.

use super::{Check, Outcome, text};
use punctual_model::Host;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "smi",
        why: "The firmware stops all CPUs for a system management interrupt, unseen by the kernel, for up to milliseconds.",
        source: "Documentation/trace/hwlat_detector.rst, Intel SDM volume 4 (MSR_SMI_COUNT)",
        examine: smi,
    },
    Check {
        name: "mitigations",
        why: "Some mitigations of CPU vulnerabilities add up to a microsecond to each entry to the kernel and to each switch.",
        source: "Documentation/admin-guide/hw-vuln/index.rst, kernel-parameters.txt (mitigations=)",
        examine: mitigations,
    },
    Check {
        name: "asymmetric-cpus",
        why: "The same work takes longer on the slower CPUs, and normal threads migrate between both kinds.",
        source: "Documentation/scheduler/sched-capacity.rst",
        examine: asymmetric_cpus,
    },
];

fn smi(host: &Host) -> Outcome {
    if host.hypervisor.is_some() {
        return Outcome::not_here("the firmware is the host's");
    }
    if host.architecture.as_deref() != Some("x86_64") {
        return Outcome::not_here("only x86 has them");
    }
    let is_intel = host.processors.kinds.iter().any(|on| on.value.starts_with("GenuineIntel"));
    match host.platform.smi_count {
        Some(0) => Outcome::ok("none since reset"),
        Some(count) => Outcome::may(format!("{} since reset", crate::wording::count(count))).change(
            "in the firmware's set-up, switch off what causes them: USB legacy support, power capping, memory scrubbing",
            "switch it on again",
        ),
        None if is_intel => Outcome::unknown("the counter cannot be read; `modprobe msr`, as root"),
        None => Outcome::unknown("this CPU does not count them; `hwlatdetect --duration=60` shows their effect"),
    }
}

/// Texts of mitigations that add work to each kernel entry or task switch.
const COSTLY: [&str; 6] =
    ["PTI", "Clear CPU buffers", "Mitigation: IBPB", "IBPB: always-on", "Safe RET", "untrained return thunk"];

fn mitigations(host: &Host) -> Outcome {
    let found = &host.processors.vulnerabilities;
    let costly = found.iter().filter_map(|(name, state)| {
        let word = COSTLY.iter().find(|word| state.contains(*word))?;
        Some(format!("{name} ({})", word.trim_start_matches("Mitigation: ")))
    });
    let costly: Vec<_> = costly.collect();
    if costly.is_empty() {
        let is_known = host.processors.kinds.is_empty() && found.is_empty();
        return if is_known {
            Outcome::unknown("the mitigations cannot be read")
        } else {
            Outcome::ok("none that costs much")
        };
    }
    let outcome = Outcome::may(costly.join(", "));
    outcome.boot_with("mitigations=off").caution("only where no foreign code runs: it opens the machine to attacks")
}

fn asymmetric_cpus(host: &Host) -> Outcome {
    let kinds = &host.processors.capacities;
    match kinds.as_slice() {
        [] if host.processors.kinds.len() > 1 => {
            Outcome::unknown("CPUs of several kinds, whose strength cannot be read")
        }
        [] | [_] => Outcome::ok("all alike"),
        _ => {
            let said: Vec<_> = kinds.iter().map(|on| format!("{} {}", text::cpus(&on.cpus), on.value)).collect();
            let strongest = kinds.iter().max_by_key(|on| on.value).map(|on| on.cpus.to_string()).unwrap_or_default();
            Outcome::may(format!("capacities: {}", said.join(", ")))
                .change(format!("punctual run --cpus {strongest}"), "punctual run")
        }
    }
}
