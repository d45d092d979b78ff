//! Causes: what reports say about each besides its name, in one table.

use punctual_model::Cause;

/// Texts and color of a cause.
#[derive(Debug, Clone, Copy)]
pub struct CauseRow {
    /// Color in pictures: kinds of causes, as many as eyes tell apart.
    pub color: u8,
    /// Clause on a share of time: `{owner}` is the owner, `{took}` the length, `{time}` the same with its pieces.
    pub(super) clause: &'static str,
    /// The action against it, in a few words; `None` if there is nothing to change.
    pub advice: Option<&'static str>,
    /// Names of the related checks of `punctual doctor`, which print the commands.
    pub checks: &'static [&'static str],
}

impl CauseRow {
    const fn advice(self, advice: &'static str) -> CauseRow {
        CauseRow { advice: Some(advice), ..self }
    }

    const fn checks(self, checks: &'static [&'static str]) -> CauseRow {
        CauseRow { checks, ..self }
    }
}

const fn row(color: u8, clause: &'static str) -> CauseRow {
    CauseRow { color, clause, advice: None, checks: &[] }
}

/// The row of a cause.
pub const fn row_of(cause: Cause) -> CauseRow {
    match cause {
        Cause::CpuStalled => row(4, "the CPU was stalled (host, SMI) for {time} under {owner}")
            .advice("VM: on its host, pin its vCPUs to CPUs of their own; hardware: look for SMIs (rtla hwnoise)")
            .checks(&["virtual-machine", "steal", "smi"]),
        Cause::InterruptsOff => row(3, "{owner} disabled interrupts for {time}")
            .advice("keep that task off the CPU, or use a PREEMPT_RT kernel")
            .checks(&["isolated-cpus", "preemption-model", "tracer"]),
        Cause::NotPreemptible => row(1, "{owner} ran {time} in the kernel, not preemptible")
            .advice("boot with preempt=full, or use a PREEMPT_RT kernel")
            .checks(&["preemption-model", "workqueues"]),
        Cause::Softirq => row(2, "{owner} ran {time}")
            .advice("move the device's interrupt to other CPUs; PREEMPT_RT makes softirqs preemptible")
            .checks(&["irq-affinity", "rcu-callbacks", "preemption-model"]),
        Cause::Interrupt => row(2, "{owner} ran {time}")
            .advice(
                "move the device's interrupt to other CPUs; keep programs off the CPU that use many timers, or \
                 whose timers wake many threads",
            )
            .checks(&["irq-affinity", "default-irq-affinity", "irqbalance"]),
        Cause::HigherPriority => row(0, "{owner}, of higher priority, ran {time}")
            .advice("give the thread a priority above that of the other one; above SCHED_DEADLINE there is none")
            .checks(&["other-realtime-tasks", "irq-threads", "realtime-permission"]),
        Cause::EqualPriority => row(0, "{owner}, of the same priority, ran first, {time}")
            .advice("give the thread a priority of its own; threads of equal priority queue")
            .checks(&["other-realtime-tasks"]),
        Cause::Throttling => row(5, "throttling let {owner} run {time} instead")
            .advice("find the limit that applied: real-time throttling, or the quota of the cgroup")
            .checks(&["rt-throttling", "fair-server", "rt-group-budget", "cpu-quota"]),
        Cause::Demoted => row(0, "{owner} ran {time}: the priority of the thread had been lowered")
            .advice("find what lowered its priority: rtkit, systemd, chrt or sched_setscheduler(2) in another program")
            .checks(&["realtime-permission"]),
        Cause::FairScheduling => row(0, "{owner} ran {time}: the fair scheduler shares the CPU")
            .advice("use --policy fifo:80 or deadline, or keep other threads off the CPU")
            .checks(&["realtime-permission", "isolated-cpus"]),
        Cause::TimerSlack => row(6, "its timer was allowed to expire {took} later (timer slack)")
            .advice("reduce it: --timer-slack 1ns, PR_SET_TIMERSLACK(2const); real-time threads have none"),
        Cause::IdleExit => row(6, "the idle CPU took {time} to wake up")
            .advice("disable deep idle states: hold 0 in /dev/cpu_dma_latency")
            .checks(&["idle-states", "idle-poll", "guest-halt"]),
        Cause::PageFault => row(7, "page faults of the thread took {time}")
            .advice("lock the program's memory (mlockall) and prefault it")
            .checks(&["memory-lock", "locked-pages", "swap", "compaction"]),
        Cause::Stopped => row(5, "it was stopped for {time}")
            .advice("find the sender of SIGSTOP, the debugger, or what froze its control group"),
        Cause::OwnOverrun => row(7, "the measured thread was not yet waiting for {time}")
            .advice("use a longer period if this one is too short for the machine; else explain the wake-up before"),
        Cause::LinkAndTarget => row(7, "the answer took {time} on the link and at the responder")
            .advice("examine the link and the responding machine; this one waited"),
        Cause::VcpuOffTheCpu => row(0, "{owner} ran {time} on the host instead of the vCPU")
            .advice("host: give vCPUs CPUs of their own, or a real-time policy (vcpu_cpus, vcpu_policy)")
            .checks(&["virtual-machine", "steal"]),
        Cause::EmulatorOffTheCpu => row(
            1,
            "{owner} ran {time} on the host instead of the emulator, which was to wake the \
             vCPU",
        )
        .advice(
            "host: give the emulator a CPU of its own, or a policy above that of the load \
                 (emulator_cpus, emulator_policy)",
        ),
        Cause::InsideTheGuest => row(7, "the vCPU ran {time} on the host: the guest itself was late")
            .advice("explain the same cell with fewer wake-ups, so that the guest's trace covers it"),
        Cause::Emulation => row(4, "the emulator worked for {time}")
            .advice("use clock=kvm; times of a translated guest are not those of hardware"),
        Cause::GuestStopped => row(5, "the guest was stopped on the host for {time}")
            .advice("find the sender of SIGSTOP, or the program that stopped the guest over QMP"),
        Cause::RanLonger => {
            row(7, "it ran {time}, longer than usual").advice("find what it computed: --stacks names the line of code")
        }
        Cause::Lock => row(3, "it waited {time} for a lock")
            .advice("hold the lock for less time; use one with priority inheritance (PTHREAD_PRIO_INHERIT)"),
        Cause::KernelLock => row(3, "it waited {time} for a lock of the kernel").advice(
            "do not use that file in the loop, or change the memory map, while other threads of the \
                 program do",
        ),
        Cause::PriorityInversion => row(3, "priority inversion: it waited {time} for a lock")
            .advice("use a lock with priority inheritance (PTHREAD_PRIO_INHERIT)"),
        Cause::Disk => {
            row(7, "it waited {time} for a disk").advice("write files in a thread of its own, outside of the loop")
        }
        Cause::MemoryAllocation => row(7, "memory allocation took {time}")
            .advice(
                "allocate before the loop; keep freed memory (mallopt M_TRIM_THRESHOLD, M_MMAP_THRESHOLD), lock \
                 it (mlockall)",
            )
            .checks(&["memory-lock", "locked-pages"]),
        Cause::SystemCall => row(7, "a system call took {time}")
            .advice("keep calls that can wait out of the loop, or make them in a thread of its own"),
        Cause::Migration => row(7, "moving it to another CPU took {time}")
            .advice("give the thread a CPU of its own (taskset, pthread_setaffinity_np)")
            .checks(&["isolated-cpus"]),
        Cause::KernelEntry => row(2, "the way into the kernel and back took {time}"),
        Cause::Firmware => row(4, "the firmware stopped the CPU for {time} (SMI)")
            .advice("look for settings of the firmware (power, USB legacy, error handling); no kernel lowers it")
            .checks(&["smi"]),
        Cause::Hypervisor => row(4, "the hypervisor did not run the CPU for {time}")
            .advice("on its host, pin the vCPUs to CPUs of their own; no setting of this machine lowers it")
            .checks(&["virtual-machine", "steal"]),
        Cause::UsualRun => row(8, "its usual run took {time}"),
        Cause::UsualWakeUp => row(8, "the usual wake-up took {took}"),
        Cause::Unknown => row(7, "no event explains {time} with {owner} on the CPU"),
    }
}

