//! Events of one wake-up: from the start of its timer, or the interrupt of its device, to its switch.

use super::event::{Context, CpuEvents, DEADLINE_PRIORITY, Event, Trace, What, state};
use super::timeline;
use punctual_model::{Phase, PhaseLength, Span, interrupt_of_thread};
use serde::{Deserialize, Serialize};

/// Longest time, ns, between an interrupt and the start of a softirq that belongs to it.
const BEHIND_NS: u64 = 5_000;
/// Time, ns, by which events of two traces may differ.
const TWO_TRACES_NS: u64 = 1_000;

/// Event that a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum WaitsFor {
    /// A timer of its own.
    #[default]
    Timer,
    /// A device with due times of its own.
    Device,
    /// The answer to a trigger that the thread sends at its due time.
    Answer,
    /// Nothing: it reads a counter, and a gap between two readings is explained.
    Nothing,
}

/// The wake-up to explain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Thread ID of the measured thread.
    pub pid: i32,
    /// The event that it waits for.
    pub waits_for: WaitsFor,
    /// CPU of the measured thread.
    pub cpu: u32,
    /// Its kernel priority: -1 deadline, 0 to 98 real-time, 100 to 139 normal; a lower number is a higher priority.
    pub priority: i32,
    /// Due time, or time of the trigger, `CLOCK_MONOTONIC`, ns.
    pub due_ns: u64,
    /// Time at which it read the clock, `CLOCK_MONOTONIC`, ns.
    pub woke_ns: u64,
    /// Timer slack, ns, used if the start of the timer is not in the trace.
    pub slack_ns: u64,
}

impl Subject {
    /// The wake-up with the priority that the latest switch of the thread shows: others can change it.
    pub(super) fn as_shown(&self, trace: &Trace) -> Subject {
        let is_own = |event: &Event| match event.what {
            What::Switch { prev, next, .. } => prev == self.pid || next == self.pid,
            _ => false,
        };
        let shown = last_between(trace, 0, self.woke_ns, is_own).map(|(_, event)| event.what);
        match shown {
            Some(What::Switch { next, next_priority: priority, .. }) if next == self.pid => {
                Subject { priority, ..*self }
            }
            Some(What::Switch { prev_priority: priority, .. }) => Subject { priority, ..*self },
            _ => *self,
        }
    }

    /// A gap: all of it is one phase.
    pub(super) fn gap(&self) -> Piece {
        Piece { phase: Phase::Gap, cpu: self.cpu, from_ns: self.due_ns, to_ns: self.woke_ns }
    }

    /// Whether it runs under the policy deadline.
    pub(super) fn has_runtime(&self) -> bool {
        self.priority == DEADLINE_PRIORITY
    }

    /// Whether it runs under the fair scheduler.
    pub(super) fn is_fair(&self) -> bool {
        self.priority >= 100
    }
}

/// A CPU and a time on it, ns.
pub(super) type Place = (u32, u64);

/// Events of a wake-up in the trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wake {
    /// Start of the wait: the thread started its timer, or was switched out.
    pub(super) asleep: Option<Place>,
    /// Address of the timer that the thread started.
    pub(super) timer: Option<u64>,
    /// Timer slack, ns.
    pub(super) slack_ns: u64,
    /// Whether the start of the timer is not in the trace, and other timers expired since its due time without it.
    pub(super) has_unknown_slack: bool,
    /// Start of the interrupt in which the timer expired, or that brought the answer.
    pub(super) entry: Option<Place>,
    /// The interrupt's own thread, if it did the waking, and its priority, if known.
    pub(super) handled_by: Option<(i32, Option<i32>)>,
    /// Waking of the thread.
    pub(super) waking: Option<Place>,
    /// Switch to the thread.
    pub(super) switched: Option<Place>,
}

/// A stretch of the wake-up in one phase, on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) phase: Phase,
    pub(super) cpu: u32,
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
}

