//! Tests of every cause, with hand-written events: a wake-up of thread 100 on CPU 0, due at 1 ms.

mod activations;
mod answers;
mod causes;
mod doubts;
mod gaps;
mod priorities;
mod properties;
mod timers;

use super::*;
use punctual_model::{Cause, Evidence, Phase};

pub(super) const ME: i32 = 100;
pub(super) const OTHER: i32 = 200;
pub(super) const DUE: u64 = 1_000_000;
const TIMER: u64 = 0xabc;
const TICK: Context = Context::Vector(0);

/// Expiry of a timer whose function is unknown.
pub(super) fn expiry(timer: u64) -> What {
    What::TimerExpire { timer, function: None }
}

/// Builder of a trace, event by event.
#[derive(Debug, Clone)]
pub(super) struct Story {
    trace: Trace,
    /// ID of the current thread of each CPU.
    current: [i32; 2],
    flags: u8,
    pub(super) subject: Subject,
    pub(super) facts: Facts,
}

impl Story {
    /// A FIFO 80 thread that sleeps from 0.1 ms on; `current` has its CPU.
    pub(super) fn new(current: i32) -> Story {
        let mut trace = Trace { cpus: vec![CpuEvents::default(); 2], ..Trace::default() };
        trace.vectors = vec!["local_timer".to_owned()];
        trace.interrupts.insert(36, "virtio1-req".to_owned());
        for (pid, name) in [(ME, "measured/0"), (OTHER, "other"), (201, "other"), (300, "kworker/0:1")] {
            trace.names.insert(pid, name.to_owned());
        }
        let subject = Subject {
            pid: ME,
            waits_for: WaitsFor::Timer,
            cpu: 0,
            priority: 19,
            due_ns: DUE,
            woke_ns: DUE,
            slack_ns: 0,
        };
        let facts = Facts { sees_page_faults: true, frozen_ns: u64::MAX, ..Facts::default() };
        let mut story = Story { trace, current: [ME, 0], flags: 0, subject, facts };
        story.at(100_000, What::TimerStart { timer: TIMER, expires_ns: DUE.cast_signed(), soft_ns: DUE.cast_signed() });
        story.switch(101_000, current, 120, 1)
    }

    pub(super) fn at(&mut self, at_ns: u64, what: What) -> &mut Story {
        self.on(0, at_ns, what)
    }

    pub(super) fn on(&mut self, cpu: usize, at_ns: u64, what: What) -> &mut Story {
        let event = Event { at_ns, pid: self.current[cpu], flags: self.flags, what };
        self.trace.cpus[cpu].events.push(event);
        self
    }

    pub(super) fn flags(mut self, flags: u8) -> Story {
        self.flags = flags;
        self
    }

    /// An event of CPU 0.
    pub(super) fn then(mut self, at_ns: u64, what: What) -> Story {
        self.at(at_ns, what);
        self
    }

    /// Switches from the current thread of CPU 0 to `next`.
    pub(super) fn switch(mut self, at_ns: u64, next: i32, next_priority: i32, prev_state: u32) -> Story {
        let prev = self.current[0];
        let prev_priority = if prev == ME { self.subject.priority } else { 120 };
        self.at(at_ns, What::Switch { prev, prev_priority, prev_state, next, next_priority });
        self.current[0] = next;
        self
    }

    /// The timer interrupt: it wakes the thread 1 us after its start and requests a switch.
    pub(super) fn interrupt(self, at_ns: u64) -> Story {
        self.then(at_ns, What::Enter(TICK))
            .then(at_ns + 500, expiry(TIMER))
            .then(at_ns + 1_000, What::Waking { pid: ME })
            .flags(flags::NEED_RESCHED)
            .then(at_ns + 1_500, What::Leave(TICK))
    }

    /// Switches to the thread, which reads the clock 2 us later.
    pub(super) fn runs(self, at_ns: u64) -> Story {
        let priority = self.subject.priority;
        self.flags(0).switch(at_ns, ME, priority, 0).reads(at_ns + 2_000)
    }

    pub(super) fn reads(mut self, woke_ns: u64) -> Story {
        self.subject.woke_ns = woke_ns;
        self.then(woke_ns + 1_000, What::Mark)
    }

    pub(super) fn guest(mut self) -> Story {
        self.facts.taker = Taker::Hypervisor;
        self
    }

    pub(super) fn fair(mut self) -> Story {
        self.subject.priority = 120;
        self
    }

    pub(super) fn stack(mut self, at_ns: u64, functions: &[u64]) -> Story {
        let index = u32::try_from(self.trace.stacks.len()).unwrap();
        self.trace.stacks.push(functions.to_vec());
        self.at(at_ns, What::Stack(index));
        self
    }

    pub(super) fn lost(mut self, at_ns: u64) -> Story {
        self.trace.cpus[0].lost_ns.push(at_ns);
        self
    }

    pub(super) fn try_explain(&self) -> Option<Explanation> {
        explain(&self.trace, &self.subject, &self.facts, &symbols)
    }

    #[track_caller]
    pub(super) fn explained(&self) -> Explanation {
        let explanation = self.try_explain().expect("the trace covers it");
        assert!(explanation.is_complete(), "{explanation:#?}");
        explanation
    }

    /// Cause, alternative cause, evidence and owner of the largest share.
    #[track_caller]
    pub(super) fn blamed(&self) -> (Cause, Option<Cause>, Evidence, String) {
        let explanation = self.explained();
        let share = explanation.blame().expect("a late wake-up has a blame");
        (share.cause, share.or, share.evidence, share.owner.name.clone())
    }

    #[track_caller]
    pub(super) fn expect(&self, cause: Cause, or: Option<Cause>, evidence: Evidence, name: &str) {
        assert_eq!(self.blamed(), (cause, or, evidence, name.to_owned()), "{:#?}", self.explained());
    }
}

/// Function addresses used in stacks.
pub(super) const ENTRY: u64 = 1;
pub(super) const UNLOCK: u64 = 2;
pub(super) const CLEAR_PAGE: u64 = 3;
pub(super) const SCHEDULE: u64 = 4;
pub(super) const TRACE: u64 = 5;
/// An address without a symbol.
pub(super) const UNKNOWN: u64 = 6;

/// Functions that stacks of sleeping threads have, from this address on.
pub(super) const SLEEPS: u64 = 100;
pub(super) const SLEEP_NAMES: [&str; 14] = [
    "rwsem_down_write_slowpath",
    "down_write",
    "shmem_file_write_iter",
    "lock_mm_and_find_vma",
    "folio_wait_bit_common",
    "handle_userfault",
    "__refrigerator",
    "__wait_rcu_gp",
    "request_wait_answer",
    "reclaim_throttle",
    "msleep",
    "cgroup_freeze_task",
    "dl_task_timer",
    "sched_cfs_period_timer",
];

/// The address of one of them.
pub(super) fn sleep_in(name: &str) -> u64 {
    SLEEPS + SLEEP_NAMES.iter().position(|known| *known == name).unwrap() as u64
}

fn symbols(address: u64) -> Option<String> {
    let name = match address {
        SLEEPS.. => SLEEP_NAMES.get(usize::try_from(address - SLEEPS).ok()?)?,
        ENTRY => "asm_sysvec_apic_timer_interrupt",
        UNLOCK => "_raw_spin_unlock_irqrestore",
        CLEAR_PAGE => "clear_page_erms",
        SCHEDULE => "__schedule",
        TRACE => "trace_event_raw_event_sched_switch",
        _ => return None,
    };
    Some(name.to_owned())
}
