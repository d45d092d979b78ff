//! The traced events, their scope, and the information that is lost where the kernel lacks them.

/// The threads of which an event is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventScope {
    /// All threads.
    AllThreads,
    /// The measured threads: this field of the event identifies them.
    MeasuredThreads(&'static str),
    /// All threads, where this filter holds.
    Where(&'static str),
}

/// One kind of event, traced where the kernel has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventRequest {
    /// Path below `events/`: `system/event`.
    pub(super) path: &'static str,
    /// The threads of which it is traced.
    pub(super) of: EventScope,
    /// The information that is lost without it; `None` where another event provides it as well.
    pub(super) tells: Option<&'static str>,
}

const fn all_threads(path: &'static str, tells: Option<&'static str>) -> EventRequest {
    EventRequest { path, of: EventScope::AllThreads, tells }
}

/// The traced events, as few as identify all causes: each one costs time on the traced machine. Without the first two
/// there is no explanation at all.
const EVENTS: [EventRequest; 17] = [
    all_threads("sched/sched_switch", None),
    EventRequest { path: "sched/sched_waking", of: EventScope::MeasuredThreads("pid"), tells: None },
    EventRequest {
        path: "timer/hrtimer_start",
        of: EventScope::MeasuredThreads("common_pid"),
        tells: Some("timer slack, and own overruns"),
    },
    all_threads("timer/hrtimer_expire_entry", Some("the interrupt of the timer, and stalls of all CPUs")),
    all_threads("timer/timer_expire_entry", Some("the timers of a softirq TIMER")),
    all_threads("sched/sched_pi_setprio", Some("threads that inherit a priority, which then seem to keep the CPU")),
    all_threads("irq/irq_handler_entry", Some("interrupts of devices")),
    all_threads("irq/irq_handler_exit", None),
    all_threads("irq/softirq_entry", Some("softirqs")),
    all_threads("irq/softirq_exit", None),
    all_threads("nmi/nmi_handler", Some("non-maskable interrupts")),
    all_threads(IDLE, Some("the idle state that a CPU left")),
    all_threads("workqueue/workqueue_execute_start", Some("the work items of kernel workers")),
    EventRequest {
        path: "exceptions/page_fault_user",
        of: EventScope::MeasuredThreads("common_pid"),
        tells: Some("page faults, which then look like a stalled CPU"),
    },
    all_threads("ipi/ipi_entry", None),
    all_threads("ipi/ipi_exit", None),
    all_threads("ftrace/print", None),
];

/// A set of events, for one purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventSet {
    /// Those that explain late wake-ups of the measured threads.
    Explanation,
    /// Those of the scheduling of some threads.
    Scheduling,
    /// The switches of all threads.
    Switches,
    /// The packets of all threads, and what delivers them.
    Packets,
    /// All that some threads do and that happens to them, where [`super::Instance::follow`] limits them.
    Activity,
    /// The explanation of late wake-ups without what [`EventSet::Activity`] has.
    Surroundings,
    /// Both of them, of all threads.
    Everything,
}

impl EventSet {
    /// The events of the set.
    pub(super) fn requests(self) -> Vec<EventRequest> {
        let is_of_all = |wanted: &EventRequest| wanted.of == EventScope::AllThreads;
        match self {
            EventSet::Explanation => EVENTS.to_vec(),
            EventSet::Scheduling => SCHEDULING.to_vec(),
            EventSet::Switches => vec![all_threads("sched/sched_switch", None)],
            EventSet::Packets => PACKETS.to_vec(),
            EventSet::Activity => ACTIVITY.to_vec(),
            EventSet::Surroundings => EVENTS.into_iter().filter(is_of_all).collect(),
            EventSet::Everything => {
                let is_new = |wanted: &EventRequest| ACTIVITY.iter().all(|known| known.path != wanted.path);
                ACTIVITY.into_iter().chain(EVENTS.into_iter().filter(is_of_all).filter(is_new)).collect()
            }
        }
    }