impl Piece {
    pub(super) fn length(&self) -> PhaseLength {
        PhaseLength { phase: self.phase, length: Span(self.to_ns - self.from_ns) }
    }
}

impl Wake {
    /// Finds the events of `subject`. Timers are identified by their address, which works for all ways to wait that
    /// start a timer, on any clock.
    pub(super) fn find(trace: &Trace, subject: &Subject) -> Wake {
        if subject.waits_for != WaitsFor::Timer {
            return Wake::by_waking(trace, subject);
        }
        let is_start = |event: &Event| event.is_timer_start_of(subject.pid);
        Wake::from_start(trace, subject, last_between(trace, 0, subject.woke_ns, is_start))
    }

    /// Finds the events of `subject`, given the event that started the timer.
    pub(super) fn from_start(trace: &Trace, subject: &Subject, start: Option<(u32, Event)>) -> Wake {
        let woke = subject.woke_ns;
        let mut wake = Wake { slack_ns: subject.slack_ns, ..Wake::default() };
        let mut since = subject.due_ns;
        if let Some((cpu, Event { at_ns, what: What::TimerStart { timer, expires_ns, soft_ns }, .. })) = start {
            wake.asleep = Some((cpu, at_ns));
            wake.timer = Some(timer);
            wake.slack_ns = u64::try_from(expires_ns.saturating_sub(soft_ns)).unwrap_or(0);
            let is_expiry = |event: &Event| matches!(event.what, What::TimerExpire { timer: its, .. } if its == timer);
            // An expiry before that belongs to another wait.
            since = at_ns;
            if let Some((cpu, event)) = first_after(trace, at_ns, woke, is_expiry) {
                wake.entry = Some((cpu, entry_of(trace, cpu, event.at_ns)));
                since = event.at_ns;
            }
        }
        let is_waking = |event: &Event| event.what == What::Waking { pid: subject.pid };
        let waking = first_after(trace, since, woke, is_waking);
        wake.waking = waking.map(place);
        if let (None, Some((cpu, at))) = (wake.entry, wake.waking) {
            wake.entry = Some((cpu, entry_of(trace, cpu, at))).filter(|entry| *entry != (cpu, at));
        }
        if let (None, Some((cpu, entry))) = (start, wake.entry)
            && subject.is_fair()
            && let Some(passed_ns) = passed(trace, cpu, subject.due_ns + wake.slack_ns, entry)
        {
            (wake.slack_ns, wake.has_unknown_slack) = (passed_ns - subject.due_ns, true);
        }
        let since = wake.waking.map_or(since, |(_, at)| at);
        let began = wake.asleep.filter(|_| wake.waking.is_some());
        let has_slept = |at| first_after(trace, at, woke, |event| is_asleep(event, subject.pid)).is_some();
        wake.switched = match began.is_some_and(|(_, at)| has_slept(at)) {
            true => Some(runs_again(trace, subject, since)),
            false => first_after(trace, since, woke, |event| event.is_switch_to(subject.pid)).map(place),
        };
        wake
    }

