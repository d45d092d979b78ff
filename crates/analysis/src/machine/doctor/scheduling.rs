//! Checks of scheduling limits and of other threads that compete for the CPU.

use super::{Check, Outcome, text};
use punctual_model::{Host, OnCpus, Scheduling};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "rt-throttling",
        why: "Real-time threads that together use up their share of a period are throttled for the rest of it.",
        source: "sched(7), Documentation/scheduler/sched-rt-group.rst",
        examine: rt_throttling,
    },
    Check {
        name: "fair-server",
        why: "Since Linux 6.12 normal threads get 50 ms of each second on a CPU that real-time threads keep busy.",
        source: "kernel/sched/deadline.c (fair_server_init), kernel/sched/debug.c (fair_server)",
        examine: fair_server,
    },
    Check {
        name: "ext-server",
        why: "Threads of a BPF scheduler get CPU time beside real-time threads that keep a CPU busy, as normal threads do.",
        source: "kernel/sched/ext.c (ext_server_init), kernel/sched/debug.c (ext_server)",
        examine: ext_server,
    },
    Check {
        name: "rt-group-budget",
        why: "Where groups have real-time budgets, a group without one may have no real-time thread at all, and one that uses \
              its budget up is stopped.",
        source: "Documentation/scheduler/sched-rt-group.rst",
        examine: rt_group_budget,
    },
    Check {
        name: "cpu-quota",
        why: "Normal threads of a group that has used up its quota are stopped to the end of the period, 100 ms as a rule.",
        source: "Documentation/scheduler/sched-bwc.rst, Documentation/admin-guide/cgroup-v2.rst (cpu.max)",
        examine: cpu_quota,
    },
    Check {
        name: "autogroup",
        why: "Each session gets the same share of the CPU, so that nice values count only within a session, and a load \
              started elsewhere weighs as much as everything here.",
        source: "sched(7), The autogroup feature",
        examine: autogroup,
    },
    Check {
        name: "energy-aware",
        why: "Where CPUs differ, the kernel puts normal threads on the CPU that needs the least energy for them: mostly a \
              slow one, and another one when the load changes.",
        source: "Documentation/scheduler/sched-energy.rst",
        examine: energy_aware,
    },
    Check {
        name: "sched-ext",
        why: "A BPF program schedules the normal threads by its own rules.",
        source: "Documentation/scheduler/sched-ext.rst",
        examine: sched_ext,
    },
    Check {
        name: "other-realtime-tasks",
        why: "A real-time thread of another program runs before every thread of a lower priority, without a time \
              limit; a deadline thread before all of them.",
        source: "sched(7)",
        examine: other_realtime_tasks,
    },
    Check {
        name: "irq-threads",
        why: "Threaded interrupt handlers run before every real-time thread of a lower priority; their default \
              priority is 50.",
        source: "kernel/irq/manage.c (irq_thread), Documentation/core-api/real-time/theory.rst",
        examine: irq_threads,
    },
];

/// Whether all tasks of the machine are visible; in a container they are not.
pub(super) fn sees_all_tasks(host: &Host) -> bool {
    host.tasks.is_complete && host.container.is_none()
}

/// Whether real-time group budgets are enforced, including that of the root group; `None` if unknown.
fn has_rt_groups(host: &Host) -> Option<bool> {
    if host.scheduling.cgroup_rt_runtime_us.is_some() {
        return Some(true);
    }
    let built = host.is_built_with("RT_GROUP_SCHED")?;
    let parameter = host.boot_parameter("rt_group_sched");
    let is_off = match parameter {
        Some(word) => matches!(word, "0" | "n" | "off"),
        None => host.is_built_with("RT_GROUP_SCHED_DEFAULT_DISABLED") == Some(true),
    };
    Some(built && !is_off)
}

/// Caution for limits whose removal allows a busy real-time thread to block its CPU.
const NO_SPINNING: &str = "only where no real-time thread can run without end: nothing would stop it then";

fn rt_throttling(host: &Host) -> Outcome {
    match (host.has_fair_server(), has_rt_groups(host)) {
        (Some(true), Some(false)) => return Outcome::not_here("Linux 6.12 and later: see fair-server"),
        (Some(true), None) => return Outcome::unknown("it takes CONFIG_RT_GROUP_SCHED here, which cannot be read"),
        _ => {}
    }
    let (Some(runtime), Some(period)) = (host.rt_runtime_us, host.rt_period_us) else {
        return Outcome::unknown("sched_rt_runtime_us cannot be read");
    };
    match u64::try_from(runtime) {
        Ok(runtime_us) if runtime_us < period => {
            let (runtime_text, rest) = (text::micros(runtime_us), text::micros(period - runtime_us));
            let period = text::micros(period);
            Outcome::may(format!("real-time threads that use {runtime_text} of {period} are stopped for {rest}"))
                .sysctl("kernel.sched_rt_runtime_us", -1, runtime)
                .caution(NO_SPINNING)
        }
        _ => Outcome::ok(format!("sched_rt_runtime_us={runtime}: no limit")),
    }
}

