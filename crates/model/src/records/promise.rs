//! Promises of man pages and kernel documents about scheduling, and what was seen of them.

use crate::words::word::words;
use serde::{Deserialize, Serialize};

words! {
    /// A promise about scheduling.
    json Promise, "promise" {
        /// A holder of a mutex inherits the priority of its waiters.
        PriorityInheritance = "priority-inheritance",
        /// The same when the waiter returns from a condition variable.
        ConditionInheritance = "condition-inheritance",
        /// The waiter of the highest priority is woken first.
        WakeOrder = "wake-order",
        /// A thread that becomes ready preempts one of lower priority.
        Preemption = "preemption",
        /// Threads of one priority take turns.
        RoundRobin = "round-robin",
        /// Deadline threads are admitted, and limited to their runtime.
        Deadline = "deadline",
        /// Normal threads run in spite of a real-time thread that never sleeps.
        Throttling = "throttling",
        /// A thread runs on its CPUs only.
        Affinity = "affinity",
        /// Timers expire in order and never early.
        Timers = "timers",
        /// A mutex tells that its owner has ended.
        RobustMutex = "robust-mutex",
        /// Locked memory causes no page faults.
        LockedMemory = "locked-memory",
    }
}

words! {
    /// What the cases show.
    json PromiseVerdict {
        /// It held in all cases, or in all but those that a disturbance explains.
        Kept = "kept",
        /// It did not hold, more often than a disturbance explains.
        Broken = "broken",
        /// Neither.
        CannotTell = "cannot tell",
    }
}

words! {
    /// A part of a promise that is tested by itself.
    json Claim {
        /// A waiter waits for its mutex's holder only.
        OneHolder = "one holder",
        /// A waiter waits for a chain of holders only.
        ChainOfHolders = "chain of holders",
        /// The same for the mutex of a condition variable.
        AfterSignal = "after signal",
        /// `sem_post`.
        Semaphore = "semaphore",
        /// Unlocking a mutex with priority inheritance.
        Unlock = "unlock",
        /// `pthread_cond_signal`.
        Signal = "signal",
        /// `pthread_cond_broadcast`.
        Broadcast = "broadcast",
        /// The woken thread and the waker share a CPU.
        SameCpu = "same CPU",
        /// The woken thread is pinned to another CPU.
        OtherCpu = "other CPU",
        /// The woken thread's CPU has a higher priority, another CPU a lower one.
        Push = "push",
        /// A CPU becomes free for a thread that waits on another one.
        Pull = "pull",
        /// Length of a turn.
        Turn = "turn",
        /// The admission test.
        Admission = "admission",
        /// CPU time of a thread that never sleeps.
        Runtime = "runtime",
        /// Normal threads beside a FIFO thread that never sleeps.
        Starvation = "starvation",
        /// `sched_setaffinity` moves the thread.
        Move = "move",
        /// A thread stays on its CPU while another one is idle.
        Stay = "stay",
        /// No sleep ends before its due time.
        NeverEarly = "never early",
        /// Sleeps end in the order of their due times.
        Order = "order",
        /// The owner was a thread.
        ThreadEnded = "thread ended",
        /// The owner was a process, which was killed.
        ProcessKilled = "process killed",
        /// Memory mapped after `mlockall`.
        NoFaults = "no faults",
    }
}

/// Cases of an experiment that must show the opposite: without them it has no power.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ControlCases {
    /// Cases tried.
    pub cases: u64,
    /// Cases that showed it.
    pub shown: u64,
}

/// What was seen of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClaimCases {
    /// The claim.
    pub claim: Claim,
    /// Cases tried, without those that a disturbance made void.
    pub cases: u64,
    /// Cases in which it did not hold.
    pub broken: u64,
    /// Its control; `None` for a claim that needs none.
    pub control: Option<ControlCases>,
    /// Least and greatest value seen, ns; `None` for a claim without one.
    pub seen_ns: Option<[u64; 2]>,
    /// Value that the kernel reports, or that was asked for, ns.
    pub asked_ns: Option<u64>,
    /// The reason that nothing, or not all, was tried.
    pub unknown: Option<String>,
}

impl ClaimCases {
    /// No case yet.
    pub fn new(claim: Claim) -> ClaimCases {
        ClaimCases { claim, cases: 0, broken: 0, control: None, seen_ns: None, asked_ns: None, unknown: None }
    }

    /// A claim that cannot be tested, and why.
    pub fn unknown(claim: Claim, reason: impl Into<String>) -> ClaimCases {
        ClaimCases { unknown: Some(reason.into()), ..ClaimCases::new(claim) }
    }

    /// Adds a case.
    pub fn add(&mut self, is_kept: bool) {
        self.cases += 1;
        self.broken += u64::from(!is_kept);
    }

    /// Adds a case of the control.
    pub fn control(&mut self, is_shown: bool) {
        let control = self.control.get_or_insert_default();
        control.cases += 1;
        control.shown += u64::from(is_shown);
    }

    /// Adds a value, ns.
    pub fn see(&mut self, ns: u64) {
        let [least, most] = self.seen_ns.unwrap_or([ns; 2]);
        self.seen_ns = Some([least.min(ns), most.max(ns)]);
    }
}

impl Promise {
    /// Its claims, in the order of tests.
    pub fn claims(self) -> &'static [Claim] {
        match self {
            Promise::PriorityInheritance => &[Claim::OneHolder, Claim::ChainOfHolders],
            Promise::ConditionInheritance => &[Claim::AfterSignal],
            Promise::WakeOrder => &[Claim::Semaphore, Claim::Unlock, Claim::Signal, Claim::Broadcast],
            Promise::Preemption => &[Claim::SameCpu, Claim::OtherCpu, Claim::Push, Claim::Pull],
            Promise::RoundRobin => &[Claim::Turn],
            Promise::Deadline => &[Claim::Admission, Claim::Runtime],
            Promise::Throttling => &[Claim::Starvation],
            Promise::Affinity => &[Claim::Move, Claim::Stay],
            Promise::Timers => &[Claim::NeverEarly, Claim::Order],
            Promise::RobustMutex => &[Claim::ThreadEnded, Claim::ProcessKilled],
            Promise::LockedMemory => &[Claim::NoFaults],
        }
    }
}
