//! Checks of a co-kernel beside Linux: Xenomai's Cobalt, EVL.

use super::{Check, Outcome, isolation, text};
use punctual_model::{CoKernel, Cobalt, CpuSet, Evl, Gravity, Host};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "co-kernel-state",
        why: "Programs of a co-kernel cannot start while its core is disabled or stopped.",
        source: "Xenomai: kernel/cobalt/init.c (xenomai.state=), corectl(1); EVL: kernel/evl/control.c (state)",
        examine: state,
    },
    Check {
        name: "co-kernel-timer",
        why: "A co-kernel takes over the timer of each of its CPUs. It cannot start on the PIT, which the kernel uses where \
              the local APIC timer is off or fails its check at boot.",
        source: "Dovetail: kernel/time/tick-proxy.c (tick_setup_proxy); kernel-parameters.txt (nolapic_timer)",
        examine: timer,
    },
    Check {
        name: "co-kernel-gravity",
        why: "Timers of a co-kernel are programmed early by its gravity: latencies are smaller by it, and negative where \
              gravity is larger. Results with different gravity are not comparable.",
        source: "Xenomai: kernel/cobalt/clock.c (clock_store), autotune(1); EVL: kernel/evl/clock.c (gravity_store)",
        examine: gravity,
    },
    Check {
        name: "co-kernel-cpus",
        why: "Threads of a co-kernel run on its own set of CPUs only, so that isolated CPUs outside of it stay unused, and \
              its threads share the others with Linux.",
        source: "Xenomai: kernel/cobalt/init.c (xenomai.supported_cpus=), sched.c (affinity); EVL: evl.oob_cpus=",
        examine: cpus,
    },
    Check {
        name: "co-kernel-faults",
        why: "Linux handles the faults of a co-kernel's thread: the thread leaves primary mode and waits like any thread \
              of Linux, until the co-kernel takes it back.",
        source: "Xenomai: kernel/cobalt/dovetail/kevents.c (handle_oob_trap_entry), SIGDEBUG_MIGRATE_FAULT",
        examine: faults,
    },
    Check {
        name: "co-kernel-governor",
        why: "These governors measure the load of Linux. Threads of a co-kernel seem idle to them, so that the frequency \
              does not rise for them, and changes at any moment for others.",
        source: "v3.xenomai.org/tips/x86/common (CPU Frequency scaling)",
        examine: governor,
    },
    Check {
        name: "co-kernel-smi",
        why: "A co-kernel has no precedence over a system management interrupt. Cobalt can switch off those of the chipset.",
        source: "Xenomai: kernel/cobalt/arch/x86/dovetail/smi.c (xenomai.smi=), v3.xenomai.org/tips/x86/smi",
        examine: smi,
    },
];

