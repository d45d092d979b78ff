//! A case: all that an explanation is made from besides the events, as plain data that can be kept.

use super::event::{What, flags};
use super::{Facts, Inside, Subject, Symbols, Trace, WaitsFor, explain, explain_activation};
use crate::watch::{Activation, Release};
use punctual_model::{Explanation, Owner};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Timer slack of a normal thread, ns, where the start of its timer is not in the trace.
const SLACK_NS: u64 = 50_000;
/// Time before the first release that is kept of a trace, ns: for the usual length of each phase.
const BEFORE_NS: u64 = 50_000_000;
/// Time after the last end that is kept of a trace, ns: for timers of other CPUs that were late as well.
const AFTER_NS: u64 = 10_000_000;

/// A late wake-up or activation, and what is known of it besides the events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Index of the cycle or activation, as in [`Explanation::cycle`].
    pub cycle: i64,
    /// Due time, as in [`Explanation::due_ns`].
    pub due_ns: i64,
    /// The watched thread; `None` for a measured one.
    pub thread: Option<Owner>,
    /// The wake-up.
    pub subject: Subject,
    /// Facts about the machine and the trace.
    pub facts: Facts,
    /// What follows the wake-up of a watched thread; `None` for a measured one.
    pub inside: Option<Inside>,
}

impl Case {
    /// The case of an activation of a watched thread of this priority, as the kernel counts, in a measurement from
    /// `started_ns` on.
    pub fn of_activation(
        trace: &Trace,
        thread: Owner,
        priority: i32,
        inside: Inside,
        facts: Facts,
        started_ns: u64,
    ) -> Case {
        let one = &inside.activation;
        let pid = thread.pid.unwrap_or(0);
        let subject = Subject {
            pid,
            waits_for: waits_for(trace, pid, one),
            cpu: one.cpu,
            priority,
            due_ns: one.release_ns,
            woke_ns: one.user_ns,
            slack_ns: if priority >= 100 { SLACK_NS } else { 0 },
        };
        let due_ns = one.release_ns.cast_signed().wrapping_sub_unsigned(started_ns);
        Case { cycle: one.index.cast_signed(), due_ns, thread: Some(thread), subject, facts, inside: Some(inside) }
    }

    /// Times of the events that explain these activations, ns.
    pub fn times_ns<'a>(late: impl Iterator<Item = &'a Activation> + Clone) -> Range<u64> {
        let from_ns = late.clone().map(|one| one.release_ns).min().unwrap_or(0).saturating_sub(BEFORE_NS);
        from_ns..late.map(|one| one.end_ns).max().unwrap_or(u64::MAX).saturating_add(AFTER_NS)
    }

    /// End of what is explained, `CLOCK_MONOTONIC`, ns.
    pub fn end_ns(&self) -> u64 {
        self.inside.as_ref().map_or(self.subject.woke_ns, |inside| inside.activation.end_ns)
    }

    /// Explains it by these events; `None` if they do not cover it.
    pub fn explain(&self, trace: &Trace, symbols: Symbols<'_>) -> Option<Explanation> {
        let explained = match &self.inside {
            None => explain(trace, &self.subject, &self.facts, symbols),
            Some(inside) => explain_activation(trace, &self.subject, inside, &self.facts, symbols),
        };
        let (cycle, due_ns, thread) = (self.cycle, self.due_ns, self.thread.clone());
        explained.map(|explanation| Explanation { cycle, due_ns, thread, ..explanation })
    }

    /// Whether its times are in order, as those of every case are that this program has made.
    pub fn is_in_order(&self) -> bool {
        let Some(Inside { activation: one, behind, .. }) = &self.inside else {
            return self.subject.due_ns <= self.end_ns();
        };
        let is_in_order = |one: &Activation| {
            let is_within = |at: u64| (one.release_ns..=one.end_ns).contains(&at);
            [one.start_ns, one.user_ns].into_iter().all(is_within)
                && one.blocks.iter().all(|block| block.from_ns <= block.to_ns && is_within(block.to_ns))
        };
        let Subject { due_ns, woke_ns, .. } = self.subject;
        (due_ns..=one.end_ns).contains(&woke_ns)
            && due_ns <= one.release_ns
            && behind.iter().chain([one]).all(is_in_order)
    }
}

/// What its wake-up waited for: a timer only if that timer is the last one that the thread started before. A timer that
/// the kernel starts anew in the wait itself belongs to the next one.
fn waits_for(trace: &Trace, pid: i32, one: &Activation) -> WaitsFor {
    let starts = trace.cpus.iter().flat_map(|cpu| &cpu.events).filter(|event| {
        let is_thread = event.flags & (flags::HARDIRQ | flags::SOFTIRQ) == 0;
        let is_own = event.pid == pid && is_thread && event.at_ns <= one.user_ns;
        is_own && matches!(event.what, What::TimerStart { .. })
    });
    let last = starts.map(|event| event.at_ns).max();
    match one.release {
        Release::Timer if last.is_some() && last == one.timer_started_ns => WaitsFor::Timer,
        _ => WaitsFor::Device,
    }
}
