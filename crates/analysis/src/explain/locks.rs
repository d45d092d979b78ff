//! Locks of programs that a thread waits for in a futex, and the threads that had them meanwhile.

use super::event::{Event, What};
use super::judge::{Reading, Scene};
use super::locate::last_between;
use super::sleep::Sleep;
use super::thread_state::{self, ThreadState};
use super::timeline;
use crate::watch::{Block, CONTENDED, Call, HAS_WAITERS};
use punctual_model::Cause;
use std::collections::BTreeMap;

/// A call of futex(2).
#[derive(Debug, Clone, Copy)]
struct FutexCall {
    /// The value that a thread waits with, or the number of threads to wake.
    value: u64,
    wakes: bool,
}

/// A thread that had a lock, and from when to when, ns.
#[derive(Debug, Clone, Copy)]
struct Holder {
    pid: i32,
    from_ns: u64,
    to_ns: u64,
}

impl Scene<'_> {
    /// The call of futex(2) in which a thread is at `at_ns`, as far as the trace has it.
    fn futex_at(&self, pid: i32, at_ns: u64) -> Option<FutexCall> {
        let is_call =
            |event: &Event| event.pid == pid && matches!(event.what, What::SysEnter { .. } | What::SysExit { .. });
        match last_between(self.trace, 0, at_ns, is_call)?.1.what {
            What::SysEnter { number, arguments } => {
                let call = Call::of(number, arguments);
                let value = arguments[2] & 0xffff_ffff;
                call.is_futex().then(|| FutexCall { value, wakes: call.wakes_futex() })
            }
            _ => None,
        }
    }

    /// Whether events show that a sleep in a futex is for something else than a lock: by the value with which it waits,
    /// or because all threads are woken.
    pub(super) fn is_no_lock(&self, block: Block) -> bool {
        let is_other = |call: FutexCall| call.value != CONTENDED && call.value & HAS_WAITERS == 0;
        let wakes_all = |call: FutexCall| call.wakes && call.value != 1;
        self.futex_at(self.subject.pid, block.from_ns).is_some_and(is_other)
            || block.waker.and_then(|waker| self.futex_at(waker, block.to_ns)).is_some_and(wakes_all)
    }

    /// The threads that had the lock during a sleep for it, each until it released it: while others wait, that needs a
    /// call of the kernel.
    fn holders(&self, block: Block, waker: i32) -> Vec<Holder> {
        let is_release = |event: &&Event| match event.what {
            What::SysEnter { number, arguments } => {
                arguments[0] == block.futex && Call::of(number, arguments).wakes_futex()
            }
            _ => false,
        };
        let events = self.trace.cpus.iter().flat_map(|cpu| cpu.between(block.from_ns, block.to_ns));
        let mut released: Vec<(u64, i32)> = events.filter(is_release).map(|event| (event.at_ns, event.pid)).collect();
        released.sort_unstable();
        // The last one is that of the waking.
        if released.last().is_some_and(|(_, pid)| *pid == waker) {
            released.pop();
        }
        let mut from_ns = block.from_ns;
        let one = |(to_ns, pid)| Holder { pid, from_ns: std::mem::replace(&mut from_ns, to_ns), to_ns };
        released.into_iter().chain([(block.to_ns, waker)]).map(one).collect()
    }

    /// A sleep for a lock that another thread ended, with (`inherits`) or without priority inheritance.
    pub(super) fn lock(&self, block: Block, waker: i32, inherits: bool) -> Sleep {
        let holders = self.holders(block, waker);
        let last = Holder { pid: waker, from_ns: block.from_ns, to_ns: block.to_ns };
        let longest = holders.iter().copied().max_by_key(|one| one.to_ns - one.from_ns).unwrap_or(last);
        let holder = longest.pid;
        let held = match holders.len() {
            1 => format!("held by {}", self.with_priority(holder)),
            n => {
                let others = crate::wording::things(n as u64 - 1, "other thread");
                format!("held by {} for most of it, and by {others}", self.with_priority(holder))
            }
        };
        let is_lower = self.priority(holder).is_some_and(|theirs| theirs > self.subject.priority);
        let (between, waited_ns) = self.ran_instead_of(longest);
        let is_inverted = is_lower && !inherits && waited_ns * 10 > longest.to_ns - longest.from_ns;
        let (cause, place) = match between.filter(|_| is_inverted) {
            Some(between) => {
                let between = self.with_priority(between);
                (Cause::PriorityInversion, format!("{held}, while {between} ran instead of it"))
            }
            None if inherits => (Cause::Lock, format!("{held}; priority inheritance is on")),
            None if is_lower => (Cause::Lock, format!("{held}, of lower priority, without inheritance")),
            None => (Cause::Lock, held),
        };
        Sleep { reading: Reading::direct(cause).at(Some(place)), owner: Some(holder) }
    }

    /// The thread of lower priority than ours that ran longest while the holder was runnable and did not run, and the
    /// time of all of them, ns.
    fn ran_instead_of(&self, holder: Holder) -> (Option<i32>, u64) {
        let mut by: BTreeMap<i32, u64> = BTreeMap::new();
        for interval in thread_state::intervals(self.trace, holder.pid, self.subject.cpu, holder.from_ns, holder.to_ns)
        {
            let ThreadState::Runnable(cpu) = interval.state else { continue };
            let Some(events) = self.trace.cpu(cpu) else { continue };
            for stretch in timeline::stretches(events, interval.from_ns, interval.to_ns) {
                let is_between = stretch.priority.is_some_and(|priority| priority > self.subject.priority);
                if is_between && stretch.context.is_none() && stretch.pid != holder.pid && stretch.pid != 0 {
                    *by.entry(stretch.pid).or_default() += stretch.length_ns();
                }
            }
        }
        let longest = by.iter().max_by_key(|(_, ns)| **ns).map(|(pid, _)| *pid);
        (longest, by.values().sum())
    }
}
