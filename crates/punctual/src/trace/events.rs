//! Which events are traced, of whom, and what is lost where the kernel has them not.

/// Of which threads an event is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// Of all.
    Everybody,
    /// Of the measured threads: this field of the event names them.
    Measured(&'static str),
}

/// One kind of event that is traced where the kernel has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// Below `events/`: `system/event`.
    pub(super) path: &'static str,
    /// Of whom.
    pub(super) of: Of,
    /// What cannot be told without it; `None`: something else tells it as well.
    pub(super) tells: Option<&'static str>,
}

const fn everybody(path: &'static str, tells: Option<&'static str>) -> Wanted {
    Wanted { path, of: Of::Everybody, tells }
}

/// The events, as few as tell all causes: each costs the traced machine time. Without the first two there is no
/// explanation at all.
pub(super) const WANTED: [Wanted; 15] = [
    everybody("sched/sched_switch", None),
    Wanted { path: "sched/sched_waking", of: Of::Measured("pid"), tells: None },
    Wanted {
        path: "timer/hrtimer_start",
        of: Of::Measured("common_pid"),
        tells: Some("timer slack, and own overruns"),
    },
    everybody("timer/hrtimer_expire_entry", Some("which interrupt was the timer's, and standstills of all CPUs")),
    everybody("irq/irq_handler_entry", Some("interrupts of devices")),
    everybody("irq/irq_handler_exit", None),
    everybody("irq/softirq_entry", Some("softirqs")),
    everybody("irq/softirq_exit", None),
    everybody("nmi/nmi_handler", Some("non-maskable interrupts")),
    everybody(IDLE, Some("the idle state that a CPU came back from")),
    everybody("workqueue/workqueue_execute_start", Some("what kernel workers work on")),
    Wanted {
        path: "exceptions/page_fault_user",
        of: Of::Measured("common_pid"),
        tells: Some("page faults, which then look like a CPU that stood still"),
    },
    everybody("ipi/ipi_entry", None),
    everybody("ipi/ipi_exit", None),
    everybody("ftrace/print", None),
];

/// Idle states are entered and left.
pub(super) const IDLE: &str = "power/cpu_idle";

/// Events without which there is nothing to explain.
pub(super) const NEEDED: [&str; 2] = ["sched/sched_switch", "sched/sched_waking"];

/// Interrupts of the processor itself are traced, each by a pair of events in this directory, where there are any (x86).
pub(super) const VECTORS: &str = "irq_vectors";
/// Ends of their names.
pub(super) const BEGIN: &str = "_entry";
pub(super) const END: &str = "_exit";

/// Above so many measured threads, their events are picked by the threads' names: a filter is at most a page long.
const MOST_PIDS: usize = 64;

/// The filter for the measured threads; `None` in place of ids: they are not known as the kernel numbers them.
pub(super) fn filter(field: &str, pids: Option<&[i32]>) -> String {
    match pids.filter(|pids| pids.len() <= MOST_PIDS) {
        Some(pids) => pids.iter().map(|pid| format!("{field} == {pid}")).collect::<Vec<_>>().join(" || "),
        // `comm` is the name in the event, or else that of who is current.
        None => "comm ~ \"measured/*\"".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_name_the_threads_or_their_pattern() {
        assert_eq!(filter("pid", Some(&[7])), "pid == 7");
        assert_eq!(filter("common_pid", Some(&[7, 8])), "common_pid == 7 || common_pid == 8");
        assert_eq!(filter("pid", None), "comm ~ \"measured/*\"");
        let many: Vec<i32> = (0..65).collect();
        assert_eq!(filter("pid", Some(&many[..64])).matches("||").count(), 63);
        assert_eq!(filter("pid", Some(&many)), "comm ~ \"measured/*\"");
    }

    #[test]
    fn what_is_needed_is_wanted() {
        assert!(NEEDED.iter().all(|needed| WANTED.iter().any(|wanted| wanted.path == *needed)));
    }
}
