//! Checks of the kernel: preemption, timers, ticks, RCU, console, EFI.

use super::scheduling::sees_all_tasks;
use super::{Check, Outcome};
use punctual_model::{CpuSet, Host, Preemption};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "preemption-model",
        why: "A woken thread waits until the kernel can be preempted: with PREEMPT_NONE until the end of a system \
              call, with PREEMPT until the end of a spinlock or softirq, with PREEMPT_RT hardly at all.",
        source: "Documentation/core-api/real-time/kernel-configuration.rst (PREEMPT_RT: fatal), kernel/Kconfig.preempt",
        examine: preemption_model,
    },
    Check {
        name: "high-resolution-timers",
        why: "Without them every sleep ends at a tick, up to a whole tick late: 4 ms at 250 Hz.",
        source: "Documentation/timers/hrtimers.rst, kernel-parameters.txt (highres=)",
        examine: high_resolution_timers,
    },
    Check {
        name: "tick-rate",
        why: "Normal threads that share a CPU are switched at a tick. Real-time threads do not wait for it.",
        source: "kernel/Kconfig.hz, Documentation/scheduler/sched-eevdf.rst",
        examine: tick_rate,
    },
    Check {
        name: "skew-tick",
        why: "Where the ticks of all CPUs come at the same instant, their handlers wait for each other's locks.",
        source: "Documentation/admin-guide/kernel-parameters.txt (skew_tick=), kernel/time/tick-sched.c",
        examine: skew_tick,
    },
    Check {
        name: "rcu-priority",
        why: "Threads of RCU run before every real-time thread of a lower priority. Below a thread that keeps its CPU busy \
              they stall, and memory is not freed.",
        source: "Documentation/admin-guide/kernel-parameters.txt (rcutree.kthread_prio=)",
        examine: rcu_priority,
    },
    Check {
        name: "rcu-expedited",
        why: "An expedited RCU grace period interrupts every CPU that is not idle.",
        source: "Documentation/admin-guide/kernel-parameters.txt (rcupdate.rcu_normal, rcupdate.rcu_expedited)",
        examine: rcu_expedited,
    },
    Check {
        name: "serial-console",
        why: "Without PREEMPT_RT, the task that logs a kernel message writes it to a serial console with interrupts \
              off: 87 us a \
              character at 115200 baud, 7 ms a line.",
        source: "Documentation/admin-guide/serial-console.rst, Documentation/core-api/printk-basics.rst",
        examine: serial_console,
    },
    Check {
        name: "efi-runtime",
        why: "Calls into EFI firmware, for instance to set a variable, may run with interrupts off, on some machines on all \
              CPUs.",
        source: "Documentation/core-api/real-time/hardware.rst (EFI), kernel-configuration.rst (EFI_DISABLE_RUNTIME)",
        examine: efi_runtime,
    },
];

fn preemption_model(host: &Host) -> Outcome {
    let Some(model) = host.preemption else {
        return Outcome::unknown("the version names no model, and the kernel's configuration cannot be read");
    };
    let is_dynamic = host.kernel_version.as_deref().is_some_and(|version| version.contains("PREEMPT_DYNAMIC"));
    // `uname -v` shows PREEMPT_DYNAMIC instead of the model, so the text has both.
    let name =
        if is_dynamic { format!("{} (chosen by PREEMPT_DYNAMIC)", model.name()) } else { model.name().to_owned() };
    let found = match model {
        Preemption::Realtime => return Outcome::ok("PREEMPT_RT"),
        Preemption::None | Preemption::Voluntary => Outcome::will(name),
        Preemption::Dynamic => Outcome::may("chosen at boot (PREEMPT_DYNAMIC), and which one cannot be read"),
        Preemption::Full | Preemption::Lazy => Outcome::may(format!("{name}: threads wait for spinlocks and softirqs")),
    };
    if is_dynamic && model != Preemption::Full {
        return found.boot_with("preempt=full").caution("a kernel with PREEMPT_RT is better still");
    }
    let is_debian = host.kernel_version.as_deref().is_some_and(|version| version.contains("Debian"));
    let package = match host.architecture.as_deref().filter(|_| is_debian) {
        Some("x86_64") => Some("linux-image-rt-amd64"),
        Some("aarch64") => Some("linux-image-rt-arm64"),
        _ => None,
    };
    match package {
        Some(package) => found.change(format!("apt install {package}, then boot it"), format!("apt remove {package}")),
        None => found.change("boot a kernel built with CONFIG_PREEMPT_RT=y", "boot the former kernel"),
    }
}

fn high_resolution_timers(host: &Host) -> Outcome {
    if host.boot_parameter("highres") == Some("off") {
        return Outcome::will("switched off by the kernel parameter highres=off")
            .change("boot without highres=off", "kernel parameter highres=off");
    }
    match host.is_built_with("HIGH_RES_TIMERS") {
        Some(true) => Outcome::ok("built in and not switched off"),
        Some(false) => Outcome::will("the kernel is built without CONFIG_HIGH_RES_TIMERS")
            .change("boot a kernel built with CONFIG_HIGH_RES_TIMERS=y", "boot the former kernel"),
        None => Outcome::unknown("the kernel's configuration cannot be read"),
    }
}

