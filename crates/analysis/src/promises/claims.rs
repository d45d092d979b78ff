//! What is promised, by which document, and how often a disturbance looks like a broken promise.

use punctual_model::Claim;

/// A promise in words, and its statistics.
pub(super) struct Claimed {
    claim: Claim,
    pub(super) document: &'static str,
    pub(super) asked: &'static str,
    /// Cases in which it does not hold.
    pub(super) broken: &'static str,
    /// Cases of its control.
    pub(super) control: &'static str,
    /// The measured value, and what it is compared with.
    pub(super) quantity: Option<&'static str>,
    pub(super) limit: &'static str,
    /// Upper limit of the share of cases that a disturbance breaks.
    pub(super) disturbed: f64,
    /// Share of broken cases that the test is to find.
    pub(super) detects: f64,
}

/// The order of events on one CPU: no interrupt, theft or stall of it changes the order. Not 0, because another program
/// may change policies and CPUs of threads.
const CAUSAL: Claimed = Claimed {
    claim: Claim::Move,
    document: "",
    asked: "",
    broken: "",
    control: "",
    quantity: None,
    limit: "",
    disturbed: 0.01,
    detects: 0.1,
};

/// Two CPUs, or amounts of CPU time: a hypervisor that delays one CPU, or an interrupt between them, may break a case.
const DISTURBABLE: Claimed = Claimed { disturbed: 0.2, detects: 0.5, ..CAUSAL };

/// What a single case disproves.
const NEVER: Claimed = Claimed { disturbed: 1e-10, ..CAUSAL };

const INHERITED: Claimed = Claimed {
    document: "futex(2), pthread_mutexattr_getprotocol(3p)",
    broken: "waits with time of the hog",
    control: "with a plain mutex the hog ran to its end",
    quantity: Some("hog ran"),
    limit: "of",
    ..CAUSAL
};

