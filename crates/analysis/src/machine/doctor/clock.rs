//! Checks of clocks and timers.

use super::{Check, Outcome, text};
use crate::machine::facts::FAST_CLOCKS;
use punctual_model::{CpuSet, Host};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "clock-source",
        why: "Reading a clock that is a device takes a microsecond or more, in every system call that needs the time, and \
              the device is shared by all CPUs.",
        source: "Documentation/timers/timekeeping.rst, clock_gettime(2), vdso(7)",
        examine: clock_source,
    },
    Check {
        name: "tsc",
        why: "A time stamp counter that changes its rate or stops in deep idle states makes the kernel fall back to a slow \
              clock, possibly while measuring.",
        source: "arch/x86/kernel/tsc.c, Intel SDM volume 3, 19.17.1 (invariant TSC)",
        examine: tsc,
    },
    Check {
        name: "tsc-watchdog",
        why: "Twice a second a timer on one CPU after the other compares the counter with a slower clock, and the kernel \
              drops the counter if they differ, which a late timer suffices for.",
        source: "kernel/time/clocksource.c, arch/x86/kernel/tsc.c (check_system_tsc_reliable), kernel-parameters.txt (tsc=)",
        examine: tsc_watchdog,
    },
    Check {
        name: "counter-rate",
        why: "Arm and RISC-V processors count time at a fixed rate. Where it is low, each instant and each latency is a \
              multiple of many nanoseconds, and a timer expires up to one count late.",
        source: "Documentation/devicetree/bindings/riscv/cpus.yaml (timebase-frequency), Arm ARM D12 (CNTFRQ_EL0)",
        examine: counter_rate,
    },
    Check {
        name: "timer-device",
        why: "A timer that is not per CPU is programmed over the bus, and its interrupt is forwarded to the waiting \
              CPU.",
        source: "Documentation/timers/highres.rst, kernel/time/tick-broadcast.c",
        examine: timer_device,
    },
];

const FILE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

fn clock_source(host: &Host) -> Outcome {
    let Some(clock) = &host.clock_source else { return Outcome::unknown("the clock source cannot be read") };
    if FAST_CLOCKS.contains(&clock.as_str()) {
        return Outcome::ok(clock);
    }
    let slow = Outcome::will(format!("{clock} is slow to read"));
    match host.clocks.available.iter().find(|clock| FAST_CLOCKS.contains(&clock.as_str())) {
        Some(better) => slow.write(FILE, better, clock),
        None => slow.change("dmesg | grep -i clocksource (why the kernel distrusts the fast one)", "nothing to undo"),
    }
}

fn tsc(host: &Host) -> Outcome {
    match (host.clocks.tsc_is_invariant, host.clock_source.as_deref()) {
        (None, _) => Outcome::not_here("no time stamp counter found"),
        (Some(true), _) => Outcome::ok("constant_tsc and nonstop_tsc"),
        (Some(false), Some("tsc")) => {
            Outcome::may("the clock source is a counter without constant_tsc and nonstop_tsc")
                .boot_with("processor.max_cstate=1")
                .caution("keeps it from stopping; its rate may still change with the frequency")
        }
        (Some(false), _) => Outcome::not_here("the counter is not the clock source"),
    }
}

fn tsc_watchdog(host: &Host) -> Outcome {
    /// Memory nodes up to which kernels since these trust a counter whose register shows every write (b50db7095fe0,
    /// 233756a640be).
    const MOST_NODES: [((u32, u32), usize); 2] = [((6, 2), 4), ((5, 16), 2)];
    if host.clock_source.as_deref() != Some("tsc") {
        return Outcome::not_here("the counter is not the clock source");
    }
    if let Some(word @ ("reliable" | "nowatchdog")) = host.boot_parameter("tsc") {
        return Outcome::ok(format!("tsc={word}: nothing watches it"));
    }
    let Host { clocks, processors, .. } = host;
    let has_register = clocks.tsc_is_invariant == Some(true) && clocks.tsc_has_adjust == Some(true);
    let Some(version) = host.kernel_version_number() else {
        return Outcome::unknown("the kernel's release is not known");
    };
    let is_trusted = |(since, most)| version >= since && processors.nodes.len() <= most;
    if has_register && MOST_NODES.into_iter().any(is_trusted) {
        return Outcome::ok("the kernel trusts this counter");
    }
    match clocks.available.iter().find(|clock| *clock != "tsc") {
        None => Outcome::ok("no other clock is there to watch it"),
        Some(clock) => Outcome::may(format!("{clock} watches it"))
            .boot_with("tsc=nowatchdog")
            .caution("only where the counters of all CPUs are known to agree: nothing would notice otherwise"),
    }
}

fn counter_rate(host: &Host) -> Outcome {
    /// A latency is then known to a tenth of a microsecond.
    const FAST_HZ: u64 = 10_000_000;
    match (host.clocks.counter_hz, host.architecture.as_deref()) {
        (Some(hz), _) if hz > 0 => {
            let step = text::nanos((1_000_000_000 + hz / 2) / hz);
            if hz >= FAST_HZ {
                return Outcome::ok(format!("{step} a count"));
            }
            Outcome::may(format!("times come in steps of {step}")).change(
                format!("give limits that are many times {step}: the hardware has this rate"),
                "nothing to undo",
            )
        }
        (_, Some("x86_64")) => Outcome::not_here("x86 counts in fractions of a nanosecond"),
        _ => Outcome::unknown("nothing names the rate of the counter"),
    }
}

fn timer_device(host: &Host) -> Outcome {
    let is_slow = |device: &str| ["hpet", "pit", "bc_hrtimer"].iter().any(|slow| device.starts_with(slow));
    let devices = &host.clocks.timer_devices;
    if devices.is_empty() {
        return Outcome::unknown("the timers cannot be read");
    }
    let slow: CpuSet = devices.iter().filter(|on| is_slow(&on.value)).flat_map(|on| on.cpus.iter()).collect();
    let names: Vec<_> = devices.iter().map(|on| on.value.as_str()).collect();
    if slow.is_empty() {
        return Outcome::ok(names.join(", "));
    }
    let outcome = Outcome::may(format!("{}: {}", text::cpus(&slow), names.join(", ")));
    match ["nolapic", "nolapic_timer"].into_iter().find(|word| host.boot_parameter(word).is_some()) {
        Some(word) => outcome.change(format!("boot without {word}"), format!("kernel parameter {word}")),
        None => outcome,
    }
}
