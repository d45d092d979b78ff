//! Timeline of a CPU: what owned it and when, from its events; also for charts and exports.

use super::event::{Context, CpuEvents, Event, Trace, What, flags};

/// Interval in which one thread, interrupt or softirq had a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// The innermost interrupt or softirq; `None` when the thread itself ran.
    pub(super) context: Option<Context>,
    /// The current thread; 0 is idle.
    pub(super) pid: i32,
    /// Its priority; `None` if no switch records it.
    pub(super) priority: Option<i32>,
    /// Whether the thread was switched in within the requested window.
    pub(super) is_chosen: bool,
    /// Whether the owner is uncertain, because a switch has no event.
    pub(super) is_broken: bool,
}

impl Stretch {
    pub(super) fn length_ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }
}

/// State of a CPU during the scan of its events.
#[derive(Debug, Clone, Default)]
struct State {
    pid: i32,
    priority: Option<i32>,
    contexts: Vec<(Context, u64)>,
    is_chosen: bool,
    is_broken: bool,
}

impl State {
    /// State before the event with index `at`, reconstructed from the last switch before it.
    fn before(cpu: &CpuEvents, at: usize) -> State {
        let past = cpu.events.get(..at).unwrap_or_default();
        let is_switch = |event: &Event| matches!(event.what, What::Switch { .. });
        let begin = past.iter().rposition(is_switch).unwrap_or(0);
        let rest = cpu.events.get(at..).unwrap_or_default();
        let mut state = State::default();
        // Without an earlier switch, the next one names the thread; without any switch, the first event.
        let next = rest.iter().find_map(|event| match event.what {
            What::Switch { prev, prev_priority, .. } => Some((prev, Some(prev_priority))),
            _ => None,
        });
        let current = past.first().or(rest.first()).map(|event| (event.pid, None));
        if let Some((pid, priority)) = next.or(current) {
            (state.pid, state.priority) = (pid, priority);
        }
        for event in past.get(begin..).unwrap_or_default() {
            state.take(event);
        }
        (state.is_chosen, state.is_broken) = (false, false);
        state
    }

    /// Whether the current thread of an event is not the expected one.
    fn contradicts(&self, event: &Event) -> bool {
        // The stack of a switch follows it, with the previous thread as current.
        event.pid != self.pid && !matches!(event.what, What::Stack(_))
    }

    fn take(&mut self, event: &Event) {
        if self.contradicts(event) {
            *self = State { pid: event.pid, is_broken: true, ..State::default() };
        }
        match event.what {
            What::Switch { next, next_priority, .. } => {
                *self = State { pid: next, priority: Some(next_priority), is_chosen: true, ..State::default() };
            }
            What::Enter(context) => self.contexts.push((context, event.at_ns)),
            What::Leave(context) => {
                // Ends nested contexts without an exit event, too.
                if let Some(at) = self.contexts.iter().rposition(|(open, _)| *open == context) {
                    self.contexts.truncate(at);
                }
            }
            _ => {}
        }
    }

    fn stretch(&self, from_ns: u64, to_ns: u64) -> Stretch {
        let context = self.contexts.last().map(|(context, _)| *context);
        let State { pid, priority, is_chosen, is_broken, .. } = *self;
        Stretch { from_ns, to_ns, context, pid, priority, is_chosen, is_broken }
    }
}

/// Stretches of a CPU from `from` to `to`, without gaps.
pub(super) fn stretches(cpu: &CpuEvents, from: u64, to: u64) -> Vec<Stretch> {
    let first = cpu.from(from);
    let mut state = State::before(cpu, first);
    let mut found: Vec<Stretch> = Vec::new();
    let mut push = |stretch: Stretch| match found.last_mut() {
        _ if stretch.from_ns == stretch.to_ns => {}
        Some(last)
            if Stretch { from_ns: last.from_ns, to_ns: stretch.to_ns, ..stretch }
                == Stretch { to_ns: stretch.to_ns, ..*last } =>
        {
            last.to_ns = stretch.to_ns;
        }
        _ => found.push(stretch),
    };
    let mut at = from;
    for event in cpu.events.get(first..).unwrap_or_default().iter().take_while(|event| event.at_ns < to) {
        let mut before = state.stretch(at, event.at_ns);
        // A switch is missing somewhere before this event, so the owner until then is uncertain.
        before.is_broken |= state.contradicts(event);
        push(before);
        at = event.at_ns;
        state.take(event);
        state.is_broken = false;
    }
    let mut last = state.stretch(at, to);
    let next = cpu.events.get(first..).unwrap_or_default().iter().find(|event| event.at_ns >= to);
    last.is_broken |= next.is_some_and(|event| state.contradicts(event));
    push(last);
    for event in cpu.between(from, to) {
        if let What::Nmi { length_ns } = event.what {
            carve(&mut found, event.at_ns.saturating_sub(length_ns).max(from), event.at_ns);
        }
    }
    found
}