const CLAIMS: &[Claimed] = &[
    Claimed {
        claim: Claim::OneHolder,
        asked: "a wait for a mutex with PTHREAD_PRIO_INHERIT lasts for its holder's section, without the time of a \
                hog of middle priority",
        ..INHERITED
    },
    Claimed {
        claim: Claim::ChainOfHolders,
        asked: "the same for chains of 2 to 10 mutexes, whose holders wait for each other",
        ..INHERITED
    },
    Claimed {
        claim: Claim::AfterSignal,
        document: "pthread_cond_wait(3p), pthread_cond_signal(3p)",
        asked: "a thread that was signaled waits for its mutex as in pthread_mutex_lock, with inheritance; nothing is \
                promised while it waits for the signal, and not of locks inside the condition variable",
        ..INHERITED
    },
    Claimed {
        claim: Claim::Semaphore,
        document: "sem_post(3p)",
        asked: "sem_post wakes the waiter of the highest priority",
        broken: "out of order",
        ..CAUSAL
    },
    Claimed {
        claim: Claim::Unlock,
        document: "futex(2): FUTEX_UNLOCK_PI",
        asked: "a mutex with PTHREAD_PRIO_INHERIT goes to the waiter of the highest priority",
        broken: "out of order",
        ..CAUSAL
    },
    Claimed {
        claim: Claim::Signal,
        document: "pthread_cond_signal(3p)",
        asked: "pthread_cond_signal wakes waiters by priority, if all wait before the first signal",
        broken: "out of order",
        ..CAUSAL
    },
    Claimed {
        claim: Claim::Broadcast,
        document: "pthread_cond_broadcast(3p)",
        asked: "after pthread_cond_broadcast waiters get the mutex by priority",
        broken: "out of order",
        ..CAUSAL
    },
    Claimed {
        claim: Claim::SameCpu,
        document: "sched(7)",
        asked: "a FIFO thread that wakes one of higher priority on its CPU goes on after that one",
        broken: "waker went on first",
        control: "a thread of lower priority waited",
        ..CAUSAL
    },
    Claimed {
        claim: Claim::OtherCpu,
        document: "sched(7)",
        asked: "a thread woken from another CPU preempts one of lower priority before that has done 1 ms of work",
        broken: "ran too late",
        quantity: Some("work done before it ran"),
        limit: "limit",
        ..DISTURBABLE
    },
    Claimed {
        claim: Claim::Push,
        document: "sched(7); kernel/sched/rt.c: push_rt_task()",
        asked: "a thread woken on a CPU with a higher priority runs on the CPU with a lower one",
        broken: "ran too late",
        quantity: Some("work done before it ran"),
        limit: "limit",
        ..DISTURBABLE
    },
    Claimed {
        claim: Claim::Pull,
        document: "sched(7); kernel/sched/rt.c: pull_rt_task()",
        asked: "a CPU whose thread sleeps takes the waiting thread of another CPU before one of lower priority",
        broken: "ran too late",
        quantity: Some("work done before it ran"),
        limit: "limit",
        ..DISTURBABLE
    },
    Claimed {
        claim: Claim::Turn,
        document: "sched(7), sched_rr_get_interval(2)",
        asked: "SCHED_RR threads of one priority take turns of the quantum that sched_rr_get_interval returns",
        broken: "shorter than half or longer than twice",
        quantity: Some("turns"),
        limit: "quantum",
        detects: 0.9,
        ..CAUSAL
    },
    Claimed {
        claim: Claim::Admission,
        document: "sched(7), Documentation/scheduler/sched-deadline.rst",
        asked: "SCHED_DEADLINE is refused with EBUSY beyond sched_rt_runtime_us of sched_rt_period_us of all CPUs",
        broken: "admitted or refused otherwise",
        ..CAUSAL
    },
    Claimed {
        claim: Claim::Runtime,
        document: "Documentation/scheduler/sched-deadline.rst",
        asked: "a SCHED_DEADLINE thread that never sleeps gets its runtime in each period (4 ms in 20 ms)",
        broken: "more than half of the time",
        quantity: Some("CPU time in 120 ms"),
        limit: "runtime",
        ..DISTURBABLE
    },
    Claimed {
        claim: Claim::Starvation,
        document: "sched(7), sched_rt_runtime_us; kernel/sched/deadline.c: fair_server_init()",
        asked: "a normal thread gets CPU time beside a FIFO thread that never sleeps",
        broken: "nothing in 1.1 s",
        quantity: Some("ran after"),
        limit: "",
        disturbed: 0.0005,
        detects: 0.95,
        ..CAUSAL
    },
    Claimed {
        claim: Claim::Move,
        document: "sched_setaffinity(2)",
        asked: "after sched_setaffinity the thread runs on that CPU",
        broken: "elsewhere",
        ..CAUSAL
    },
    Claimed {
        claim: Claim::Stay,
        document: "sched_setaffinity(2)",
        asked: "two threads bound to one CPU never run elsewhere",
        broken: "readings elsewhere",
        ..CAUSAL
    },
    Claimed {
        claim: Claim::NeverEarly,
        document: "clock_nanosleep(2)",
        asked: "clock_nanosleep with TIMER_ABSTIME never ends before its due time",
        broken: "early",
        quantity: Some("late by"),
        ..NEVER
    },
    Claimed {
        claim: Claim::Order,
        document: "Documentation/timers/hrtimers.rst",
        asked: "timers of one CPU expire in the order of their due times, 20 us apart",
        broken: "out of order",
        ..CAUSAL
    },
    Claimed {
        claim: Claim::ThreadEnded,
        document: "pthread_mutexattr_setrobust(3), Documentation/locking/robust-futexes.rst",
        asked: "a robust mutex whose owner has exited gives EOWNERDEAD once, and works after pthread_mutex_consistent",
        broken: "otherwise",
        ..CAUSAL
    },
    Claimed {
        claim: Claim::ProcessKilled,
        document: "pthread_mutexattr_setrobust(3), Documentation/locking/robust-futexes.rst",
        asked: "the same between processes, when the owner is killed by SIGKILL",
        broken: "otherwise",
        ..CAUSAL
    },
    Claimed {
        claim: Claim::NoFaults,
        document: "mlock(2)",
        asked: "after mlockall(MCL_CURRENT | MCL_FUTURE) first writes to new memory cause no page faults",
        broken: "with page faults",
        control: "page faults without it",
        ..CAUSAL
    },
];

/// What is promised by a claim.
pub(super) fn about(claim: Claim) -> &'static Claimed {
    CLAIMS.iter().find(|claimed| claimed.claim == claim).unwrap_or(&CAUSAL)
}