    /// Phases from the due time to the reading of the clock, without gaps and without empty phases.
    pub(super) fn pieces(&self, subject: &Subject) -> Vec<Piece> {
        let (before, until_entry) = match subject.waits_for {
            WaitsFor::Timer | WaitsFor::Device | WaitsFor::Nothing => (Phase::NotYetWaiting, Phase::ExpiryToInterrupt),
            WaitsFor::Answer => (Phase::Sending, Phase::Away),
        };
        let home = self.switched.map_or(subject.cpu, |(cpu, _)| cpu);
        let timer_cpu = self.entry.or(self.waking).map_or(home, |(cpu, _)| cpu);
        let mut pieces = Vec::new();
        let mut at = subject.due_ns;
        let mut until = |phase: Phase, cpu: u32, to: u64| {
            let to_ns = to.clamp(at, subject.woke_ns);
            if to_ns > at {
                pieces.push(Piece { phase, cpu, from_ns: at, to_ns });
                at = to_ns;
            }
        };
        if let Some((cpu, asleep)) = self.asleep {
            until(before, cpu, asleep);
        }
        if let Some((_, entry)) = self.entry {
            until(Phase::TimerSlack, timer_cpu, subject.due_ns.saturating_add(self.slack_ns).min(entry));
            until(until_entry, timer_cpu, entry);
        }
        match (self.waking, self.switched) {
            (Some((cpu, waking)), _) => {
                let phase = match self.entry {
                    Some(_) => Phase::InterruptToWakeup,
                    None if subject.waits_for == WaitsFor::Answer => Phase::Away,
                    None => Phase::WholeWakeUp,
                };
                until(phase, cpu, waking);
                if let Some((cpu, switched)) = self.switched {
                    until(Phase::WakeupToSwitch, cpu, switched);
                }
            }
            (None, Some((cpu, switched))) => until(Phase::WholeWakeUp, cpu, switched),
            (None, None) => {}
        }
        let last = if self.waking.or(self.switched).is_some() { Phase::SwitchToUser } else { Phase::WholeWakeUp };
        until(last, home, subject.woke_ns);
        pieces
    }
}

/// Start of the last interrupt of a CPU between two instants in which timers expired: one that was due would have
/// expired in it.
fn passed(trace: &Trace, cpu: u32, from_ns: u64, to_ns: u64) -> Option<u64> {
    let expiries = trace.cpu(cpu)?.between(from_ns, to_ns.saturating_sub(1)).iter().rev();
    let expiry = expiries.into_iter().find(|event| matches!(event.what, What::TimerExpire { .. }))?;
    Some(entry_of(trace, cpu, expiry.at_ns)).filter(|entry| (from_ns..to_ns).contains(entry))
}

/// Start of the interrupt or softirq that contains `at_ns`; `at_ns` itself outside of all.
fn entry_of(trace: &Trace, cpu: u32, at_ns: u64) -> u64 {
    let Some(events) = trace.cpu(cpu) else { return at_ns };
    let open = timeline::contexts_at(events, at_ns);
    // The outermost interrupt, or else the softirq in which the timer expires.
    let hard = open.iter().find(|(context, _)| context.is_hard());
    hard.or(open.last()).map_or(at_ns, |(_, entered)| *entered)
}

fn place((cpu, event): (u32, Event)) -> Place {
    (cpu, event.at_ns)
}

/// Whether a thread is switched out here and needs a waking to run again.
fn is_asleep(event: &Event, pid: i32) -> bool {
    matches!(event.what, What::Switch { prev, prev_state, .. } if prev == pid && prev_state & state::NOT_RUNNABLE != 0)
}

/// First time after `since` at which the thread runs: its switch or, if that has no event, its first own event; at the
/// latest its reading of the clock.
fn runs_again(trace: &Trace, subject: &Subject, since: u64) -> Place {
    let Subject { pid, cpu, woke_ns, .. } = *subject;
    // A waking during the switch out counts as well.
    let runs = |event: &Event| event.is_run_by(pid) && !is_asleep(event, pid);
    first_after(trace, since + 1, woke_ns, runs).map_or((cpu, woke_ns), place)
}

/// Last event from `from` to `to`, on any CPU, for which `is_meant` holds.
pub(super) fn last_between(
    trace: &Trace,
    from: u64,
    to: u64,
    is_meant: impl Fn(&Event) -> bool,
) -> Option<(u32, Event)> {
    let last = |(cpu, events): (u32, &super::CpuEvents)| {
        let found = events.between(from, to).iter().rev().find(|event| is_meant(event));
        found.map(|event| (cpu, *event))
    };
    trace.numbered().filter_map(last).max_by_key(|(_, event)| event.at_ns)
}

/// First event from `from` to `to`, on any CPU, for which `is_meant` holds.
pub(super) fn first_after(
    trace: &Trace,
    from: u64,
    to: u64,
    is_meant: impl Fn(&Event) -> bool,
) -> Option<(u32, Event)> {
    let first = |(cpu, events): (u32, &super::CpuEvents)| {
        let found = events.between(from, to).iter().find(|event| is_meant(event));
        found.map(|event| (cpu, *event))
    };
    trace.numbered().filter_map(first).min_by_key(|(_, event)| event.at_ns)
}

