//! Checks of debug options, built in or switched on, that cost time.

use super::{Check, Outcome};
use punctual_model::Host;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "lock-checking",
        why: "Lock validation adds work to every lock, most of all in the worst case.",
        source: "Documentation/core-api/real-time/kernel-configuration.rst (PROVE_LOCKING: high)",
        examine: lock_checking,
    },
    Check {
        name: "memory-checking",
        why: "Sanitizers and poisoning add work to every memory access or allocation of the kernel.",
        source: "Documentation/dev-tools/kasan.rst, kcsan.rst, kmsan.rst, kmemleak.rst; Documentation/mm/slab.rst",
        examine: memory_checking,
    },
    Check {
        name: "debug-checks",
        why: "Most debug options of the kernel add run-time overhead and increase the worst case.",
        source: "Documentation/core-api/real-time/kernel-configuration.rst (Kernel Debug Options)",
        examine: debug_checks,
    },
    Check {
        name: "latency-tracers",
        why: "The tracers irqsoff and preemptoff cost time wherever interrupts are switched, even while not in use.",
        source: "Documentation/core-api/real-time/kernel-configuration.rst (IRQSOFF_TRACER, PREEMPT_TRACER: high)",
        examine: latency_tracers,
    },
    Check {
        name: "tracer",
        why: "A running tracer adds overhead to what it traces: the function tracer to every function of the kernel.",
        source: "Documentation/trace/ftrace.rst, kernel-configuration.rst (TRACING)",
        examine: tracer,
    },
];

/// Those of `options` that are built in; `None` if the kernel configuration is unknown.
fn built_in(host: &Host, options: &[&'static str]) -> Option<Vec<&'static str>> {
    host.kernel.config_file.as_ref()?;
    Some(options.iter().copied().filter(|option| host.is_built_with(option) == Some(true)).collect())
}

fn other_kernel(outcome: Outcome, options: &[&str]) -> Outcome {
    let without: Vec<_> = options.iter().map(|option| format!("CONFIG_{option}")).collect();
    outcome.change(format!("boot a kernel built without {}", without.join(", ")), "boot the former kernel")
}

const UNREADABLE: &str = "no /proc/config.gz (modprobe configs) or /boot/config-$(uname -r)";

fn lock_checking(host: &Host) -> Outcome {
    match built_in(host, &["PROVE_LOCKING", "LOCKDEP", "DEBUG_LOCK_ALLOC"]) {
        Some(options) if !options.is_empty() => other_kernel(Outcome::will(options.join(", ")), &options),
        _ if host.kernel.lockdep == Some(true) => {
            other_kernel(Outcome::will("the kernel has /proc/lockdep_stats: it checks its locks"), &["PROVE_LOCKING"])
        }
        Some(_) => Outcome::ok("not built in"),
        None if host.kernel.lockdep == Some(false) => Outcome::ok("no /proc/lockdep_stats"),
        None => Outcome::unknown(UNREADABLE),
    }
}

fn memory_checking(host: &Host) -> Outcome {
    let always = ["KASAN", "KCSAN", "KMSAN", "DEBUG_KMEMLEAK", "DEBUG_PAGEALLOC_ENABLE_DEFAULT", "SLUB_DEBUG_ON"];
    let built = built_in(host, &always);
    if let Some(options) = built.as_ref().filter(|options| !options.is_empty()) {
        return other_kernel(Outcome::will(options.join(", ")), options);
    }
    for parameter in ["slub_debug", "slab_debug"] {
        if let Some(value) = host.boot_parameter(parameter).filter(|value| *value != "-") {
            let setting = if value.is_empty() { parameter.to_owned() } else { format!("{parameter}={value}") };
            return Outcome::will(format!("kernel parameter {setting}"))
                .change(format!("boot without {setting}"), format!("kernel parameter {setting}"));
        }
    }
    built.map_or_else(|| Outcome::unknown(UNREADABLE), |_| Outcome::ok("none built in"))
}

fn debug_checks(host: &Host) -> Outcome {
    match built_in(host, &["DEBUG_OBJECTS", "DEBUG_PREEMPT", "DEBUG_SPINLOCK", "DEBUG_MUTEXES", "DEBUG_VM", "UBSAN"]) {
        Some(options) if options.is_empty() => Outcome::ok("none built in"),
        Some(options) => other_kernel(Outcome::may(options.join(", ")), &options),
        None => Outcome::unknown(UNREADABLE),
    }
}

fn latency_tracers(host: &Host) -> Outcome {
    match built_in(host, &["IRQSOFF_TRACER", "PREEMPT_TRACER"]) {
        Some(options) if options.is_empty() => Outcome::ok("not built in"),
        Some(options) => other_kernel(Outcome::may(options.join(", ")), &options),
        None => Outcome::unknown(UNREADABLE),
    }
}

fn tracer(host: &Host) -> Outcome {
    match host.kernel.tracer.as_deref() {
        None => Outcome::unknown("current_tracer cannot be read; root can"),
        Some("nop") => Outcome::ok("none in use"),
        Some(tracer) => {
            Outcome::will(format!("{tracer} is in use")).write("/sys/kernel/tracing/current_tracer", "nop", tracer)
        }
    }
}