/// The core of a co-kernel.
enum Core<'a> {
    Cobalt(&'a Cobalt),
    Evl(&'a Evl),
}

/// The co-kernel and its core; without one, the outcome of a check that needs one.
fn core(host: &Host) -> Result<(&CoKernel, Core<'_>), Outcome> {
    let cokernel = host.cokernel.as_ref();
    let cobalt = cokernel.and_then(|it| Some((it, Core::Cobalt(it.cobalt.as_ref()?))));
    let evl = || cokernel.and_then(|it| Some((it, Core::Evl(it.evl.as_ref()?))));
    cobalt.or_else(evl).ok_or_else(|| Outcome::not_here("no co-kernel"))
}

/// As [`core()`], for checks of a core that initialized: a disabled one has no settings.
fn initialized(host: &Host) -> Result<(&CoKernel, Core<'_>), Outcome> {
    match core(host)? {
        (_, Core::Cobalt(Cobalt { is_initialized: Some(false), .. })) => {
            Err(Outcome::not_here("the core did not start"))
        }
        core => Ok(core),
    }
}

fn state(host: &Host) -> Outcome {
    let (cokernel, core) = match core(host) {
        Ok(core) => core,
        Err(outcome) => return outcome,
    };
    let runs = || Outcome::ok(format!("{} runs", cokernel.name().unwrap_or_default()));
    let cobalt = match core {
        Core::Cobalt(cobalt) => cobalt,
        Core::Evl(evl) => {
            return match evl.state.as_deref() {
                Some("running") => runs(),
                Some("stopped") => Outcome::may("EVL is stopped").change("evl start", "evl stop"),
                Some(state) => Outcome::unknown(format!("the state of EVL is {state}")),
                None => Outcome::unknown("the state of EVL cannot be read"),
            };
        }
    };
    let given = cobalt.parameters.get("state").map(String::as_str);
    match (cobalt.is_initialized, given, cokernel.is_running()) {
        (Some(false), Some("disabled"), _) => Outcome::may("Cobalt is off: xenomai.state=disabled")
            .change("boot without xenomai.state=disabled", "kernel parameter xenomai.state=disabled"),
        (Some(false), ..) => Outcome::may("Cobalt is built in and did not start")
            .change("dmesg | grep -i -e xenomai -e 'APIC timer' (the reason)", "nothing to undo"),
        (Some(true), _, Some(true)) => runs(),
        (Some(true), _, Some(false)) => {
            let stopped = Outcome::may("Cobalt is stopped").change("corectl --start", "corectl --stop");
            if given == Some("stopped") {
                stopped.caution("xenomai.state=stopped on the kernel command line stops it at each boot")
            } else {
                stopped
            }
        }
        (Some(true), Some("stopped"), None) => {
            Outcome::unknown("xenomai.state=stopped; `corectl --status` shows whether it was started since")
        }
        (Some(true), _, None) => runs(),
        (None, ..) => Outcome::unknown("whether Cobalt runs cannot be read"),
    }
}

/// Kernel parameters that switch off the timer of the local APIC.
const NO_LOCAL_TIMER: [&str; 2] = ["nolapic", "nolapic_timer"];

fn timer(host: &Host) -> Outcome {
    let cokernel = match core(host) {
        Ok((cokernel, _)) => cokernel,
        Err(outcome) => return outcome,
    };
    let Some(proxies) = &cokernel.proxy_cpus else {
        return Outcome::unknown("which timers it has taken over cannot be read");
    };
    if !proxies.is_empty() {
        let timer = cokernel.cobalt.as_ref().and_then(|cobalt| cobalt.timer.as_deref());
        let device = timer.map(|timer| format!(", {timer}")).unwrap_or_default();
        return Outcome::ok(format!("the timer of {}{device}", text::cpus(proxies)));
    }
    if let Some(word) = NO_LOCAL_TIMER.into_iter().find(|word| host.boot_parameter(word).is_some()) {
        return Outcome::may(format!("none taken over; {word} switches the local APIC timer off"))
            .change(format!("boot without {word}"), format!("kernel parameter {word}"));
    }
    let names: Vec<_> = host.clocks.timer_devices.iter().map(|on| on.value.as_str()).collect();
    if !names.contains(&"pit") {
        return Outcome::ok(format!("none taken over; {} can be", names.join(", ")));
    }
    Outcome::may("none taken over; the kernel uses the PIT")
        .change("dmesg | grep -i 'APIC timer' (why it does not use the local APIC timer)", "nothing to undo")
}

/// File of the core clock of Cobalt, of its setting alone, and of the clock of EVL.
const CORE_CLOCK: &str = "/proc/xenomai/clock/coreclk";
const LATENCY: &str = "/proc/xenomai/latency";
const EVL_CLOCK: &str = "/sys/devices/virtual/clock/monotonic/gravity";

fn gravity(host: &Host) -> Outcome {
    let (cokernel, core) = match initialized(host) {
        Ok(core) => core,
        Err(outcome) => return outcome,
    };
    let Some(gravity) = cokernel.gravity() else { return Outcome::unknown("gravity cannot be read") };
    let known: Vec<_> = gravity.values().into_iter().filter_map(|(name, ns)| Some((name, ns?))).collect();
    if known.iter().all(|(_, ns)| *ns == 0) {
        return Outcome::ok("0: timers are programmed for the due time");
    }
    let values = known.iter().map(|(name, ns)| format!("{name} {ns}")).collect::<Vec<_>>().join(", ");
    let is_default = matches!(core, Core::Cobalt(_)) && is_built_in(gravity, host.architecture.as_deref());
    let source = if is_default { ", the built-in default: not tuned on this machine" } else { "" };
    let command = |[irq, kernel, user]: [i64; 3], file| format!("echo {user}u {kernel}k {irq}i > {file}");
    let outcome = Outcome::may(format!("{values} ns{source}"));
    let (file, tuner) = match core {
        Core::Cobalt(_) => (CORE_CLOCK, "autotune (CONFIG_XENO_OPT_AUTOTUNE)"),
        Core::Evl(_) => (EVL_CLOCK, "latmus -t"),
    };
    let outcome = match gravity {
        Gravity { irq_ns: Some(irq), kernel_ns: Some(kernel), user_ns: Some(user) } => {
            outcome.change(command([0; 3], file), command([irq, kernel, user], file))
        }
        Gravity { user_ns: Some(user), .. } if matches!(core, Core::Cobalt(_)) => outcome.write(LATENCY, 0, user),
        _ => outcome.change(command([0; 3], file), "boot again"),
    };
    outcome.caution(format!("for measurements; in use, {tuner} sets the gravity that fits the machine"))
}

/// Whether this is the gravity of a kernel without CONFIG_XENO_OPT_TIMING_SCHEDLAT, by the number of CPUs on x86
/// (`xnarch_get_latencies`, asm/xenomai/calibration.h of Xenomai 3.2).
fn is_built_in(gravity: Gravity, architecture: Option<&str>) -> bool {
    let Some(user) = gravity.user_ns else { return false };
    let defaults: &[i64] = match architecture {
        Some("x86_64") => &[2000, 3350],
        Some("aarch64" | "armv7l") => &[5000],
        _ => &[],
    };
    defaults.contains(&user) && gravity.irq_ns == Some(0) && gravity.kernel_ns == Some(user)
}

fn cpus(host: &Host) -> Outcome {
    let ((cokernel, core), isolated) = match (initialized(host), isolation::isolated(host)) {
        (Ok(core), Ok(cpus)) => (core, cpus),
        (Err(outcome), _) | (_, Err(outcome)) => return outcome,
    };
    let Some(own) = cokernel.cpus() else { return Outcome::unknown("its CPUs cannot be read") };
    let missing = isolated.minus(own);
    if missing.is_empty() {
        return Outcome::ok(text::cpus(own));
    }
    let outcome = Outcome::may(format!("{}, without isolated {}", text::cpus(own), text::cpus(&missing)));
    let all: CpuSet = own.iter().chain(isolated.iter()).collect();
    let Core::Cobalt(cobalt) = core else {
        return outcome.boot_with(&format!("evl.oob_cpus={all}"));
    };
    let Some(mask) = mask(&all) else {
        return outcome.change("isolate CPUs below 64: Cobalt has no others", "the former isolcpus=");
    };
    let supported = cobalt.parameters.get("supported_cpus").and_then(|text| mask_of(text));
    if supported.is_some_and(|supported| supported & mask == mask) {
        let before = self::mask(own).unwrap_or(0);
        return outcome.write("/proc/xenomai/affinity", format!("{mask:#x}"), format!("{before:#x}"));
    }
    let parameter = format!("xenomai.supported_cpus={:#x}", mask | 1);
    let outcome = match host.boot_parameter("xenomai.supported_cpus") {
        Some(before) => outcome.change(
            format!("kernel parameter {parameter}"),
            format!("kernel parameter xenomai.supported_cpus={before}"),
        ),
        None => outcome.boot_with(&parameter),
    };
    outcome.caution("Cobalt refuses a mask without CPU 0")
}

/// The set as a mask of 64 bits; `None` when it has other CPUs.
fn mask(cpus: &CpuSet) -> Option<u64> {
    cpus.iter().try_fold(0, |bits, cpu| Some(bits | 1_u64.checked_shl(cpu)?))
}

/// A mask as the kernel reads and writes module parameters: decimal, or hexadecimal with `0x`.
fn mask_of(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Kinds of faults that debuggers cause.
const OF_DEBUGGERS: [&str; 2] = ["Debug", "Int3"];

fn faults(host: &Host) -> Outcome {
    let cobalt = match initialized(host) {
        Ok((_, Core::Cobalt(cobalt))) => cobalt,
        Ok((_, Core::Evl(_))) => return Outcome::not_here("EVL does not count them"),
        Err(outcome) => return outcome,
    };
    let Some(faults) = &cobalt.faults else {
        return Outcome::unknown("the faults cannot be read");
    };
    let counted: Vec<_> = faults.iter().filter(|(kind, _)| !OF_DEBUGGERS.contains(&kind.as_str())).collect();
    if counted.is_empty() {
        return Outcome::ok("none since boot");
    }
    let texts = counted.iter().map(|(kind, count)| format!("{kind} {}", crate::wording::count(**count)));
    Outcome::may(format!("since boot: {}", texts.collect::<Vec<_>>().join(", "))).change(
        "lock the program's memory (mlockall(2)) and touch its stack first; column PF of /proc/xenomai/sched/stat shows the \
         thread",
        "nothing to undo",
    )
}

/// Governors that follow the load that Linux accounts (Documentation/admin-guide/pm/cpufreq.rst).
const BY_LOAD: [&str; 3] = ["ondemand", "conservative", "schedutil"];

fn governor(host: &Host) -> Outcome {
    if let Err(outcome) = core(host) {
        return outcome;
    }
    let Some(found) = host.governors.iter().find(|governor| BY_LOAD.contains(&governor.as_str())) else {
        return if host.governors.is_empty() {
            Outcome::not_here("no frequency scaling")
        } else {
            Outcome::ok(host.governors.join(", "))
        };
    };
    let files = "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor";
    Outcome::may(host.governors.join(", ")).write_all(files, "performance", found)
}

fn smi(host: &Host) -> Outcome {
    let cobalt = match core(host) {
        Ok((_, Core::Cobalt(cobalt))) => cobalt,
        Ok((_, Core::Evl(_))) => return Outcome::not_here("EVL does not change them"),
        Err(outcome) => return outcome,
    };
    if host.hypervisor.is_some() {
        return Outcome::not_here("the firmware is the host's");
    }
    match cobalt.has_smi_chipset {
        Some(true) => {}
        Some(false) => return Outcome::not_here("not a chipset that xenomai.smi acts on"),
        None => return Outcome::unknown("the chipset cannot be read"),
    }
    // The default of the parameter (smi_state_arg); numbers are its older form.
    let given = cobalt.parameters.get("smi").map_or("detect", String::as_str);
    match host.platform.smi_count {
        _ if matches!(given, "enabled" | "1") => Outcome::ok("xenomai.smi=enabled"),
        Some(0) => Outcome::ok("none since reset"),
        None => Outcome::unknown("the counter cannot be read; `modprobe msr`, as root"),
        Some(count) => Outcome::may(format!(
            "{} since reset; xenomai.smi={given} allows them",
            crate::wording::count(count)
        ))
        .boot_with("xenomai.smi=enabled")
        .caution(
            "it switches off every SMI of the chipset, also those that control fans and temperature, and the hardware \
                 may be damaged: watch the temperature, or name single sources by xenomai.smi_mask=; firmware may lock \
                 the register (`dmesg | grep SMI`)",
        ),
    }
}
