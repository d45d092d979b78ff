//! Causes: the reason of the wait in each stretch of a wake-up, and the evidence for it.

mod interrupts;
mod queue;

use super::baseline::Baseline;
use super::event::{CpuEvents, Event, Trace, What};
use super::excess::{Inside, Within};
use super::expiry;
use super::locate::{Piece, Subject, Wake, first_after};
use super::priority_boost::Inherited;
use super::stack;
use super::thread_state::{self, Interval, ThreadState};
use super::timeline::{self, Stretch};
use super::untraced_gap::{self, Hole, NOTABLE_NS};
use super::{Facts, Symbols};
use crate::watch::Activation;
use crate::wording::duration;
use punctual_model::{Cause, Evidence, Owner, Phase, Segment, Span};

/// All data on one wake-up.
pub(super) struct Scene<'a> {
    pub(super) trace: &'a Trace,
    pub(super) subject: &'a Subject,
    /// The priority that it is to have; in `subject` it is the one that it had.
    pub(super) asked: i32,
    pub(super) facts: &'a Facts,
    pub(super) symbols: Symbols<'a>,
    pub(super) baseline: Baseline,
    pub(super) inherited: Inherited,
    pub(super) wake: &'a Wake,
    /// What is known of a watched thread.
    pub(super) inside: Option<&'a Inside>,
    /// The activation of a watched thread that follows the wake-up, and before it the one that this is behind.
    pub(super) activations: Vec<Within<'a>>,
}

/// Cause of a stretch, with its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading {
    cause: Cause,
    or: Option<Cause>,
    evidence: Evidence,
    place: Option<String>,
}

impl Reading {
    pub(super) fn direct(cause: Cause) -> Reading {
        Reading { cause, or: None, evidence: Evidence::Direct, place: None }
    }

    pub(super) fn inferred(cause: Cause, place: impl Into<String>) -> Reading {
        Reading { cause, or: None, evidence: Evidence::Inferred, place: Some(place.into()) }
    }

    fn either(cause: Cause, or: Cause) -> Reading {
        Reading { cause, or: Some(or), evidence: Evidence::Ambiguous, place: None }
    }

    pub(super) fn cannot_tell(place: impl Into<String>) -> Reading {
        Reading { cause: Cause::Unknown, or: None, evidence: Evidence::Undetermined, place: Some(place.into()) }
    }

    pub(super) fn at(self, place: Option<String>) -> Reading {
        Reading { place: place.or(self.place), ..self }
    }
}

/// Shortest silence, ns, that is checked for a standstill of the whole machine.
const STANDSTILL_NS: u64 = 50_000;