/// Clauses where the trace allows two causes.
pub(super) const EITHER: &[(Cause, Cause, &str)] = &[
    (
        Cause::InterruptsOff,
        Cause::CpuStalled,
        "{owner} disabled interrupts for {time}, or the CPU was stalled (host, SMI)",
    ),
    (
        Cause::NotPreemptible,
        Cause::CpuStalled,
        "{owner} ran {time} in the kernel, not preemptible, or the CPU was stalled (host, SMI)",
    ),
    (Cause::IdleExit, Cause::CpuStalled, "the idle CPU took {time} to wake up, or was stalled (host, SMI)"),
    (Cause::HigherPriority, Cause::Throttling, "{owner} preempted it for {time}"),
    (Cause::Throttling, Cause::CpuStalled, "it was throttled for {time}, or the CPU was stalled (host, SMI)"),
    (
        Cause::CpuStalled,
        Cause::Interrupt,
        "the CPU was stalled (host, SMI) for {time} under {owner}, or {owner} ran so long",
    ),
    (Cause::RanLonger, Cause::CpuStalled, "it ran {time}, longer than usual, or the CPU was stalled (host, SMI)"),
    (
        Cause::OwnOverrun,
        Cause::CpuStalled,
        "the measured thread was not yet waiting for {time}, or the CPU was stalled (host, SMI)",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_checks_that_there_are() {
        let names: Vec<_> = crate::machine::doctor::checks().map(|check| check.name).collect();
        for cause in Cause::ALL {
            assert!(row_of(cause).checks.iter().all(|check| names.contains(check)), "{cause:?}");
            let is_named = !matches!(cause, Cause::KernelEntry | Cause::UsualWakeUp | Cause::UsualRun | Cause::Unknown);
            assert_eq!(row_of(cause).advice.is_some(), is_named, "{cause:?}");
        }
    }
}