impl Wake {
    /// Finds the events of `subject` from its last sleep on. Earlier wakings were not by the awaited event, and later
    /// ones had no effect because the thread already ran.
    fn by_waking(trace: &Trace, subject: &Subject) -> Wake {
        let (due, woke) = (subject.due_ns, subject.woke_ns);
        let is_waking = |event: &Event| event.what == What::Waking { pid: subject.pid };
        let sleep = |from, to| last_between(trace, from, to, |event| is_asleep(event, subject.pid)).map(place);
        // A thread that waits for a device may have slept since long before.
        let asleep = sleep(due, woke.saturating_sub(1)).or_else(|| sleep(0, due));
        let since = asleep.map_or(0, |(_, at)| at);
        let switched = runs_again(trace, subject, since);
        // A wake-up from another CPU may begin during the switch out.
        let waking =
            first_after(trace, since, switched.1, is_waking).or_else(|| last_between(trace, due, since, is_waking));
        if let Some((cpu, waking)) = waking.filter(|(_, waking)| waking.at_ns >= due) {
            let (entry, handled_by) = brought_by(trace, cpu, &waking);
            // A packet is due at its interrupt, as another trace has it.
            let entry = entry.filter(|(_, at)| *at + TWO_TRACES_NS >= due);
            let (waking, switched) = (Some((cpu, waking.at_ns)), Some(switched));
            return Wake { asleep, entry, handled_by, waking, switched, ..Wake::default() };
        }
        // No sleep since: the thread was woken before it slept, or the awaited event had already happened.
        let waking = last_between(trace, due, woke, is_waking).map(place);
        Wake { asleep: Some(waking.unwrap_or((subject.cpu, woke))), waking, ..Wake::default() }
    }
}

/// Start of the interrupt that caused a waking, and the interrupt thread that did the waking, with its priority.
fn brought_by(trace: &Trace, cpu: u32, waking: &Event) -> (Option<Place>, Option<(i32, Option<i32>)>) {
    let Some(events) = trace.cpu(cpu) else { return (None, None) };
    let open = timeline::contexts_at(events, waking.at_ns);
    if let Some((_, at)) = open.iter().find(|(context, _)| context.is_hard()) {
        return (Some((cpu, *at)), None);
    }
    if let Some(number) = trace.names.get(&waking.pid).and_then(|name| interrupt_of_thread(name)) {
        let begins = |event: &Event| event.what == What::Enter(Context::Interrupt(number));
        let entry = last_between(trace, 0, waking.at_ns, begins).map(place);
        return (entry, Some((waking.pid, priority_of(events, waking))));
    }
    let softirq = open.first().map(|(_, at)| interrupt_before(events, *at).unwrap_or(*at));
    (softirq.map(|at| (cpu, at)), None)
}

/// Priority of the current thread of an event at its switch in.
fn priority_of(events: &CpuEvents, at: &Event) -> Option<i32> {
    events.between(0, at.at_ns).iter().rev().find_map(|event| match event.what {
        What::Switch { next, next_priority, .. } if next == at.pid => Some(next_priority),
        _ => None,
    })
}

/// Start of the interrupt that raised the softirq entered at `at_ns`: the softirq follows its exit.
fn interrupt_before(events: &CpuEvents, at_ns: u64) -> Option<u64> {
    let before = events.events.get(..events.from(at_ns))?;
    let (end, before) = before.split_last()?;
    let What::Leave(context) = end.what else { return None };
    let is_of_it = context.is_hard() && at_ns - end.at_ns <= BEHIND_NS;
    let begin = before.iter().rev().find(|event| event.what == What::Enter(context));
    begin.filter(|_| is_of_it).map(|event| event.at_ns)
}
