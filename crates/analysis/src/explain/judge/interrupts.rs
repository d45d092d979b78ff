//! Causes from the due time to the waking: a late interrupt, or a long handler.

use super::{Reading, Scene};
use crate::explain::event::{Context, CpuEvents, Event, What, flags};
use crate::explain::expiry;
use crate::explain::locate::{Piece, WaitsFor};
use crate::explain::stack::Hit;
use crate::explain::timeline::Stretch;
use crate::explain::untraced_gap::{self, NOTABLE_NS};
use crate::wording::duration;
use punctual_model::{Cause, Phase};

/// Delivery time of a timer interrupt, ns. If interrupts are on this long after the expiry, the interrupt itself was
/// late.
const DELIVERY_NS: u64 = 2_000;
/// Length of a silence in an interrupt handler, ns, from which it may be stolen time, if it is most of the handler.
const LONG_NS: u64 = 100_000;

impl Scene<'_> {
    /// Cause of a stretch between the expiry of the timer and the waking.
    pub(super) fn interrupt(&self, cpu: &CpuEvents, piece: &Piece, stretch: &Stretch) -> Reading {
        let length = stretch.length_ns();
        // A phase of usual length is not divided.
        if piece.length().length.ns() <= self.baseline.ordinary_ns(piece.phase) {
            return Reading::direct(Cause::UsualWakeUp);
        }
        if stretch.is_broken {
            return Reading::cannot_tell("a context switch event is missing");
        }
        if self.wake.has_unknown_slack && piece.phase == Phase::ExpiryToInterrupt {
            return Reading::cannot_tell("its timer slack is unknown: the start of its timer is not in the trace");
        }
        match (piece.phase, stretch.context) {
            (Phase::InterruptToWakeup, Some(context)) if self.subject.waits_for == WaitsFor::Timer => {
                self.handler(cpu, piece, context, stretch)
            }
            (_, Some(context)) if context.is_hard() => self.context(cpu, context, stretch),
            (_, None) if stretch.pid == 0 => self.idle_exit(cpu, stretch),
            (Phase::ExpiryToInterrupt, _) if length > NOTABLE_NS / 4 => self.held_off(cpu, stretch),
            (_, Some(context)) => self.context(cpu, context, stretch),
            (Phase::InterruptToWakeup, None) if self.wake.handled_by.is_some() => self.before_its_thread(stretch),
            (Phase::InterruptToWakeup, None) if length > NOTABLE_NS => {
                Reading::cannot_tell("its timer had expired without a wakeup")
            }
            _ => Reading::direct(Cause::UsualWakeUp),
        }
    }

    /// Cause of a stretch of an interrupt or softirq, which may have stalled.
    pub(super) fn context(&self, cpu: &CpuEvents, context: Context, stretch: &Stretch) -> Reading {
        let cause = if context.is_hard() { Cause::Interrupt } else { Cause::Softirq };
        let hole = untraced_gap::longest_hole(cpu, stretch.from_ns, stretch.to_ns).length_ns();
        let may_be_stolen = self.facts.may_be_taken() && context != Context::Nmi;
        if may_be_stolen && hole > LONG_NS && hole > stretch.length_ns() / 2 {
            return Reading::either(cause, Cause::CpuStalled);
        }
        Reading::direct(cause)
    }

    /// Cause of a stretch of the interrupt in which the thread's own timer expired.
    fn handler(&self, cpu: &CpuEvents, piece: &Piece, context: Context, stretch: &Stretch) -> Reading {
        let hole = untraced_gap::longest_hole(cpu, stretch.from_ns, stretch.to_ns);
        let calls = expiry::calls(cpu, stretch);
        let within = calls.iter().rev().find(|call| call.from_ns <= hole.from_ns);
        let is_of_another = within.is_some_and(|call| call.timer != self.wake.timer);
        let is_long = hole.length_ns() > self.baseline.ordinary_ns(piece.phase) + NOTABLE_NS;
        if is_long && !is_of_another && !self.facts.never_stands_still() {
            // Waking a thread takes microseconds, but it can wait for kernel locks.
            let place = "no activity in the handler of the timer is known".to_owned();
            return Reading::either(Cause::CpuStalled, Cause::Interrupt).at(Some(place));
        }
        let timers = calls.len() as u64;
        let place = (timers > 1).then(|| format!("{} expired in it", crate::wording::things(timers, "timer")));
        self.context(cpu, context, stretch).at(place)
    }

    /// Cause of a stretch before the waking, if the interrupt has a thread that is runnable or runs.
    fn before_its_thread(&self, stretch: &Stretch) -> Reading {
        match (self.wake.handled_by, stretch.priority) {
            (Some((its, _)), _) if its == stretch.pid => Reading::direct(Cause::Interrupt),
            (Some((_, Some(its))), Some(theirs)) if theirs < its => Reading::direct(Cause::HigherPriority),
            (Some((_, Some(its))), Some(theirs)) if theirs == its => Reading::direct(Cause::EqualPriority),
            (Some((_, Some(_))), Some(_)) => {
                Reading::inferred(Cause::NotPreemptible, "the thread of the interrupt was due to run")
            }
            _ => Reading::cannot_tell("no event has its priority"),
        }
    }

    /// Cause of a stretch in which the CPU was idle at the expiry of the timer.
    fn idle_exit(&self, cpu: &CpuEvents, stretch: &Stretch) -> Reading {
        let before = cpu.between(0, stretch.from_ns).iter().rev();
        let state = before.take_while(|event| !matches!(event.what, What::Switch { .. }));
        let state = state.into_iter().find_map(|event| match event.what {
            What::Idle { state } => state,
            _ => None,
        });
        let place = state.map(|state| format!("idle state {state}"));
        if self.facts.may_be_taken() {
            return Reading::either(Cause::IdleExit, Cause::CpuStalled).at(place);
        }
        Reading::inferred(Cause::IdleExit, "the CPU was idle").at(place)
    }

    /// Cause of a stretch in which a thread or softirq ran on after the expiry of the timer.
    fn held_off(&self, cpu: &CpuEvents, stretch: &Stretch) -> Reading {
        if self.facts.never_stands_still() {
            let place = match self.hit() {
                Some(Hit::Kernel(place) | Hit::TurnsOn(place) | Hit::Plain(place)) => {
                    format!("enabled again in {place}")
                }
                Some(Hit::User) | None => "the CPU ran without taking an interrupt".to_owned(),
            };
            return Reading::inferred(Cause::InterruptsOff, place);
        }
        let is_on = |event: &&Event| {
            let is_plain = !matches!(event.what, What::Enter(_) | What::Leave(_) | What::Stack(_));
            is_plain && event.flags & flags::IRQS_OFF == 0
        };
        let later = cpu.between(stretch.from_ns + DELIVERY_NS, stretch.to_ns.saturating_sub(1));
        let switched = |event: &Event| matches!(event.what, What::Switch { .. });
        if let Some(event) = later.iter().find(is_on).or(later.iter().find(|event| switched(event))) {
            let after = duration((event.at_ns - stretch.from_ns) as f64);
            let place =
                format!("interrupts were enabled {after} after the timer had expired, but its own did not arrive");
            return Reading::inferred(Cause::CpuStalled, place);
        }
        match self.hit() {
            Some(Hit::User) => {
                Reading::inferred(Cause::CpuStalled, "the late interrupt hit user mode, where interrupts are on")
            }
            Some(Hit::Plain(place)) => {
                let why = format!("the late interrupt hit {place}, which enables no interrupts");
                Reading::inferred(Cause::CpuStalled, why)
            }
            Some(Hit::Kernel(place)) => Reading::either(Cause::InterruptsOff, Cause::CpuStalled)
                .at(Some(format!("the late interrupt hit {place}"))),
            Some(Hit::TurnsOn(place)) if self.facts.may_be_taken() => {
                Reading::either(Cause::InterruptsOff, Cause::CpuStalled).at(Some(format!("enabled again in {place}")))
            }
            Some(Hit::TurnsOn(place)) => Reading::inferred(Cause::InterruptsOff, format!("enabled again in {place}")),
            None if self.facts.may_be_taken() => Reading::either(Cause::InterruptsOff, Cause::CpuStalled),
            None => Reading::inferred(Cause::InterruptsOff, "the CPU ran without taking an interrupt"),
        }
    }
}
