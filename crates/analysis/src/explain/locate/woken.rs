//! The events of a wake-up by a device: its interrupt, and who woke the thread on its behalf.

use super::{Place, Subject, Wake, first_after, is_asleep, last_between, place, runs_again};
use crate::explain::event::{Context, CpuEvents, Event, Trace, What};
use crate::explain::timeline;

/// A softirq that begins so soon after an interrupt is of that interrupt, ns.
const BEHIND_NS: u64 = 5_000;
/// What the kernel calls the threads of interrupts, before their number (kernel/irq/manage.c).
const THREAD: &str = "irq/";

impl Wake {
    /// Finds the events of `subject` from its last sleep on: whatever woke it before was not what it waited for, and whatever
    /// woke it once it ran did so in vain.
    pub(super) fn by_waking(trace: &Trace, subject: &Subject) -> Wake {
        let (due, woke) = (subject.due_ns, subject.woke_ns);
        let is_waking = |event: &Event| event.what == What::Waking { pid: subject.pid };
        let sleep = |from, to| last_between(trace, from, to, |event| is_asleep(event, subject.pid)).map(place);
        // What waits for a device may sleep since long before.
        let asleep = sleep(due, woke.saturating_sub(1)).or_else(|| sleep(0, due));
        let since = asleep.map_or(0, |(_, at)| at);
        let switched = runs_again(trace, subject, since);
        // Who wakes it from another CPU may begin with that while it is being switched out.
        let waking =
            first_after(trace, since, switched.1, is_waking).or_else(|| last_between(trace, due, since, is_waking));
        if let Some((cpu, waking)) = waking.filter(|(_, waking)| waking.at_ns >= due) {
            let (entry, handled_by) = brought_by(trace, cpu, &waking);
            let entry = entry.filter(|(_, at)| *at >= due);
            let (waking, switched) = (Some((cpu, waking.at_ns)), Some(switched));
            return Wake { asleep, slack_ns: 0, entry, handled_by, waking, switched };
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

/// The priority that whoever is current at an event was switched in with.
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