fn tick_rate(host: &Host) -> Outcome {
    match host.kernel.tick_hz {
        Some(hz @ 1..=999) => {
            let tick = crate::wording::duration(1e9 / f64::from(hz));
            Outcome::may(format!("CONFIG_HZ={hz}: normal threads take turns of {tick} or more"))
                .change("boot a kernel built with CONFIG_HZ=1000", "boot the former kernel")
        }
        Some(hz) => Outcome::ok(format!("CONFIG_HZ={hz}")),
        None => Outcome::unknown("the kernel's configuration cannot be read"),
    }
}

/// Number of CPUs from which on their ticks are said to disturb each other.
const MANY_CPUS: usize = 8;

fn skew_tick(host: &Host) -> Outcome {
    match (host.boot_parameter("skew_tick"), host.cpus_online.as_ref().map(CpuSet::len)) {
        (Some(word), _) if word != "0" => Outcome::ok(format!("skew_tick={word}: each CPU has its own instant")),
        (_, None) => Outcome::unknown("the number of CPUs cannot be read"),
        (_, Some(cpus)) if cpus < MANY_CPUS => Outcome::ok(format!("too few CPUs to matter: {cpus}")),
        (_, Some(cpus)) => Outcome::may(format!("{cpus} CPUs have their tick at the same instant"))
            .boot_with("skew_tick=1")
            .caution("idle CPUs wake at different times then, which costs energy"),
    }
}

fn rcu_priority(host: &Host) -> Outcome {
    let of_rcu = host.tasks.realtime.iter().filter(|task| task.is_kernel && task.name.starts_with("rcu"));
    match (of_rcu.filter_map(|task| task.priority).max(), host.boot_parameter("rcutree.kthread_prio")) {
        (None, _) if sees_all_tasks(host) => Outcome::ok("they are normal threads"),
        (None, _) => Outcome::unknown("not all threads of the machine can be seen here"),
        (Some(priority), _) if priority <= 1 => Outcome::ok(format!("fifo:{priority}")),
        (Some(priority), asked) => {
            let found = Outcome::may(format!("they run as fifo:{priority}"));
            let parameter = |value| format!("kernel parameter rcutree.kthread_prio={value}");
            match asked {
                Some(value) => found.change(format!("boot without rcutree.kthread_prio={value}"), parameter(value)),
                None => found.boot_with("rcutree.kthread_prio=1"),
            }
        }
    }
}

fn rcu_expedited(host: &Host) -> Outcome {
    match (host.kernel.rcu_expedited, host.kernel.rcu_normal) {
        (_, Some(true)) => Outcome::ok("rcu_normal=1: no grace period is expedited"),
        (Some(true), _) => {
            Outcome::may("rcu_expedited=1: every grace period is expedited").write("/sys/kernel/rcu_expedited", 0, 1)
        }
        (_, Some(false)) => {
            Outcome::may("rcu_normal=0: grace periods are expedited on request").write("/sys/kernel/rcu_normal", 1, 0)
        }
        (_, None) => Outcome::unknown("rcu_normal cannot be read"),
    }
}

/// Console log level: messages below it are errors and worse, which should be shown (syslog(2)).
const QUIET_LEVEL: u32 = 4;

fn serial_console(host: &Host) -> Outcome {
    let is_serial = |name: &&String| {
        let kind = name.strip_prefix("tty").unwrap_or_default();
        kind.starts_with(|c: char| c.is_ascii_uppercase() || ["mxc", "sc"].iter().any(|uart| kind.starts_with(uart)))
    };
    let Some(console) = host.kernel.consoles.iter().find(is_serial) else {
        return if host.kernel.consoles.is_empty() {
            Outcome::unknown("the consoles cannot be read")
        } else {
            Outcome::ok(format!("consoles: {}", host.kernel.consoles.join(" ")))
        };
    };
    match host.kernel.console_level {
        _ if host.preemption == Some(Preemption::Realtime) => Outcome::ok(format!("{console}, written by a thread")),
        Some(level) if level > QUIET_LEVEL => Outcome::may(format!("{console} gets every message below level {level}"))
            .change(format!("dmesg -n {QUIET_LEVEL}"), format!("dmesg -n {level}")),
        Some(level) => Outcome::ok(format!("{console} gets only messages below level {level}")),
        None => Outcome::unknown(format!("{console}; which messages it gets cannot be read")),
    }
}

fn efi_runtime(host: &Host) -> Outcome {
    let options: Vec<&str> = host.boot_parameter("efi").unwrap_or_default().split(',').collect();
    match (host.kernel.efi, host.is_built_with("EFI_DISABLE_RUNTIME")) {
        (Some(false), _) => Outcome::not_here("not started by EFI"),
        _ if options.contains(&"noruntime") => Outcome::ok("switched off by the kernel parameter efi=noruntime"),
        (None, _) => Outcome::unknown("whether EFI started this machine cannot be read"),
        (_, Some(true)) if !options.contains(&"runtime") => Outcome::ok("off by default in this kernel"),
        (_, None) if host.preemption == Some(Preemption::Realtime) && !options.contains(&"runtime") => {
            Outcome::ok("off by default with PREEMPT_RT")
        }
        _ => Outcome::may("the kernel may call the firmware")
            .boot_with("efi=noruntime")
            .caution("EFI variables, such as the boot order, cannot be read or set then"),
    }
}