impl Scene<'_> {
    /// Segments of a piece: its stretches, each with its cause.
    pub(super) fn judge(&self, piece: &Piece) -> Vec<Segment> {
        let Some(cpu) = self.trace.cpu(piece.cpu) else {
            let owner = Owner { name: "?".to_owned(), pid: None };
            let reading = Reading::cannot_tell(format!("CPU {} is not in the trace", piece.cpu));
            return vec![self.segment(piece.phase, piece.from_ns, piece.to_ns, owner, reading)];
        };
        match piece.phase {
            Phase::TimerSlack => {
                let reading = match self.wake.has_unknown_slack {
                    true => {
                        Reading::inferred(Cause::TimerSlack, "other timers of its CPU expired, and its own did not")
                    }
                    false => Reading::direct(Cause::TimerSlack),
                };
                vec![self.segment(piece.phase, piece.from_ns, piece.to_ns, self.own(), reading)]
            }
            Phase::Away => {
                let owner = Owner { name: "link and target".to_owned(), pid: None };
                let reading = Reading::inferred(Cause::LinkAndTarget, "this machine has not received it yet");
                vec![self.segment(piece.phase, piece.from_ns, piece.to_ns, owner, reading)]
            }
            // The timer of a stopped thread does not wake it.
            Phase::InterruptToWakeup if self.is_stopped_in(piece) || self.frozen_until(piece.to_ns).is_some() => {
                self.by_intervals(piece)
            }
            Phase::ExpiryToInterrupt | Phase::InterruptToWakeup => {
                let judged = |stretch: &Stretch| self.interrupt(cpu, piece, stretch);
                self.stretches(cpu, piece).iter().flat_map(|stretch| self.segments(piece, stretch, judged)).collect()
            }
            Phase::WakeupToSwitch => self.queue(cpu, piece),
            Phase::NotYetWaiting => self.parts_behind(piece).iter().flat_map(|part| self.by_intervals(part)).collect(),
            Phase::Sending | Phase::SwitchToUser | Phase::WholeWakeUp | Phase::Activation | Phase::Gap => {
                self.by_intervals(piece)
            }
        }
    }

    /// The activation that the one to explain is behind, if it was under way at `at_ns`.
    fn behind(&self, at_ns: u64) -> Option<&Activation> {
        let [behind, _] = self.activations.as_slice() else { return None };
        Some(behind.activation).filter(|behind| at_ns < behind.end_ns)
    }

    /// Parts of a piece in which the thread did not wait yet, cut at the end of the activation that it was in.
    fn parts_behind(&self, piece: &Piece) -> Vec<Piece> {
        match self.behind(piece.from_ns).map(|behind| behind.end_ns).filter(|end_ns| *end_ns < piece.to_ns) {
            Some(end_ns) => vec![Piece { to_ns: end_ns, ..*piece }, Piece { from_ns: end_ns, ..*piece }],
            None => vec![*piece],
        }
    }

    /// Whether an activation was under way in all of a piece.
    pub(super) fn is_inside(&self, piece: &Piece) -> bool {
        piece.phase == Phase::Activation || piece.phase == Phase::NotYetWaiting && self.behind(piece.from_ns).is_some()
    }

    /// Segments of a phase in which the thread itself may run, wait for the CPU or be stopped.
    fn by_intervals(&self, piece: &Piece) -> Vec<Segment> {
        let intervals = thread_state::intervals(self.trace, self.subject.pid, piece.cpu, piece.from_ns, piece.to_ns);
        intervals.iter().flat_map(|interval| self.interval(piece, interval)).collect()
    }

    /// Whether a signal or a debugger stopped the thread in this piece.
    fn is_stopped_in(&self, piece: &Piece) -> bool {
        let intervals = thread_state::intervals(self.trace, self.subject.pid, piece.cpu, piece.from_ns, piece.to_ns);
        intervals.iter().any(|interval| interval.state == ThreadState::Stopped)
    }

    fn interval(&self, piece: &Piece, interval: &Interval) -> Vec<Segment> {
        let one = |reading| vec![self.segment(piece.phase, interval.from_ns, interval.to_ns, self.own(), reading)];
        let part = |cpu| Piece { cpu, from_ns: interval.from_ns, to_ns: interval.to_ns, ..*piece };
        match interval.state {
            ThreadState::Stopped => {
                one(Reading::direct(Cause::Stopped).at(Some("by a signal or a debugger".to_owned())))
            }
            ThreadState::Blocked if let Some(frozen) = self.frozen_until(interval.to_ns) => one(frozen),
            ThreadState::Blocked if self.is_inside(piece) => vec![self.asleep_inside(piece, interval)],
            ThreadState::Blocked
                if thread_state::first_fault(self.trace, self.subject.pid, piece.from_ns, interval.from_ns)
                    .is_some() =>
            {
                one(Reading::direct(Cause::PageFault))
            }
            ThreadState::Blocked if piece.phase == Phase::Sending => {
                one(Reading::cannot_tell("it blocked while sending"))
            }
            ThreadState::Blocked if piece.phase == Phase::WholeWakeUp => {
                one(Reading::cannot_tell("the events of its timer are missing"))
            }
            ThreadState::Blocked if piece.phase == Phase::InterruptToWakeup => {
                one(Reading::cannot_tell("its timer had expired without a wakeup"))
            }
            ThreadState::Blocked if !self.facts.sees_page_faults => {
                one(Reading::either(Cause::PageFault, Cause::OwnOverrun))
            }
            ThreadState::Blocked => {
                one(Reading::cannot_tell("it slept for a reason without an event, like a frozen cgroup"))
            }
            ThreadState::Runnable(cpu) => {
                let part = part(cpu);
                self.trace.cpu(cpu).map_or_else(Vec::new, |events| self.queue(events, &part))
            }
            ThreadState::Running(cpu) => {
                let part = part(cpu);
                let Some(events) = self.trace.cpu(cpu) else {
                    return one(Reading::cannot_tell("the events of its CPU are missing"));
                };
                let judged = |stretch: &Stretch| self.running(events, piece, stretch);
                let mut stretches = self.stretches(events, &part);
                if let Some(within) = self.within(part.from_ns).filter(|_| self.is_inside(piece)) {
                    stretches = stretches.iter().flat_map(|stretch| within.excess.parts(stretch)).collect();
                }
                stretches.iter().flat_map(|stretch| self.segments(piece, stretch, judged)).collect()
            }
        }
    }

    /// The waking of the thread at `at_ns`, with its CPU.
    pub(super) fn waking_at(&self, at_ns: u64) -> Option<(u32, Event)> {
        first_after(self.trace, at_ns, at_ns, |event| event.what == What::Waking { pid: self.subject.pid })
    }

    /// A sleep in a frozen control group until `to_ns`, where the stack of its waking shows the thawing.
    fn frozen_until(&self, to_ns: u64) -> Option<Reading> {
        let (cpu, waking) = self.waking_at(to_ns)?;
        let functions = stack::stack_at(self.trace, self.trace.cpu(cpu)?, to_ns, self.symbols)?;
        let is_thawed = functions.iter().any(|name| name.contains("freez") || name.contains("thaw"));
        let by = self.trace.owner_name(None, waking.pid);
        let place = format!("its control group was frozen, until {by} thawed it");
        is_thawed.then(|| Reading::direct(Cause::Stopped).at(Some(place)))
    }

    /// Segment of a sleep within an activation.
    fn asleep_inside(&self, piece: &Piece, interval: &Interval) -> Segment {
        let slept = self.slept(interval.from_ns, interval.to_ns);
        let name = |pid| Owner { name: self.trace.owner_name(None, pid), pid: Some(pid) };
        let owner = slept.owner.map_or_else(|| self.own(), name);
        self.segment(piece.phase, interval.from_ns, interval.to_ns, owner, slept.reading)
    }

    /// Stretches of a piece, each of one thread, interrupt or softirq and of one priority.
    fn stretches(&self, cpu: &CpuEvents, piece: &Piece) -> Vec<Stretch> {
        let stretches = timeline::stretches(cpu, piece.from_ns, piece.to_ns);
        stretches.iter().flat_map(|stretch| self.inherited.cut(cpu, stretch)).collect()
    }

    /// Segments of a stretch. A standstill of the whole machine within it is a segment of its own.
    fn segments(&self, piece: &Piece, stretch: &Stretch, judged: impl Fn(&Stretch) -> Reading) -> Vec<Segment> {
        let segment = |part: &Stretch, reading| {
            self.segment(piece.phase, part.from_ns, part.to_ns, self.owner(piece.cpu, part), reading)
        };
        let still = self.trace.cpu(piece.cpu).and_then(|cpu| {
            let is_of_gap = piece.phase == Phase::Gap && stretch.context.is_none() && stretch.pid == self.subject.pid;
            if stretch.length_ns() < STANDSTILL_NS || self.facts.never_stands_still() || is_of_gap {
                return None;
            }
            let hole = untraced_gap::longest_hole(cpu, stretch.from_ns, stretch.to_ns);
            let is_long = hole.length_ns() >= STANDSTILL_NS;
            is_long.then(|| untraced_gap::stood_still(self.trace, piece.cpu, hole))?.map(|late| (hole, late))
        });
        let Some((Hole { from_ns, to_ns }, late)) = still else {
            return vec![segment(stretch, judged(stretch))];
        };
        let before = Stretch { to_ns: from_ns, ..*stretch };
        let within = Stretch { from_ns, to_ns, ..*stretch };
        let after = Stretch { from_ns: to_ns, is_chosen: false, ..*stretch };
        let timers = crate::wording::things(late as u64, "timer");
        let stood = match piece.phase {
            Phase::Gap => self.below(piece.cpu, &within),
            _ => Reading::inferred(
                Cause::CpuStalled,
                format!("no CPU has an event, and {timers} of other CPUs were late as well"),
            ),
        };
        let parts = [(before, None), (within, Some(stood)), (after, None)];
        let parts = parts.into_iter().filter(|(part, _)| part.from_ns < part.to_ns);
        parts.map(|(part, reading)| segment(&part, reading.unwrap_or_else(|| judged(&part)))).collect()
    }

    /// Cause of a stretch in which the measured thread, or an interrupt of it, had the CPU.
    fn running(&self, cpu: &CpuEvents, piece: &Piece, stretch: &Stretch) -> Reading {
        let length = stretch.length_ns();
        if let Some(context) = stretch.context {
            return self.context(cpu, context, stretch);
        }
        if self.is_inside(piece) {
            let (cause, or, place) = self.ran(cpu, stretch);
            if cause == Cause::UsualRun && piece.phase == Phase::NotYetWaiting {
                return Reading::direct(Cause::OwnOverrun);
            }
            let or = or.or_else(|| (cause == Cause::RanLonger && self.facts.lacks_calls).then_some(Cause::SystemCall));
            if self.facts.lacks_interrupts && cause != Cause::UsualRun {
                return Reading::cannot_tell("it had the CPU, or an interrupt did: the trace has none");
            }
            let reading = or.map_or_else(|| Reading::direct(cause), |or| Reading::either(cause, or));
            return reading.at(place);
        }
        if thread_state::first_fault(self.trace, self.subject.pid, piece.from_ns, stretch.to_ns.saturating_sub(1))
            .is_some()
        {
            return Reading::direct(Cause::PageFault);
        }
        if stretch.is_broken && stretch.pid != self.subject.pid {
            return Reading::cannot_tell("a context switch event is missing");
        }
        match piece.phase {
            Phase::NotYetWaiting if length <= NOTABLE_NS => Reading::direct(Cause::OwnOverrun),
            Phase::NotYetWaiting if self.facts.never_stands_still() => {
                Reading::inferred(Cause::OwnOverrun, "the thread was running, not yet waiting")
            }
            // Between two waits, the thread runs for some microseconds only.
            Phase::NotYetWaiting => Reading::either(Cause::OwnOverrun, Cause::CpuStalled),
            Phase::Sending => Reading::direct(Cause::UsualWakeUp),
            Phase::Gap => self.in_gap(cpu, piece, stretch),
            Phase::WholeWakeUp => Reading::cannot_tell("the events of its timer and its wakeup are missing"),
            phase if length <= self.baseline.ordinary_ns(phase) => Reading::direct(Cause::UsualWakeUp),
            _ if !self.facts.sees_page_faults && !self.facts.never_stands_still() => {
                Reading::either(Cause::PageFault, Cause::CpuStalled)
            }
            _ if self.facts.never_stands_still() => {
                Reading::cannot_tell("the thread was switched in long before it read the clock")
            }
            _ => Reading::inferred(Cause::CpuStalled, "the thread was switched in, but continued late"),
        }
    }

    fn segment(&self, phase: Phase, from_ns: u64, to_ns: u64, owner: Owner, reading: Reading) -> Segment {
        let Reading { cause, or, evidence, mut place } = self.as_far_as_seen(reading);
        if let Some(behind) = self.behind(from_ns).filter(|_| phase == Phase::NotYetWaiting) {
            let took = duration(behind.response_ns() as f64);
            let before = format!("in an activation before it, of {took}");
            place = Some(place.map_or_else(|| before.clone(), |place| format!("{place}, {before}")));
        }
        Segment {
            at: Span(from_ns - self.subject.due_ns),
            length: Span(to_ns - from_ns),
            phase,
            owner,
            cause,
            or,
            evidence,
            place,
        }
    }

    /// A reading without what is concluded from the lack of interrupts where the trace has none at all.
    fn as_far_as_seen(&self, reading: Reading) -> Reading {
        let needs_interrupts = |cause| {
            use Cause::{CpuStalled, Firmware, Hypervisor, IdleExit, InterruptsOff, KernelEntry};
            matches!(cause, CpuStalled | InterruptsOff | IdleExit | Firmware | Hypervisor | KernelEntry)
        };
        let is_guess = needs_interrupts(reading.cause) || reading.or.is_some_and(needs_interrupts);
        match self.facts.lacks_interrupts && is_guess {
            true => Reading::cannot_tell("the trace has no interrupts"),
            false => reading,
        }
    }

    /// The measured thread as an owner.
    fn own(&self) -> Owner {
        Owner { name: self.trace.owner_name(None, self.subject.pid), pid: Some(self.subject.pid) }
    }

    /// Owner of the CPU in a stretch.
    fn owner(&self, cpu: u32, stretch: &Stretch) -> Owner {
        let name = self.trace.owner_name(stretch.context, stretch.pid);
        if stretch.context.is_some() && stretch.length_ns() > NOTABLE_NS {
            // Timers of all programs share an interrupt, so the timer function tells more than the name.
            let function = self.trace.cpu(cpu).and_then(|cpu| expiry::most_of(cpu, stretch));
            let name = match function.and_then(self.symbols) {
                Some(function) => format!("{name} ({function})"),
                None => name,
            };
            return Owner { name, pid: None };
        }
        let is_worker = stretch.context.is_none() && name.starts_with("kworker/");
        // The work item of a kworker tells more than its number.
        let work = self.trace.cpu(cpu).filter(|_| is_worker).and_then(|cpu| self.work(cpu, stretch));
        let name = work.map_or(name, |work| format!("kworker {work}"));
        Owner { name, pid: stretch.context.is_none().then_some(stretch.pid).filter(|pid| *pid != 0) }
    }

    /// Name of the function that a kworker executes.
    fn work(&self, cpu: &CpuEvents, stretch: &Stretch) -> Option<String> {
        let since = stretch.from_ns.saturating_sub(NOTABLE_NS * 500);
        let works = cpu.between(since, stretch.to_ns).iter().rev().filter(|event| event.pid == stretch.pid);
        let function = works.into_iter().find_map(|event| match event.what {
            What::Work { function } => Some(function),
            _ => None,
        })?;
        (self.symbols)(function)
    }

    /// Function in which the previous thread released the CPU at the end of the queue phase.
    fn let_go(&self) -> Option<String> {
        let (cpu, at) = self.wake.switched?;
        stack::let_go(self.trace, self.trace.cpu(cpu)?, at, self.symbols)
    }

    /// Code interrupted by the interrupt that woke the thread; `None` if the interrupt's own thread woke it.
    fn hit(&self) -> Option<stack::Hit> {
        let (cpu, at) = self.wake.waking.filter(|_| self.wake.handled_by.is_none())?;
        stack::interrupted(self.trace, self.trace.cpu(cpu)?, at, self.symbols)
    }
}
