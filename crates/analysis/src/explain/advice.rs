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
#[must_use]
pub fn advice(cause: Cause) -> Option<Advice> {
    let (what, checks): (_, &[_]) = match cause {
        Cause::Steal => (
            "give the guest CPUs of its own, or ask the firmware's maker about SMIs",
            &["virtual-machine", "steal", "smi"],
        ),
        Cause::IrqsOff => (
            "keep who does it off the CPU, or take a kernel that does it for less long",
            &["isolated-cpus", "preemption-model", "tracer"],
        ),
        Cause::NonPreemptible => {
            ("boot with preempt=full, or take a PREEMPT_RT kernel", &["preemption-model", "workqueues"])
        }
        Cause::Softirq => (
            "handle that device on other CPUs; PREEMPT_RT makes softirqs preemptible",
            &["irq-affinity", "rcu-callbacks", "preemption-model"],
        ),
        Cause::Interrupt => (
            "handle a device's interrupt on other CPUs; keep programs off the CPU that start many timers, or whose timers \
                 wake many threads",
            &["irq-affinity", "default-irq-affinity", "irqbalance"],
        ),
        Cause::HigherPriority => (
            "give the thread a priority above that of who ran",
            &["other-realtime-tasks", "irq-threads", "realtime-permission"],
        ),
        Cause::EqualPriority => ("give the thread a priority of its own; equal ones queue", &["other-realtime-tasks"]),
        Cause::Throttling => (
            "see which limit it was: of real-time threads, or of the control group",
            &["rt-throttling", "fair-server", "rt-group-budget", "cpu-quota"],
        ),
        Cause::FairScheduling => (
            "run the thread as fifo or deadline, or keep others off its CPU",
            &["realtime-permission", "isolated-cpus"],
        ),
        Cause::TimerSlack => {
            ("ask for less: --timer-slack, PR_SET_TIMERSLACK(2const); real-time threads have none", &[])
        }
        Cause::IdleExit => {
            ("forbid deep idle states: hold 0 in /dev/cpu_dma_latency", &["idle-states", "idle-poll", "guest-halt"])
        }
        Cause::PageFault => (
            "lock the program's memory (mlockall) and touch it before",
            &["memory-lock", "locked-pages", "swap", "compaction"],
        ),
        Cause::Stopped => ("find out who sent SIGSTOP, or leave the debugger", &[]),
        Cause::OwnOverrun => (
            "take a longer period, if this one is too short for the machine; else see what held up the wake-up before",
            &[],
        ),
        Cause::Away => ("look at the link and at the machine that answers; this one waited", &[]),
        // The events name no cause, so there is no advice.
        Cause::Ordinary | Cause::Unknown => return None,
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
            Cause::FairScheduling,
            Cause::TimerSlack,
            Cause::IdleExit,
            Cause::PageFault,
            Cause::Stopped,
            Cause::OwnOverrun,
            Cause::Away,
        ];
        for cause in causes {
            let advice = advice(cause).unwrap();
            assert!(advice.checks.iter().all(|check| names.contains(check)), "{cause:?}: {advice:?}");
        }
        assert_eq!([Cause::Ordinary, Cause::Unknown].map(advice), [None, None]);
    }
}
