//! Checks of the isolation of CPUs from other work.

use super::{Check, Outcome, text};
use punctual_model::{CpuSet, Host};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "isolated-cpus",
        why: "The scheduler places other threads on a CPU that is not isolated, and balances its load with other CPUs.",
        source: "Documentation/admin-guide/kernel-parameters.txt (isolcpus=), cgroup-v2.rst (cpuset.cpus.partition)",
        examine: isolated_cpus,
    },
    Check {
        name: "nohz-full",
        why: "On these CPUs every system call and interrupt does time accounting. For periodic threads that costs more \
              than the tick it saves; for threads that only compute it is a gain.",
        source: "Documentation/core-api/real-time/kernel-configuration.rst (NO_HZ_FULL), Documentation/timers/no_hz.rst",
        examine: nohz_full,
    },
    Check {
        name: "timer-migration",
        why: "The timer of a thread that sleeps on a nohz_full CPU is armed on another CPU, which has to wake it from there.",
        source: "kernel/sched/core.c (get_nohz_timer_target), kernel/time/hrtimer.c (get_target_base)",
        examine: timer_migration,
    },
    Check {
        name: "rcu-callbacks",
        why: "RCU callbacks run in a softirq of the CPU that queued them, unless they are offloaded.",
        source: "Documentation/admin-guide/kernel-per-CPU-kthreads.rst (RCU_SOFTIRQ), kernel-parameters.txt (rcu_nocbs=)",
        examine: |host| of_isolated(host, rcu_callbacks),
    },
    Check {
        name: "workqueues",
        why: "Unbound kernel work may run on any CPU of this mask.",
        source: "Documentation/core-api/workqueue.rst, Documentation/admin-guide/kernel-per-CPU-kthreads.rst (kworker)",
        examine: |host| of_isolated(host, workqueues),
    },
    Check {
        name: "smt",
        why: "Two hardware threads share the core's units and caches: one slows the other by up to a half, at any \
              moment.",
        source: "Documentation/admin-guide/hw-vuln/l1tf.rst (SMT control), core-api/real-time/hardware.rst",
        examine: smt,
    },
    Check {
        name: "numa-balancing",
        why: "The kernel unmaps pages of running threads to see which node uses them: each first access then faults.",
        source: "Documentation/admin-guide/sysctl/kernel.rst (numa_balancing)",
        examine: numa_balancing,
    },
    Check {
        name: "memory-nodes",
        why: "Memory of another node takes about twice as long to reach, and passes over a link that others use.",
        source: "numa(7), numactl(8)",
        examine: memory_nodes,
    },
];

/// The isolated CPUs; without any, the outcome of a check that applies to isolated CPUs only.
pub(super) fn isolated(host: &Host) -> Result<CpuSet, Outcome> {
    match host.isolated() {
        None => Err(Outcome::unknown("the isolated CPUs cannot be read")),
        Some(cpus) if cpus.is_empty() => Err(Outcome::not_here("no CPU is isolated")),
        Some(cpus) => Ok(cpus),
    }
}

/// The outcome of a check that applies to isolated CPUs only.
pub(super) fn of_isolated(host: &Host, examine: fn(&Host, &CpuSet) -> Outcome) -> Outcome {
    isolated(host).map_or_else(std::convert::identity, |isolated| examine(host, &isolated))
}

/// Online CPUs that are not isolated.
pub(super) fn housekeeping(host: &Host, isolated: &CpuSet) -> CpuSet {
    host.cpus_online.as_ref().map(|online| online.minus(isolated)).unwrap_or_default()
}

fn isolated_cpus(host: &Host) -> Outcome {
    let Some(online) = &host.cpus_online else { return Outcome::unknown("the CPUs on line cannot be read") };
    match isolated(host) {
        _ if online.len() < 2 => Outcome::not_here("there is one CPU only"),
        Ok(cpus) => Outcome::ok(text::cpus(&cpus)),
        Err(outcome) if outcome.severity == super::Severity::Unknown => outcome,
        Err(_) => {
            let half = half_of(online, &host.processors.siblings);
            Outcome::may("none").boot_with(&format!("isolcpus=managed_irq,domain,{half}")).caution(
                "only threads that ask for these CPUs run there then; with cgroup v2 an isolated cpuset does it without a boot",
            )
        }
    }
}

/// Upper half of the CPUs, in whole cores if cores run several threads.
fn half_of(online: &CpuSet, cores: &[CpuSet]) -> CpuSet {
    if cores.is_empty() {
        return online.iter().skip(online.len().div_ceil(2)).collect();
    }
    cores.iter().skip(cores.len().div_ceil(2)).flat_map(CpuSet::iter).collect()
}

fn nohz_full(host: &Host) -> Outcome {
    match &host.scheduling.nohz_full {
        Some(cpus) if !cpus.is_empty() => {
            let parameter = format!("nohz_full={cpus}");
            Outcome::may(format!("time is accounted at each entry to the kernel on {}", text::cpus(cpus)))
                .change(format!("boot without {parameter}"), format!("kernel parameter {parameter}"))
        }
        Some(_) => Outcome::ok("none"),
        None if host.is_built_with("NO_HZ_FULL") == Some(false) => Outcome::ok("not built in"),
        None => Outcome::unknown("nohz_full cannot be read"),
    }
}

