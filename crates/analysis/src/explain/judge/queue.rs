//! Causes from the waking to the switch: the threads that ran while the measured thread was runnable.

use super::{Reading, Scene};
use crate::explain::event::{CpuEvents, Event, What, flags};
use crate::explain::locate::{Piece, first_after};
use crate::explain::timeline::{self, Stretch};
use crate::explain::untraced_gap;
use crate::watch::priority_text;
use punctual_model::{Cause, Segment};

/// Longest time of a switch, ns.
const SWITCH_NS: u64 = 5_000;
/// Longest time, ns, from the request to switch out a normal thread to the switch, if the thread is preemptible.
const PROMPT_NS: u64 = 50_000;
/// Length of a silence, ns, from which the CPU of a guest may have been taken away.
const LONG_NS: u64 = 100_000;

/// Longest time, ns, from the timer that replenishes a runtime or quota to the switch to its thread.
const REPLENISHED_NS: u64 = 100_000;
/// Period of the throttling of real-time threads, ns (`sched_rt_period_us`), and the smallest share of it, as a
/// divisor, that they must have used: their limit is 95 %, but those of control groups can be lower.
const LIMIT_PERIOD_NS: u64 = 1_000_000_000;
const LEAST_USED: u64 = 4;
/// Longest time, ns, that this throttling takes of a period, unless its limit was lowered.
const THROTTLED_NS: u64 = 50_000_000;

/// Prefix of the threads that move others between CPUs (kernel/stop_machine.c).
const MIGRATION_THREAD: &str = "migration/";

/// Whether an idle CPU returned from an interrupt to idle, although that interrupt should have caused a switch.
fn idles_on(cpu: &CpuEvents, piece: &Piece) -> bool {
    let events = cpu.between(piece.from_ns, piece.to_ns);
    let switched = events.iter().find(|event| matches!(event.what, What::Switch { .. }));
    let until = switched.map_or(piece.to_ns, |event| event.at_ns);
    // The first hard exit is that of the interrupt that woke the thread.
    let is_end = |event: &&Event| matches!(event.what, What::Leave(context) if context.is_hard());
    events
        .iter()
        .filter(is_end)
        .any(|event| event.at_ns + SWITCH_NS * 10 < until && event.flags & flags::NEED_RESCHED == 0)
}

