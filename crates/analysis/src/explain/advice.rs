//! Advice on each cause, and the related checks of `punctual doctor`.

use model::Cause;

/// Advice on a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// The action, in a few words.
    pub what: &'static str,
    /// Names of the related checks of `punctual doctor`, which print the commands.
    pub checks: &'static [&'static str],
}

/// Advice on a cause; `None` if there is nothing to change.
pub fn advice(cause: Cause) -> Option<Advice> {
    let (what, checks): (_, &[_]) = match cause {
        Cause::Steal => (
            "VM: on its host, pin its vCPUs to CPUs of their own; hardware: look for SMIs (rtla hwnoise)",
            &["virtual-machine", "steal", "smi"],
        ),
        Cause::IrqsOff => {
            ("keep that task off the CPU, or use a PREEMPT_RT kernel", &["isolated-cpus", "preemption-model", "tracer"])
        }
        Cause::NonPreemptible => {
            ("boot with preempt=full, or use a PREEMPT_RT kernel", &["preemption-model", "workqueues"])
        }
        Cause::Softirq => (
            "move the device's interrupt to other CPUs; PREEMPT_RT makes softirqs preemptible",
            &["irq-affinity", "rcu-callbacks", "preemption-model"],
        ),
        Cause::Interrupt => (
            "move the device's interrupt to other CPUs; keep programs off the CPU that use many timers, or whose timers \
                 wake many threads",
            &["irq-affinity", "default-irq-affinity", "irqbalance"],
        ),
        Cause::HigherPriority => (
            "give the thread a priority above that of the other one; above SCHED_DEADLINE there is none",
            &["other-realtime-tasks", "irq-threads", "realtime-permission"],
        ),
        Cause::EqualPriority => {
            ("give the thread a priority of its own; threads of equal priority queue", &["other-realtime-tasks"])
        }
        Cause::Throttling => (
            "find the limit that applied: real-time throttling, or the quota of the cgroup",
            &["rt-throttling", "fair-server", "rt-group-budget", "cpu-quota"],
        ),
        Cause::Demoted => (
            "find what lowered its priority: rtkit, systemd, chrt or sched_setscheduler(2) in another program",
            &["realtime-permission"],
        ),
        Cause::FairScheduling => (
            "use --policy fifo:80 or deadline, or keep other threads off the CPU",
            &["realtime-permission", "isolated-cpus"],
        ),
        Cause::TimerSlack => {
            ("reduce it: --timer-slack 1ns, PR_SET_TIMERSLACK(2const); real-time threads have none", &[])
        }
        Cause::IdleExit => {
            ("disable deep idle states: hold 0 in /dev/cpu_dma_latency", &["idle-states", "idle-poll", "guest-halt"])
        }
        Cause::PageFault => (
            "lock the program's memory (mlockall) and prefault it",
            &["memory-lock", "locked-pages", "swap", "compaction"],
        ),
        Cause::Stopped => ("find the sender of SIGSTOP, the debugger, or what froze its control group", &[]),
        Cause::OwnOverrun => {
            ("use a longer period if this one is too short for the machine; else explain the wake-up before", &[])
        }
        Cause::Away => ("examine the link and the responding machine; this one waited", &[]),
        Cause::VcpuWaiting => (
            "host: give vCPUs CPUs of their own, or a real-time policy (vcpu_cpus, vcpu_policy)",
            &["virtual-machine", "steal"],
        ),
        Cause::EmulatorWaiting => (
            "host: give the emulator a CPU of its own, or a policy above that of the load (emulator_cpus, emulator_policy)",
            &[],
        ),
        Cause::Guest => ("explain the same cell with fewer wake-ups, so that the guest's trace covers it", &[]),
        Cause::Emulation => ("use clock=kvm; times of a translated guest are not those of hardware", &[]),
        Cause::GuestStopped => ("find the sender of SIGSTOP, or the program that stopped the guest over QMP", &[]),
        Cause::LongRun => ("find what it computed: --stacks names the line of code", &[]),
        Cause::Lock => ("hold the lock for less time; use one with priority inheritance (PTHREAD_PRIO_INHERIT)", &[]),
        Cause::KernelLock => {
            ("do not use that file in the loop, or change the memory map, while other threads of the program do", &[])
        }
        Cause::PriorityInversion => ("use a lock with priority inheritance (PTHREAD_PRIO_INHERIT)", &[]),
        Cause::Storage => ("write files in a thread of its own, outside of the loop", &[]),
        Cause::Memory => (
            "allocate before the loop; keep freed memory (mallopt M_TRIM_THRESHOLD, M_MMAP_THRESHOLD), lock it (mlockall)",
            &["memory-lock", "locked-pages"],
        ),
        Cause::SystemCall => ("keep calls that can wait out of the loop, or make them in a thread of its own", &[]),
        Cause::Migration => ("give the thread a CPU of its own (taskset, pthread_setaffinity_np)", &["isolated-cpus"]),
        // The events name no cause, so there is no advice.
        Cause::UsualRun | Cause::Ordinary | Cause::Unknown => return None,
    };
    Some(Advice { what, checks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_checks_that_there_are() {
        let names: Vec<_> = crate::machine::doctor::checks().map(|check| check.name).collect();
        let causes = [
            Cause::Steal,
            Cause::IrqsOff,
            Cause::NonPreemptible,
            Cause::Softirq,
            Cause::Interrupt,
            Cause::HigherPriority,
            Cause::EqualPriority,
            Cause::Throttling,
            Cause::Demoted,
            Cause::FairScheduling,
            Cause::TimerSlack,
            Cause::IdleExit,
            Cause::PageFault,
            Cause::Stopped,
            Cause::OwnOverrun,
            Cause::Away,
            Cause::VcpuWaiting,
            Cause::EmulatorWaiting,
            Cause::Guest,
            Cause::Emulation,
            Cause::GuestStopped,
            Cause::LongRun,
            Cause::Lock,
            Cause::KernelLock,
            Cause::PriorityInversion,
            Cause::Storage,
            Cause::Memory,
            Cause::SystemCall,
            Cause::Migration,
        ];
        for cause in causes {
            let advice = advice(cause).unwrap();
            assert!(advice.checks.iter().all(|check| names.contains(check)), "{cause:?}: {advice:?}");
        }
        assert_eq!([Cause::Ordinary, Cause::UsualRun, Cause::Unknown].map(advice), [None, None, None]);
    }
}
