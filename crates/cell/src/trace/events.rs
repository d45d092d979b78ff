//! Which events are traced, of whom, and what is lost where the kernel has them not.

/// Of which threads an event is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventScope {
    /// Of all.
    AllThreads,
    /// Of the measured threads: this field of the event names them.
    MeasuredThreads(&'static str),
}

/// One kind of event that is traced where the kernel has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventRequest {
    /// Below `events/`: `system/event`.
    pub(super) path: &'static str,
    /// Of whom.
    pub(super) of: EventScope,
    /// What cannot be told without it; `None`: something else tells it as well.
    pub(super) tells: Option<&'static str>,
}

const fn all_threads(path: &'static str, tells: Option<&'static str>) -> EventRequest {
    EventRequest { path, of: EventScope::AllThreads, tells }
}

/// The events, as few as tell all causes: each costs the traced machine time. Without the first two there is no
/// explanation at all.
pub(super) const EVENTS: [EventRequest; 17] = [
    all_threads("sched/sched_switch", None),
    EventRequest { path: "sched/sched_waking", of: EventScope::MeasuredThreads("pid"), tells: None },
    EventRequest {
        path: "timer/hrtimer_start",
        of: EventScope::MeasuredThreads("common_pid"),
        tells: Some("timer slack, and own overruns"),
    },
    all_threads("timer/hrtimer_expire_entry", Some("which interrupt was the timer's, and standstills of all CPUs")),
    all_threads("timer/timer_expire_entry", Some("which timers a softirq TIMER runs")),
    all_threads(
        "sched/sched_pi_setprio",
        Some("threads that inherit a priority, which then look as if they kept the CPU"),
    ),
    all_threads("irq/irq_handler_entry", Some("interrupts of devices")),
    all_threads("irq/irq_handler_exit", None),
    all_threads("irq/softirq_entry", Some("softirqs")),
    all_threads("irq/softirq_exit", None),
    all_threads("nmi/nmi_handler", Some("non-maskable interrupts")),
    all_threads(IDLE, Some("the idle state that a CPU came back from")),
    all_threads("workqueue/workqueue_execute_start", Some("what kernel workers work on")),
    EventRequest {
        path: "exceptions/page_fault_user",
        of: EventScope::MeasuredThreads("common_pid"),
        tells: Some("page faults, which then look like a CPU that stood still"),
    },
    all_threads("ipi/ipi_entry", None),
    all_threads("ipi/ipi_exit", None),
    all_threads("ftrace/print", None),
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
        assert!(NEEDED.iter().all(|needed| EVENTS.iter().any(|wanted| wanted.path == *needed)));
    }
}