/// Assigns the time from `from` to `to` to a non-maskable interrupt.
fn carve(stretches: &mut Vec<Stretch>, from: u64, to: u64) {
    let parts = |stretch: &Stretch| {
        let (a, b) = (from.clamp(stretch.from_ns, stretch.to_ns), to.clamp(stretch.from_ns, stretch.to_ns));
        [
            Stretch { to_ns: a, ..*stretch },
            Stretch { from_ns: a, to_ns: b, context: Some(Context::Nmi), ..*stretch },
            Stretch { from_ns: b, ..*stretch },
        ]
    };
    *stretches = stretches.iter().flat_map(parts).filter(|part| part.from_ns < part.to_ns).collect();
}

/// Open interrupts and softirqs at `at_ns`, outermost first, each with its start.
pub(super) fn contexts_at(cpu: &CpuEvents, at_ns: u64) -> Vec<(Context, u64)> {
    State::before(cpu, cpu.from(at_ns)).contexts
}

/// Number of switches from `from` to `to` without an event: the current thread is not the one switched in last.
pub(super) fn broken_switches(cpu: &CpuEvents, from: u64, to: u64) -> u64 {
    let mut state = State::before(cpu, cpu.from(from));
    let mut broken = 0;
    // The first later event shows the owner at the end.
    let next = cpu.events.get(cpu.from(to + 1)..).unwrap_or_default().first();
    for event in cpu.between(from, to).iter().chain(next) {
        broken += u64::from(state.contradicts(event));
        state.take(event);
    }
    broken
}

/// Priority of the thread of a stretch at its next switch out; `None` if that is not the next switch.
pub(super) fn priority_at_leaving(cpu: &CpuEvents, stretch: &Stretch) -> Option<i32> {
    let later = cpu.events.get(cpu.from(stretch.to_ns)..)?;
    let switch = later.iter().find(|event| matches!(event.what, What::Switch { .. }))?;
    match switch.what {
        What::Switch { prev, prev_priority, .. } if prev == stretch.pid => Some(prev_priority),
        _ => None,
    }
}

/// Time of the first event from `from` to `to`, of a thread or of its interrupts, with a request to switch.
pub(super) fn resched_at(cpu: &CpuEvents, from: u64, to: u64) -> Option<u64> {
    cpu.between(from, to).iter().find(|event| event.flags & flags::NEED_RESCHED != 0).map(|event| event.at_ns)
}

/// A request to switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Requested {
    /// The first event that shows it, and the last one.
    pub(super) from_ns: u64,
    pub(super) seen_ns: u64,
    /// The event that shows that it was cleared without a switch: the scheduler ran and kept the same thread.
    pub(super) answered_ns: Option<u64>,
}

/// The first request to switch from `from` until `to`.
pub(super) fn resched_from(cpu: &CpuEvents, from: u64, to: u64) -> Option<Requested> {
    let from_ns = resched_at(cpu, from, to.saturating_sub(1))?;
    let is_shown = |event: &&Event| event.flags & flags::NEED_RESCHED != 0;
    // The event at `to` tells as well, unless it is the switch.
    let is_switch = |event: &&Event| matches!(event.what, What::Switch { .. });
    let events = cpu.between(from_ns, to).iter().take_while(|event| !is_switch(event));
    let seen_ns = events.clone().take_while(is_shown).last().map_or(from_ns, |event| event.at_ns);
    let answered_ns = events.clone().find(|event| !is_shown(event)).map(|event| event.at_ns);
    Some(Requested { from_ns, seen_ns, answered_ns })
}

/// A stretch of one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The CPU.
    pub cpu: u32,
    /// Its start, `CLOCK_MONOTONIC`, ns.
    pub from_ns: u64,
    /// Its end, `CLOCK_MONOTONIC`, ns.
    pub to_ns: u64,
    /// Name of the owner of the CPU.
    pub name: String,
    /// `thread`, `idle`, `interrupt`, `softirq` or `nmi`.
    pub kind: &'static str,
    /// ID of the current thread.
    pub pid: i32,
}

/// Owners of every CPU from `from_ns` to `to_ns`.
pub fn slices(trace: &Trace, from_ns: u64, to_ns: u64) -> Vec<Slice> {
    let of_cpu = |(cpu, events): (u32, &super::CpuEvents)| {
        let slice = move |stretch: Stretch| Slice {
            cpu,
            from_ns: stretch.from_ns,
            to_ns: stretch.to_ns,
            name: trace.owner_name(stretch.context, stretch.pid),
            kind: match stretch.context {
                None if stretch.pid == 0 => "idle",
                None => "thread",
                Some(Context::Softirq(_)) => "softirq",
                Some(Context::Nmi) => "nmi",
                Some(_) => "interrupt",
            },
            pid: stretch.pid,
        };
        let stretches = if events.events.is_empty() { Vec::new() } else { stretches(events, from_ns, to_ns) };
        stretches.into_iter().map(slice).collect::<Vec<_>>()
    };
    trace.numbered().flat_map(of_cpu).collect()
}