fn timer_migration(host: &Host) -> Outcome {
    match (host.scheduling.timer_migration, &host.scheduling.nohz_full) {
        (Some(false), _) => Outcome::ok("off"),
        (None, _) => Outcome::unknown("timer_migration cannot be read"),
        (Some(true), Some(cpus)) if !cpus.is_empty() => {
            let found = format!("on: timers of {} are armed elsewhere", text::cpus(cpus));
            Outcome::may(found).sysctl("kernel.timer_migration", 0, 1)
        }
        (Some(true), _) => Outcome::ok("on; timers of running threads stay on their CPU without nohz_full"),
    }
}

fn rcu_callbacks(host: &Host, isolated: &CpuSet) -> Outcome {
    let online = host.cpus_online.clone().unwrap_or_default();
    let offloaded = match host.boot_parameter("rcu_nocbs") {
        None if host.is_built_with("RCU_NOCB_CPU_DEFAULT_ALL") == Some(true) => online,
        None => CpuSet::default(),
        Some("" | "all") => online,
        Some(list) => match list.parse() {
            Ok(cpus) => cpus,
            Err(_) => return Outcome::unknown(format!("rcu_nocbs={list} is in a form that is not read here")),
        },
    };
    // CPUs in nohz_full= are offloaded too.
    let left = isolated.minus(&offloaded).minus(&host.scheduling.nohz_full.clone().unwrap_or_default());
    if left.is_empty() {
        return Outcome::ok("offloaded from the isolated CPUs");
    }
    let outcome = Outcome::may(format!("callbacks of isolated {} run there", text::cpus(&left)));
    outcome.boot_with(&format!("rcu_nocbs={isolated}")).caution("needs a kernel with CONFIG_RCU_NOCB_CPU")
}

fn workqueues(host: &Host, isolated: &CpuSet) -> Outcome {
    let Some(mask) = &host.scheduling.workqueue_cpus else {
        return Outcome::unknown("the mask of workqueues cannot be read");
    };
    let common = mask.common(isolated);
    if common.is_empty() {
        return Outcome::ok(format!("work runs on {}", text::cpus(mask)));
    }
    Outcome::may(format!("may run on isolated {}", text::cpus(&common))).write(
        "/sys/devices/virtual/workqueue/cpumask",
        text::mask(&mask.minus(isolated)),
        text::mask(mask),
    )
}

const SMT_CONTROL: &str = "/sys/devices/system/cpu/smt/control";

fn smt(host: &Host) -> Outcome {
    let processors = &host.processors;
    match (processors.smt_active, processors.smt.as_deref()) {
        (Some(false), _) if host.hypervisor.is_some() => Outcome::not_here(
            "no core with two threads is visible in the guest; only the host knows which vCPUs \
                               share one",
        ),
        (Some(false), _) => Outcome::ok("no core runs two threads"),
        (Some(true), _) => {
            let isolated = host.isolated().unwrap_or_default();
            let shared = processors.siblings.iter().filter(|core| !core.common(&isolated).is_empty());
            let others: CpuSet = shared.flat_map(|core| core.iter()).filter(|cpu| !isolated.contains(*cpu)).collect();
            let divided = format!("; isolated CPUs share a core with {}", text::cpus(&others));
            let divided = if others.is_empty() { "" } else { &divided };
            Outcome::may(format!("on: two threads a core{divided}")).write(SMT_CONTROL, "off", "on")
        }
        (None, Some("notsupported" | "notimplemented")) => Outcome::ok("no core runs two threads"),
        (None, _) if processors.siblings.is_empty() && !processors.caches.is_empty() => {
            Outcome::ok("no core runs two threads")
        }
        (None, _) => Outcome::unknown("whether cores run two threads cannot be read"),
    }
}

fn numa_balancing(host: &Host) -> Outcome {
    match host.scheduling.numa_balancing {
        _ if host.processors.nodes.len() == 1 => Outcome::not_here("one memory node only"),
        None if host.is_built_with("NUMA_BALANCING") == Some(false) => Outcome::not_here("not built in"),
        None if host.processors.nodes.is_empty() => Outcome::not_here("no memory nodes"),
        None => Outcome::unknown("numa_balancing cannot be read"),
        Some(false) => Outcome::ok("off"),
        Some(true) => Outcome::may("on").sysctl("kernel.numa_balancing", 0, 1),
    }
}

fn memory_nodes(host: &Host) -> Outcome {
    let nodes = host.processors.nodes.iter().filter(|node| node.memory_bytes.is_none_or(|bytes| bytes > 0));
    let nodes: Vec<_> = nodes.collect();
    let Some(first) = nodes.get(1).and(nodes.first()) else {
        return Outcome::not_here("one memory node only");
    };
    let n = first.node;
    Outcome::may(format!(
        "{}: memory of a thread may lie on another than its CPU's",
        crate::wording::things(nodes.len() as u64, "memory node")
    ))
    .change(format!("numactl --cpunodebind={n} --membind={n} COMMAND"), "COMMAND without numactl")
}
