//! One activation of a thread: from its release to its next wait, and all that happened meanwhile.

use super::calls::{Call, CallKind};
use super::packets::Brought;
use super::passes::Passes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What released an activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Release {
    /// A timer that the thread had started, at its due time.
    Timer,
    /// Another thread, when it woke this one.
    Thread(i32),
    /// An interrupt or softirq, when it woke the thread.
    Interrupt,
    /// Nothing: the thread did not sleep, because what it waits for had happened.
    #[default]
    Immediate,
}

/// A sleep within an activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// The system call; `None`: outside of all, as at a page fault.
    pub call: Option<Call>,
    /// Whether a page fault had begun just before, outside of all system calls.
    pub is_fault: bool,
    /// Whether it could not be interrupted, as in waits for a disk.
    pub is_uninterruptible: bool,
    /// Whether a signal or a debugger stopped the thread.
    pub is_stopped: bool,
    /// Start, `CLOCK_MONOTONIC`, ns.
    pub from_ns: u64,
    /// Waking, ns.
    pub to_ns: u64,
    /// Thread that woke it; `None` if an interrupt did.
    pub waker: Option<i32>,
    /// The futex, by address; 0 in other calls.
    pub futex: u64,
    /// Whether it may have been the wait for another activation: in a poll, or in a futex that the thread did not
    /// release afterwards, as it does with a lock.
    pub may_be_wait: bool,
    /// Whether it was for a lock that `waker` released: the thread waited with the value of a lock that others wait
    /// for, and released it afterwards, or the call is one for locks.
    #[serde(default)]
    pub is_lock: bool,
}

/// Time of a thread that ran instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// The thread that ran just before or after; 0 is idle.
    pub by: i32,
    /// Length, ns.
    pub length_ns: u64,
}

impl Release {
    /// The thread that released it, if one did.
    pub(super) fn by_thread(self) -> Option<i32> {
        match self {
            Release::Thread(pid) => Some(pid),
            Release::Timer | Release::Interrupt | Release::Immediate => None,
        }
    }
}

/// A thread whose activation woke the next thread of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// Its ID.
    pub pid: i32,
    /// The thread that released it, if one did.
    #[serde(default)]
    pub released_by: Option<i32>,
    /// Its release, ns.
    pub release_ns: u64,
    /// Time from which it ran, ns.
    pub user_ns: u64,
    /// Time at which it woke the next, ns.
    pub woke_next_ns: u64,
}

/// One activation. Times are `CLOCK_MONOTONIC`, ns.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Activation {
    /// Index among the activations of the thread, from 0.
    pub index: u64,
    /// What released it.
    pub release: Release,
    /// The release: the due time of the timer, or the waking, or the call that returned at once.
    pub release_ns: u64,
    /// Time at which it was switched in, or the return of a call that did not sleep.
    pub start_ns: u64,
    /// Return to the program from the call that waited.
    pub user_ns: u64,
    /// Beginning of the next wait.
    pub end_ns: u64,
    /// CPU on which it started.
    pub cpu: u32,
    /// Its priority at the start, as the kernel counts; `None` when it did not sleep.
    pub priority: Option<i32>,
    /// Time on the CPU since the start, ns.
    pub run_ns: u64,
    /// That part of it that was outside of system calls.
    pub user_run_ns: u64,
    /// Time on the CPU in each system call, and the number of calls.
    pub calls: BTreeMap<i64, (u64, u32)>,
    /// Stretches in which it was to run and did not.
    pub waits: Vec<Wait>,
    /// Sleeps.
    pub blocks: Vec<Block>,
    /// Page faults.
    pub faults: u32,
    /// Changes of the CPU since the start of the one before.
    pub migrations: u32,
    /// Instant at which the timer was started, if that released it.
    pub timer_started_ns: Option<u64>,
    /// Threads that caused it, first one first.
    pub hops: Vec<Hop>,
    /// Time in sleeps that were, by their length, waits for another activation, ns.
    pub idle_ns: u64,
    /// What released it, and when that woke the thread, ns, if a softirq did.
    #[serde(skip)]
    pub(crate) brought: Option<(u64, Brought)>,
    /// Marks that it passed.
    #[serde(default, skip_serializing_if = "Passes::is_empty")]
    pub marks: Passes,
}

impl Activation {
    /// From the release until the program runs, ns.
    pub fn latency_ns(&self) -> u64 {
        self.user_ns.saturating_sub(self.release_ns)
    }

    /// From the release to the end without `idle_ns`, ns.
    pub fn response_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.release_ns).saturating_sub(self.idle_ns)
    }

    /// Sum of its sleeps, ns.
    pub fn blocked_ns(&self) -> u64 {
        self.blocks.iter().map(|block| block.to_ns - block.from_ns).sum()
    }

    /// Sum of the time in which it was to run and did not, ns.
    pub fn waited_ns(&self) -> u64 {
        self.waits.iter().map(|wait| wait.length_ns).sum()
    }
}

/// Most releases of one activation that are kept.
const MOST: usize = 256;

/// The futexes of one activation, by address: those that the thread waited for as for a lock, and those that it
/// released, and when, ns.
#[derive(Debug, Default)]
pub(super) struct Futexes {
    contended: Vec<u64>,
    released: Vec<(u64, u64)>,
}

impl Futexes {
    /// Takes a call with these arguments.
    pub(super) fn take(&mut self, call: Call, [first, _, value]: [u64; 3], at_ns: u64) {
        if call.wakes_futex() && self.released.len() < MOST {
            self.released.push((first, at_ns));
        } else if call.waits_for_lock(value) && self.contended.len() < MOST {
            self.contended.push(first);
        }
    }

    /// Marks the sleeps that may have been waits for another activation. A thread that has slept for a lock releases it
    /// afterwards, and wakes the others that sleep for it. Later sleeps than `most` are part of the last one.
    pub(super) fn mark(&self, blocks: &mut [Block], most: usize) {
        for (index, block) in blocks.iter_mut().enumerate() {
            let is_lock = self.released.iter().any(|(futex, at_ns)| *futex == block.futex && *at_ns >= block.to_ns);
            let may_be = |call: Call| call.polls() || call.kind() == CallKind::Futex && !is_lock;
            block.may_be_wait = block.call.is_some_and(may_be);
            let is_of = |call: Call| match call.kind() {
                CallKind::PiLock => true,
                CallKind::Futex => is_lock && self.contended.contains(&block.futex),
                _ => false,
            };
            let is_single = index + 1 < most && !block.is_stopped && block.waker.is_some();
            block.is_lock = is_single && block.call.is_some_and(is_of);
        }
    }
}
