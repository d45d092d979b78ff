//! The events of one wake-up: from the start of its timer, or the interrupt of its device, to its switch.

use super::event::{Context, CpuEvents, Event, Trace, What, state};
use super::timeline;
use model::{Phase, PhaseLength, Span};

/// A softirq that begins so soon after an interrupt is of that interrupt, ns.
const BEHIND_NS: u64 = 5_000;
/// What the kernel calls the threads of interrupts, before their number (kernel/irq/manage.c).
const THREAD: &str = "irq/";

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitsFor {
    /// A timer of its own.
    #[default]
    Timer,
    /// A device that is due by itself.
    Device,
    /// The answer to a trigger that it sends when it is due.
    Answer,
}

/// Which wake-up is to be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// The measured thread, as the kernel numbers it.
    pub pid: i32,
    /// What it waits for.
    pub waits_for: WaitsFor,
    /// The CPU that it was made for.
    pub cpu: u32,
    /// Its priority as the kernel counts: -1 deadline, 0 to 98 real-time, 100 to 139 normal; lower is more.
    pub priority: i32,
    /// When it was due, or sent the trigger, `CLOCK_MONOTONIC`, ns.
    pub due_ns: u64,
    /// When it read the clock, `CLOCK_MONOTONIC`, ns.
    pub woke_ns: u64,
    /// How much later than asked its timer may expire, ns, where the start of the timer is not in the trace.
    pub slack_ns: u64,
}

impl Subject {
    /// Whether the fair scheduler decides when it runs.
    pub(super) fn is_fair(&self) -> bool {
        self.priority >= 100
    }
}

/// An instant on a CPU.
pub(super) type Place = (u32, u64);

/// What the trace holds of a wake-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wake {
    /// When the thread had begun to wait: it started its timer, or was switched out.
    pub(super) asleep: Option<Place>,
    /// Address of the timer that the thread started.
    pub(super) timer: Option<u64>,
    /// How much later than asked the timer was allowed to expire, ns.
    pub(super) slack_ns: u64,
    /// When the interrupt began that let the timer expire, or brought the answer.
    pub(super) entry: Option<Place>,
    /// The interrupt's own thread, which woke this one, and its priority, where there is one and that is known.
    pub(super) handled_by: Option<(i32, Option<i32>)>,
    /// When the thread was being woken.
    pub(super) waking: Option<Place>,
    /// When it was switched in.
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
    /// Finds the events of `subject`. Timers are recognised by their address: so it works for every way to wait that
    /// starts a timer, whatever clock that is on.
    pub(super) fn find(trace: &Trace, subject: &Subject) -> Wake {
        if subject.waits_for != WaitsFor::Timer {
            return Wake::by_waking(trace, subject);
        }
        let is_start = |event: &Event| event.is_timer_start_of(subject.pid);
        Wake::from_start(trace, subject, last_between(trace, 0, subject.woke_ns, is_start))
    }

    /// The same, with the event that started the timer.
    pub(super) fn from_start(trace: &Trace, subject: &Subject, start: Option<(u32, Event)>) -> Wake {
        let woke = subject.woke_ns;
        let mut wake = Wake { slack_ns: subject.slack_ns, ..Wake::default() };
        let mut since = subject.due_ns;
        if let Some((cpu, Event { at_ns, what: What::TimerStart { timer, expires_ns, soft_ns }, .. })) = start {
            wake.asleep = Some((cpu, at_ns));
            wake.timer = Some(timer);
            wake.slack_ns = u64::try_from(expires_ns.saturating_sub(soft_ns)).unwrap_or(0);
            let is_expiry = |event: &Event| matches!(event.what, What::TimerExpire { timer: its, .. } if its == timer);
            // One that has expired before it was due is of another wait.
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
        let since = wake.waking.map_or(since, |(_, at)| at);
        let began = wake.asleep.filter(|_| wake.waking.is_some());
        let has_slept = |at| first_after(trace, at, woke, |event| is_asleep(event, subject.pid)).is_some();
        wake.switched = match began.is_some_and(|(_, at)| has_slept(at)) {
            true => Some(runs_again(trace, subject, since)),
            false => first_after(trace, since, woke, |event| event.is_switch_to(subject.pid)).map(place),
        };
        wake
    }

    /// The phases from the due time to the reading of the clock, without gaps; those without length left out.
    pub(super) fn pieces(&self, subject: &Subject) -> Vec<Piece> {
        let (before, until_entry) = match subject.waits_for {
            WaitsFor::Timer | WaitsFor::Device => (Phase::NotAsleep, Phase::Expiry),
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
            until(Phase::Slack, timer_cpu, subject.due_ns.saturating_add(self.slack_ns).min(entry));
            until(until_entry, timer_cpu, entry);
        }
        match (self.waking, self.switched) {
            (Some((cpu, waking)), _) => {
                let phase = match self.entry {
                    Some(_) => Phase::Handler,
                    None if subject.waits_for == WaitsFor::Answer => Phase::Away,
                    None => Phase::Undivided,
                };
                until(phase, cpu, waking);
                if let Some((cpu, switched)) = self.switched {
                    until(Phase::Queue, cpu, switched);
                }
            }
            (None, Some((cpu, switched))) => until(Phase::Undivided, cpu, switched),
            (None, None) => {}
        }
        let last = if self.waking.or(self.switched).is_some() { Phase::Return } else { Phase::Undivided };
        until(last, home, subject.woke_ns);
        pieces
    }
}