fn fair_server(host: &Host) -> Outcome {
    match host.has_fair_server() {
        None => Outcome::unknown("the kernel's release is not known"),
        Some(false) => Outcome::not_here("it came with Linux 6.12"),
        Some(true) => server(host, "fair_server", "normal threads", &host.scheduling.fair_server_runtime_us),
    }
}

fn ext_server(host: &Host) -> Outcome {
    let read = &host.scheduling.ext_server_runtime_us;
    match host.scheduling.sched_ext.as_deref() {
        None => Outcome::not_here("this kernel does not support such schedulers"),
        Some("none") => Outcome::ok("none is loaded"),
        Some(_) if read.is_empty() => Outcome::unknown("debugfs does not show whether this kernel has one"),
        Some(name) => server(host, "ext_server", &format!("threads of {name}"), read),
    }
}

/// The outcome of a deadline server that gives CPU time to `threads`, with its runtimes as far as they could be read.
fn server(host: &Host, name: &str, threads: &str, read: &[OnCpus<u64>]) -> Outcome {
    if !read.is_empty() && read.iter().all(|on| on.value == 0) {
        return Outcome::ok("switched off on every CPU");
    }
    let share = read.iter().map(|on| on.value).max().map_or_else(
        || "50 ms of each second (the default; debugfs cannot be read)".to_owned(),
        |us| format!("up to {} of each period", text::micros(us)),
    );
    let before = read.iter().map(|on| on.value).max().unwrap_or(50_000).saturating_mul(1000);
    let found = Outcome::may(format!("{threads} get {share} from busy real-time threads"));
    // A locked-down kernel denies debugfs even to root (kernel_lockdown(7)).
    if let Some(level @ ("integrity" | "confidentiality")) = host.kernel.lockdown.as_deref() {
        return found
            .change(
                format!(
                    "boot a kernel that is not locked down (here: {level}); then `punctual doctor` names the command"
                ),
                "boot the former kernel",
            )
            .caution(NO_SPINNING);
    }
    found
        .write_all(&format!("/sys/kernel/debug/sched/{name}/cpu*/runtime"), "0", &before.to_string())
        .caution(NO_SPINNING)
}

fn rt_group_budget(host: &Host) -> Outcome {
    let scheduling = &host.scheduling;
    let Some(runtime) = scheduling.cgroup_rt_runtime_us else {
        return match has_rt_groups(host) {
            Some(false) => Outcome::not_here("unsupported by this kernel, or switched off"),
            _ => Outcome::unknown("the budget of this group cannot be read"),
        };
    };
    let (group, file) = (scheduling.group(), format!("/sys/fs/cgroup/{}", scheduling.rt_budget_file()));
    let name = text::shortened(group);
    let period = scheduling.cgroup_rt_period_us.unwrap_or(1_000_000);
    match u64::try_from(runtime) {
        _ if scheduling.lacks_rt_budget() => {
            Outcome::will(format!("group {name} has none: a real-time policy is refused"))
                .write(&file, Scheduling::RT_BUDGET_US, 0)
                .caution("the group above it must have as much to give")
        }
        Ok(us) if group != "/" && us < period => {
            let (runtime, period) = (text::micros(us), text::micros(period));
            Outcome::may(format!("group {name}: real-time threads that use {runtime} of {period} are stopped"))
                .write(&file, Scheduling::RT_BUDGET_US, us)
                .caution("the group above it must have as much to give")
        }
        _ => Outcome::ok(format!("group {name} has no limit of its own")),
    }
}

fn cpu_quota(host: &Host) -> Outcome {
    let scheduling = &host.scheduling;
    let Some(quota) = scheduling.cpu_quota_us else {
        return match host.is_built_with("CFS_BANDWIDTH") {
            Some(false) => Outcome::not_here("unsupported by this kernel"),
            _ => Outcome::unknown("the quota of this group cannot be read"),
        };
    };
    let (Ok(quota_us), Some(period)) = (u64::try_from(quota), scheduling.cpu_quota_period_us) else {
        return Outcome::ok("none");
    };
    let group = text::shortened(scheduling.cgroup.as_deref().unwrap_or("/"));
    let (quota_text, period_text) = (text::micros(quota_us), text::micros(period));
    Outcome::may(format!("normal threads of group {group} get {quota_text} of CPU time each {period_text}"))
        .change("start it outside of that group, or the container without --cpus and --cpu-quota", "start it as before")
}