    /// Whether the processor's own interrupts belong to it.
    pub(super) fn has_vectors(self) -> bool {
        !matches!(self, EventSet::Scheduling | EventSet::Switches | EventSet::Packets)
    }
}

/// The events of what some threads do. Those without which nothing can be told are among [`NEEDED`].
const ACTIVITY: [EventRequest; 13] = [
    all_threads("sched/sched_switch", None),
    all_threads("sched/sched_waking", None),
    all_threads("raw_syscalls/sys_enter", None),
    all_threads("raw_syscalls/sys_exit", None),
    all_threads("timer/hrtimer_start", Some("due times of timers")),
    all_threads("exceptions/page_fault_user", Some("page faults")),
    all_threads("sched/sched_pi_setprio", Some("inherited priorities")),
    all_threads("sched/sched_process_exit", Some("the end of threads")),
    all_threads("sched/sched_stat_runtime", None),
    all_threads("irq/irq_handler_entry", None),
    all_threads("irq/irq_handler_exit", None),
    all_threads("irq/softirq_entry", None),
    all_threads("irq/softirq_exit", None),
];

/// The events of the scheduling of some threads, and of the CPUs that they wait for. All are needed.
const SCHEDULING: [EventRequest; 3] = [
    all_threads("sched/sched_switch", None),
    EventRequest { path: "sched/sched_waking", of: EventScope::MeasuredThreads("pid"), tells: None },
    EventRequest { path: "sched/sched_migrate_task", of: EventScope::MeasuredThreads("pid"), tells: None },
];

/// The softirq that receives packets (include/linux/interrupt.h).
const fn receiving(path: &'static str) -> EventRequest {
    EventRequest { path, of: EventScope::Where("vec == 3"), tells: None }
}

/// The events of received packets. All are needed.
const PACKETS: [EventRequest; 7] = [
    all_threads("irq/irq_handler_entry", None),
    all_threads("irq/irq_handler_exit", None),
    receiving("irq/softirq_raise"),
    receiving("irq/softirq_entry"),
    receiving("irq/softirq_exit"),
    all_threads("net/netif_rx", None),
    all_threads("net/netif_receive_skb", None),
];

/// Events of all system calls.
pub(super) const SYSTEM_CALLS: [&str; 2] = ["raw_syscalls/sys_enter", "raw_syscalls/sys_exit"];

/// Event of entering and leaving an idle state.
pub(super) const IDLE: &str = "power/cpu_idle";

/// Events without which nothing can be explained, where they are requested.
pub(super) const NEEDED: [&str; 7] = [
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_migrate_task",
    "raw_syscalls/sys_enter",
    "raw_syscalls/sys_exit",
    "net/netif_rx",
    "net/netif_receive_skb",
];

/// Most measured threads for a filter by ID; more are filtered by thread name, because a filter is at most a page long.
const MAX_PIDS: usize = 64;

/// The filter for the measured threads; `pids` is `None` when their IDs in the kernel's namespace are not known.
pub(super) fn filter(field: &str, pids: Option<&[i32]>) -> String {
    match pids.filter(|pids| pids.len() <= MAX_PIDS) {
        Some(pids) => pids.iter().map(|pid| format!("{field} == {pid}")).collect::<Vec<_>>().join(" || "),
        // `comm` is the name in the event, or else that of the current thread.
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
    fn everything_is_of_all_threads_and_requested_once() {
        let all = EventSet::Everything.requests();
        assert!(all.iter().all(|wanted| wanted.of == EventScope::AllThreads));
        let mut paths: Vec<_> = all.iter().map(|wanted| wanted.path).collect();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), all.len());
        let has = |wanted: &EventRequest| paths.contains(&wanted.path);
        assert!(EVENTS.iter().chain(&ACTIVITY).all(has));
    }

    #[test]
    fn what_is_needed_is_wanted() {
        let all = || EVENTS.iter().chain(&SCHEDULING).chain(&ACTIVITY).chain(&PACKETS);
        assert!(NEEDED.iter().all(|needed| all().any(|wanted| wanted.path == *needed)));
    }
}