/// When the interrupt or softirq began in which something happened at `at_ns`; `at_ns` itself outside of all.
fn entry_of(trace: &Trace, cpu: u32, at_ns: u64) -> u64 {
    let Some(events) = trace.cpu(cpu) else { return at_ns };
    let open = timeline::contexts_at(events, at_ns);
    // The outermost interrupt; a timer that expires in a softirq begins with that.
    let hard = open.iter().find(|(context, _)| context.is_hard());
    hard.or(open.last()).map_or(at_ns, |(_, entered)| *entered)
}

fn place((cpu, event): (u32, Event)) -> Place {
    (cpu, event.at_ns)
}

/// Whether a thread is switched out here, and has to be woken before it runs again.
fn is_asleep(event: &Event, pid: i32) -> bool {
    matches!(event.what, What::Switch { prev, prev_state, .. } if prev == pid && prev_state & state::NOT_RUNNABLE != 0)
}

/// Where the thread runs for the first time after `since`: its switch or, should that have left no event, the first that is its
/// own; at the latest it runs when it reads the clock.
fn runs_again(trace: &Trace, subject: &Subject, since: u64) -> Place {
    let Subject { pid, cpu, woke_ns, .. } = *subject;
    // Who is woken while it is being switched out is woken all the same.
    let runs = |event: &Event| event.is_run_by(pid) && !is_asleep(event, pid);
    first_after(trace, since + 1, woke_ns, runs).map_or((cpu, woke_ns), place)
}

/// The last event from `from` until `to`, on any CPU, that is meant.
fn last_between(trace: &Trace, from: u64, to: u64, is_meant: impl Fn(&Event) -> bool) -> Option<(u32, Event)> {
    let last = |(cpu, events): (u32, &super::CpuEvents)| {
        let found = events.between(from, to).iter().rev().find(|event| is_meant(event));
        found.map(|event| (cpu, *event))
    };
    trace.numbered().filter_map(last).max_by_key(|(_, event)| event.at_ns)
}

/// The first event from `from` until `to`, on any CPU, that is meant.
fn first_after(trace: &Trace, from: u64, to: u64, is_meant: impl Fn(&Event) -> bool) -> Option<(u32, Event)> {
    let first = |(cpu, events): (u32, &super::CpuEvents)| {
        let found = events.between(from, to).iter().find(|event| is_meant(event));
        found.map(|event| (cpu, *event))
    };
    trace.numbered().filter_map(first).min_by_key(|(_, event)| event.at_ns)
}