impl Scene<'_> {
    /// Segments of a piece in which the measured thread was runnable and did not run.
    pub(super) fn queue(&self, cpu: &CpuEvents, piece: &Piece) -> Vec<Segment> {
        let mut segments = Vec::new();
        for stretch in self.stretches(cpu, piece) {
            for part in self.parts(cpu, &stretch) {
                segments.extend(self.segments(piece, &part, |part| self.waited_for(cpu, piece, part)));
            }
        }
        segments
    }

    /// Parts of a stretch of a normal thread, cut where it was to be switched out and went on for long. At other
    /// requests, the scheduler ran and chose it again.
    fn parts(&self, cpu: &CpuEvents, stretch: &Stretch) -> Vec<Stretch> {
        let is_fair = self.subject.is_fair() && stretch.priority.is_none_or(|priority| priority >= 100);
        let mut parts = Vec::new();
        let mut rest = *stretch;
        // At the switch to it, the request was answered.
        let mut from_ns = stretch.from_ns + u64::from(stretch.is_chosen);
        while is_fair
            && stretch.context.is_none()
            && let Some(asked) = timeline::resched_from(cpu, from_ns, stretch.to_ns)
        {
            let to_ns = asked.answered_ns.unwrap_or(stretch.to_ns);
            if to_ns - asked.from_ns > PROMPT_NS {
                if asked.from_ns > rest.from_ns {
                    parts.push(Stretch { to_ns: asked.from_ns, ..rest });
                }
                parts.push(Stretch { from_ns: asked.from_ns, to_ns, is_chosen: false, ..rest });
                rest = Stretch { from_ns: to_ns, is_chosen: true, ..rest };
            }
            from_ns = to_ns.max(from_ns + 1);
        }
        if rest.from_ns < rest.to_ns {
            parts.push(rest);
        }
        parts
    }

    fn waited_for(&self, cpu: &CpuEvents, piece: &Piece, stretch: &Stretch) -> Reading {
        let length = stretch.length_ns();
        let (ours, is_fair) = (self.subject.priority, self.subject.is_fair());
        if let Some(context) = stretch.context {
            return self.context(cpu, context, stretch);
        }
        if stretch.pid == self.subject.pid {
            return Reading::direct(Cause::UsualWakeUp);
        }
        if stretch.is_broken {
            return Reading::cannot_tell("a context switch event is missing");
        }
        if self.subject.has_runtime()
            && stretch.priority != Some(ours)
            && let Some(used_up) = self.used_up(piece)
        {
            return used_up;
        }
        let is_first = stretch.from_ns == piece.from_ns || !stretch.is_chosen;
        if stretch.pid == 0 {
            return match () {
                // A limit of real-time threads lasts as long only where it was lowered, a stop of the machine anywhere.
                () if !is_first && !is_fair && length > THROTTLED_NS && self.facts.may_be_taken() => {
                    Reading::either(Cause::Throttling, Cause::CpuStalled)
                }
                () if !is_first => self.held_back(piece, "the CPU went idle with the thread runnable"),
                () if length <= SWITCH_NS * 3 => Reading::direct(Cause::UsualWakeUp),
                () if idles_on(cpu, piece) => {
                    self.held_back(piece, "the CPU took interrupts and stayed idle with the thread runnable")
                }
                () if self.facts.may_be_taken() => Reading::either(Cause::IdleExit, Cause::CpuStalled),
                () => Reading::inferred(Cause::IdleExit, "the CPU was idle when the thread was woken"),
            };
        }
        let inherited = || self.inherited.reason(self.trace, stretch);
        if self.is_inside(piece) && self.trace.owner_name(None, stretch.pid).starts_with(MIGRATION_THREAD) {
            return Reading::direct(Cause::Migration);
        }
        match stretch.priority {
            // With the priority that it was to have, the thread would have run.
            Some(theirs) if ours > self.asked && theirs > self.asked => {
                let (had, asked) = (priority_text(ours), priority_text(self.asked));
                Reading::direct(Cause::Demoted).at(Some(format!("{had} instead of {asked}")))
            }
            Some(theirs) if theirs < ours && (theirs < 100 || !is_fair) => {
                Reading::direct(Cause::HigherPriority).at(inherited())
            }
            Some(theirs) if theirs == ours && !is_fair => Reading::direct(Cause::EqualPriority).at(inherited()),
            Some(theirs) if let Some(raised) = self.raised(cpu, piece, stretch, theirs) => raised,
            _ if is_fair => self.fair(cpu, piece, stretch),
            None => Reading::cannot_tell("no event has its priority"),
            Some(_) => self.lower(cpu, piece, stretch, is_first),
        }
    }

    /// Cause of a stretch in which the scheduler passed over the runnable thread: a limit, if one can apply.
    fn held_back(&self, piece: &Piece, why: &str) -> Reading {
        let runs = |event: &Event| event.is_switch_to(self.subject.pid);
        let runs_on = first_after(self.trace, piece.to_ns, u64::MAX, runs).map(|(cpu, _)| cpu);
        if let Some(cpu) = runs_on.filter(|cpu| *cpu != piece.cpu) {
            return Reading::cannot_tell(format!("{why}, which CPU {cpu} took over at an unknown time"));
        }
        if self.subject.is_fair() && !self.facts.has_cpu_quota {
            return Reading::cannot_tell(why);
        }
        Reading::inferred(Cause::Throttling, why)
    }

    /// Cause of a stretch of a thread of lower priority that the scheduler preferred to the real-time thread: a limit
    /// of real-time threads, or the thread was still queued for another CPU.
    fn limited(&self, piece: &Piece, why: &str) -> Reading {
        match self.subject.has_runtime() || self.is_used_by_real_time(piece) {
            true => self.held_back(piece, why),
            false => Reading::cannot_tell(format!("{why}, maybe for another CPU: no event shows its queue")),
        }
    }

    /// Whether real-time threads had as much of a CPU before a piece as throttling of them needs.
    fn is_used_by_real_time(&self, piece: &Piece) -> bool {
        let Some(cpu) = self.trace.cpu(piece.cpu) else { return false };
        let since_ns = piece.from_ns.saturating_sub(LIMIT_PERIOD_NS);
        let from_ns = cpu.events.first().map_or(since_ns, |first| first.at_ns.max(since_ns));
        let stretches = timeline::stretches(cpu, from_ns, piece.from_ns);
        let is_real_time = |stretch: &&Stretch| stretch.priority.is_some_and(|priority| priority < 100);
        let used_ns: u64 = stretches.iter().filter(is_real_time).map(Stretch::length_ns).sum();
        used_ns * LEAST_USED >= piece.from_ns.saturating_sub(from_ns)
    }

    /// The use of all of its runtime by a thread of policy deadline, which then waits until that is replenished: if it
    /// was switched out for that, or a timer of the scheduler lets it run again.
    fn used_up(&self, piece: &Piece) -> Option<Reading> {
        let pid = self.subject.pid;
        let place = "its runtime of SCHED_DEADLINE was used up";
        if self.expires_before(piece, &["dl_task_timer"]) {
            return Some(Reading::direct(Cause::Throttling).at(Some(place.to_owned())));
        }
        let is_put_off = |event: &Event| matches!(event.what, What::Switch { prev, .. } if prev == pid);
        let begins = first_after(self.trace, piece.from_ns, piece.from_ns, is_put_off).is_some();
        begins.then(|| Reading::inferred(Cause::Throttling, place))
    }

    /// Whether a timer with one of these functions expired just before the end of a piece.
    fn expires_before(&self, piece: &Piece, functions: &[&str]) -> bool {
        let is_meant = |event: &Event| match event.what {
            What::TimerExpire { function: Some(function), .. } => {
                (self.symbols)(function).is_some_and(|name| functions.contains(&name.as_str()))
            }
            _ => false,
        };
        first_after(self.trace, piece.to_ns.saturating_sub(REPLENISHED_NS), piece.to_ns, is_meant).is_some()
    }

    /// Cause of a stretch of a normal thread while the measured normal thread was runnable.
    fn fair(&self, cpu: &CpuEvents, piece: &Piece, stretch: &Stretch) -> Reading {
        let asked = timeline::resched_from(cpu, stretch.from_ns, stretch.to_ns);
        if let Some(asked) = asked.filter(|asked| asked.from_ns == stretch.from_ns && !stretch.is_chosen)
            && stretch.length_ns() > PROMPT_NS
        {
            // Without an event meanwhile, the scheduler may have run and chosen it again.
            return match asked.seen_ns - asked.from_ns > PROMPT_NS {
                true => self.non_preemptible(cpu, stretch),
                false => Reading::either(Cause::FairScheduling, Cause::NotPreemptible),
            };
        }
        // Of a thread that waits for its turn and one whose group has used up its quota, the timer of the quota tells.
        match self.facts.has_cpu_quota {
            true if self.expires_before(piece, &["sched_cfs_period_timer", "sched_cfs_slack_timer"]) => {
                Reading::inferred(Cause::Throttling, "it ran as soon as its control group got quota again")
            }
            true if self.facts.throttled_ns == Some(0) => Reading::direct(Cause::FairScheduling),
            true if self.facts.throttled_ns.is_some_and(|ns| ns * 2 >= stretch.length_ns()) => {
                Reading::inferred(Cause::Throttling, "the quota of its control group was used up meanwhile")
            }
            true => Reading::either(Cause::FairScheduling, Cause::Throttling),
            false => Reading::direct(Cause::FairScheduling),
        }
    }

    /// Cause of a stretch of a thread of lower priority while a real-time thread was runnable.
    fn lower(&self, cpu: &CpuEvents, piece: &Piece, stretch: &Stretch, is_first: bool) -> Reading {
        let to = stretch.to_ns;
        if !is_first {
            return self.limited(piece, "the scheduler chose it with the measured thread runnable");
        }
        if stretch.length_ns() <= SWITCH_NS {
            return Reading::direct(Cause::UsualWakeUp);
        }
        if self.inherited.is_given_back(stretch) {
            return self.non_preemptible(cpu, stretch);
        }
        // An earlier interrupt may hold the request. A switch at the end is no sign of a scheduler that kept the
        // thread.
        let answered = timeline::resched_from(cpu, piece.from_ns, to).and_then(|asked| asked.answered_ns);
        if answered.is_some_and(|at| to - at > SWITCH_NS) {
            return self.limited(piece, "the scheduler ran and kept it with the measured thread runnable");
        }
        if timeline::resched_at(cpu, piece.from_ns, to).is_some() {
            return self.non_preemptible(cpu, stretch);
        }
        // A thread can raise its own priority without an event, and lower it again.
        match !self.facts.lacks_flags && self.is_left_alone(cpu, piece, to) {
            true => Reading::either(Cause::HigherPriority, Cause::Throttling)
                .at(Some("its priority was boosted, or the thread was throttled".to_owned())),
            false => Reading::cannot_tell("no event shows whether a reschedule was requested"),
        }
    }

    /// Cause of a stretch whose thread was switched out with a higher priority than it was switched in with, without an
    /// event of the change. Without a request to switch, it had that priority when the measured thread was woken.
    fn raised(&self, cpu: &CpuEvents, piece: &Piece, stretch: &Stretch, theirs: i32) -> Option<Reading> {
        let ours = self.subject.priority;
        let at_leaving = timeline::priority_at_leaving(cpu, stretch).filter(|raised| *raised < theirs)?;
        let cause = match at_leaving {
            raised if raised < ours && raised < 100 => Cause::HigherPriority,
            raised if raised == ours && raised < 100 => Cause::EqualPriority,
            _ => return None,
        };
        let place = "its priority was boosted while it ran";
        Some(match timeline::resched_at(cpu, piece.from_ns, stretch.to_ns) {
            None => Reading::inferred(cause, place),
            Some(_) => Reading::cannot_tell(format!("{place}, at an unknown time")),
        })
    }

    /// Whether an event after the waking shows that no switch was requested.
    fn is_left_alone(&self, cpu: &CpuEvents, piece: &Piece, to_ns: u64) -> bool {
        // A waking by another CPU requests the switch by an interrupt, which takes a while to arrive.
        let is_local = self.wake.waking == Some((piece.cpu, piece.from_ns));
        let since = piece.from_ns + if is_local { 1 } else { SWITCH_NS };
        let is_telling = |event: &Event| !matches!(event.what, What::Stack(_) | What::Waking { .. });
        let mut later = cpu.between(since, to_ns.saturating_sub(1)).iter().filter(|event| is_telling(event));
        later.next().is_some_and(|first| first.flags & flags::NEED_RESCHED == 0)
    }

    /// Cause of a stretch of a thread that was to be switched out and ran on.
    fn non_preemptible(&self, cpu: &CpuEvents, stretch: &Stretch) -> Reading {
        let hole = untraced_gap::longest_hole(cpu, stretch.from_ns, stretch.to_ns).length_ns();
        let is_last = self.wake.switched.is_some_and(|(_, at)| at == stretch.to_ns);
        let place = self.let_go().filter(|_| is_last).map(|place| format!("rescheduled in {place}"));
        // A witness that is silent for more than two of its periods was held up.
        if let Some(witness) = self.facts.witness_ns
            && hole > witness.saturating_mul(5) / 2
        {
            let silent = "the witness did not tick either";
            return match self.facts.never_stands_still() {
                true => Reading::inferred(Cause::InterruptsOff, silent).at(place),
                false => Reading::inferred(Cause::CpuStalled, silent).at(place),
            };
        }
        if self.facts.may_be_taken() && hole > LONG_NS && hole > stretch.length_ns() / 4 {
            return Reading::either(Cause::NotPreemptible, Cause::CpuStalled).at(place);
        }
        Reading::direct(Cause::NotPreemptible).at(place)
    }
}