fn autogroup(host: &Host) -> Outcome {
    match host.scheduling.autogroup {
        None => Outcome::not_here("this kernel has no autogroups"),
        Some(false) => Outcome::ok("off"),
        Some(true) => Outcome::may("on: sessions share the CPU equally, whatever their nice values").sysctl(
            "kernel.sched_autogroup_enabled",
            0,
            1,
        ),
    }
}

fn energy_aware(host: &Host) -> Outcome {
    match host.scheduling.energy_aware {
        None => Outcome::not_here("the kernel has no energy model of these CPUs"),
        Some(false) => Outcome::ok("off"),
        Some(true) if host.processors.capacities.len() < 2 => Outcome::not_here("all CPUs are alike"),
        Some(true) => Outcome::may("on").sysctl("kernel.sched_energy_aware", 0, 1),
    }
}

fn sched_ext(host: &Host) -> Outcome {
    match host.scheduling.sched_ext.as_deref() {
        None => Outcome::not_here("this kernel does not support such schedulers"),
        Some("none") => Outcome::ok("none is loaded"),
        Some(name) => Outcome::may(format!("{name} is loaded"))
            .change("stop the program that loaded it, or press SysRq-S", "start that program again"),
    }
}

/// The highest priority, which the kernel's migration and watchdog threads have (sched(7)).
const HIGHEST: u32 = 99;

fn other_realtime_tasks(host: &Host) -> Outcome {
    const SHOWN: usize = 4;
    let others: Vec<_> = host.tasks.realtime.iter().filter(|task| !task.is_kernel).collect();
    let Some(first) = others.first() else {
        return if sees_all_tasks(host) {
            Outcome::ok("none but the kernel's own")
        } else {
            Outcome::unknown("not all programs of the machine can be seen here")
        };
    };
    let describe = |task: &&punctual_model::RealtimeTask| {
        let priority = task.priority.map(|priority| format!(":{priority}")).unwrap_or_default();
        let times = if task.count > 1 { format!(" x {}", task.count) } else { String::new() };
        format!("{} {}{priority}{times}", task.name, task.policy)
    };
    let more = others.len().checked_sub(SHOWN).filter(|more| *more > 0).map(|more| format!(" and {more} more"));
    let names = others.iter().take(SHOWN).map(describe).collect::<Vec<_>>().join(", ");
    if let Some(task) = host.tasks.spinning.first() {
        return Outcome::will(task.to_string())
            .change(format!("kill {}", task.tid), format!("start {} again", task.name));
    }
    let at_99 = others.iter().find(|task| task.priority == Some(HIGHEST));
    let at_99 = at_99.map(|task| format!("; {} at {HIGHEST} runs before the kernel's own threads", task.name));
    let crowded = host.tasks.crowded.iter().map(|one| format!("; all on CPU {}: {}", one.cpu, one.threads.join(", ")));
    let unfit = at_99.into_iter().chain(crowded).collect::<String>();
    let outcome = Outcome::may(format!("{names}{}{unfit}", more.unwrap_or_default()));
    let Some(priority) = first.priority else {
        return outcome.change(format!("stop {}", first.name), format!("start {} again", first.name));
    };
    let policy = &first.policy;
    outcome
        .change(format!("stop it, or chrt --{policy} --pid 1 TID"), format!("chrt --{policy} --pid {priority} TID"))
        .caution("ps -eLo tid,cls,rtprio,comm shows the TID of each")
}

/// Default priority of interrupt threads: `MAX_RT_PRIO / 2` (kernel/sched/syscalls.c, `sched_set_fifo`).
const IRQ_PRIORITY: u32 = 50;

fn irq_threads(host: &Host) -> Outcome {
    let threads: Vec<_> = host.tasks.realtime.iter().filter(|task| task.is_irq_thread()).collect();
    let raised: Vec<_> = threads.iter().filter(|task| task.priority > Some(IRQ_PRIORITY)).collect();
    if let Some(first) = raised.first() {
        let names = raised.iter().map(|task| format!("{} at {}", task.name, task.priority.unwrap_or(0)));
        let (usual, before) = (IRQ_PRIORITY, first.priority.unwrap_or(0));
        return Outcome::may(names.collect::<Vec<_>>().join(", "))
            .change(format!("chrt --fifo --pid {usual} PID"), format!("chrt --fifo --pid {before} PID"))
            .caution("ps -eo pid,cls,rtprio,comm shows the PID of each");
    }
    match (threads.is_empty(), sees_all_tasks(host)) {
        (false, _) => Outcome::ok(format!("at {IRQ_PRIORITY} or below: give threads that must not wait for them more")),
        (true, true) => Outcome::not_here("interrupt handlers do not run as threads"),
        (true, false) => Outcome::unknown("not all threads of the machine can be seen here"),
    }
}