impl Wake {
    /// Finds the events of `subject` from its last sleep on: whatever woke it before was not what it waited for, and whatever
    /// woke it once it ran did so in vain.
    fn by_waking(trace: &Trace, subject: &Subject) -> Wake {
        let (due, woke) = (subject.due_ns, subject.woke_ns);
        let is_waking = |event: &Event| event.what == What::Waking { pid: subject.pid };
        let sleep = |from, to| last_between(trace, from, to, |event| is_asleep(event, subject.pid)).map(place);
        // What waits for a device may sleep since long before.
        let asleep = sleep(due, woke.saturating_sub(1)).or_else(|| sleep(0, due));
        let since = asleep.map_or(0, |(_, at)| at);
        let switched = runs_again(trace, subject, since);
        // A wake-up from another CPU may begin while it is being switched out.
        let waking =
            first_after(trace, since, switched.1, is_waking).or_else(|| last_between(trace, due, since, is_waking));
        if let Some((cpu, waking)) = waking.filter(|(_, waking)| waking.at_ns >= due) {
            let (entry, handled_by) = brought_by(trace, cpu, &waking);
            let entry = entry.filter(|(_, at)| *at >= due);
            let (waking, switched) = (Some((cpu, waking.at_ns)), Some(switched));
            return Wake { asleep, entry, handled_by, waking, switched, ..Wake::default() };
        }
        // It has not slept since. It was about to when it was woken, or what it waited for was there.
        let waking = last_between(trace, due, woke, is_waking).map(place);
        Wake { asleep: Some(waking.unwrap_or((subject.cpu, woke))), waking, ..Wake::default() }
    }
}

/// When the interrupt began on whose behalf a thread was woken, and the thread that did so for it, with its priority.
fn brought_by(trace: &Trace, cpu: u32, waking: &Event) -> (Option<Place>, Option<(i32, Option<i32>)>) {
    let Some(events) = trace.cpu(cpu) else { return (None, None) };
    let open = timeline::contexts_at(events, waking.at_ns);
    if let Some((_, at)) = open.iter().find(|(context, _)| context.is_hard()) {
        return (Some((cpu, *at)), None);
    }
    if let Some(number) = thread_of(trace, waking.pid) {
        let begins = |event: &Event| event.what == What::Enter(Context::Interrupt(number));
        let entry = last_between(trace, 0, waking.at_ns, begins).map(place);
        return (entry, Some((waking.pid, priority_of(events, waking))));
    }
    let softirq = open.first().map(|(_, at)| interrupt_before(events, *at).unwrap_or(*at));
    (softirq.map(|at| (cpu, at)), None)
}

/// Which interrupt a thread handles: `irq/36-eth0`.
fn thread_of(trace: &Trace, pid: i32) -> Option<u32> {
    let (number, _) = trace.names.get(&pid)?.strip_prefix(THREAD)?.split_once('-')?;
    number.parse().ok()
}

/// The priority with which the current thread of an event was switched in.
fn priority_of(events: &CpuEvents, at: &Event) -> Option<i32> {
    events.between(0, at.at_ns).iter().rev().find_map(|event| match event.what {
        What::Switch { next, next_priority, .. } if next == at.pid => Some(next_priority),
        _ => None,
    })
}

/// When the interrupt began at whose end the softirq began that was entered at `at_ns`.
fn interrupt_before(events: &CpuEvents, at_ns: u64) -> Option<u64> {
    let before = events.events.get(..events.from(at_ns))?;
    let (end, before) = before.split_last()?;
    let What::Leave(context) = end.what else { return None };
    let is_of_it = context.is_hard() && at_ns - end.at_ns <= BEHIND_NS;
    let begin = before.iter().rev().find(|event| event.what == What::Enter(context));
    begin.filter(|_| is_of_it).map(|event| event.at_ns)
}
