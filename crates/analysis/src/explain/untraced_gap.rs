//! Untraced gaps: intervals in which a CPU has no event, and the check for a standstill of the whole machine.

use super::event::{CpuEvents, Event, Trace, What};
use std::collections::HashMap;

/// The longest stretch without an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hole {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
}

impl Hole {
    pub(super) fn length_ns(self) -> u64 {
        self.to_ns - self.from_ns
    }
}

/// Shortest silence that needs an explanation, ns.
pub(super) const NOTABLE_NS: u64 = 20_000;
/// Lateness of a timer on another CPU, ns, above that of an ordinary timer, from which it counts as held up.
const LATE_NS: u64 = 15_000;

/// Time before a silence in which the starts of timers are looked for, ns.
const LOOK_BACK_NS: u64 = 1_000_000_000;

/// The longest stretch without an event of `cpu` from `from` until `to`, whose ends count as events.
pub(super) fn longest_hole(cpu: &CpuEvents, from: u64, to: u64) -> Hole {
    let (mut at, mut hole) = (from, Hole { from_ns: from, to_ns: from });
    for event_ns in cpu.between(from, to).iter().map(|event| event.at_ns).chain([to]) {
        if event_ns - at > hole.length_ns() {
            hole = Hole { from_ns: at, to_ns: event_ns };
        }
        at = event_ns;
    }
    hole
}

/// Number of late timers of other CPUs that were due in `hole`, while no CPU had an event: the whole machine stood
/// still. `None` if another CPU was active or no such timer was due. Silence alone proves nothing, because a CPU in
/// user mode is silent as well.
pub(super) fn stood_still(trace: &Trace, cpu: u32, hole: Hole) -> Option<usize> {
    // Events of the others near the ends of the hole belong to its ends.
    let margin = hole.length_ns() / 20;
    let (from, to) = (hole.from_ns + margin, hole.to_ns - margin);
    let others = || trace.numbered().filter(|(other, events)| *other != cpu && !events.events.is_empty());
    if others().any(|(_, events)| !events.between(from, to).is_empty()) {
        return None;
    }
    let late = others().map(|(_, events)| late_timers(events, from, to)).sum();
    (late > 0).then_some(late)
}

/// Number of timers of one CPU that were due from `from` to `to` and expired late, after `to`. The due time is that of
/// their start, or follows from their period.
fn late_timers(cpu: &CpuEvents, from: u64, to: u64) -> usize {
    let mut due: HashMap<u64, u64> = HashMap::new();
    let mut last: HashMap<u64, (u64, Option<u64>)> = HashMap::new();
    let mut late = 0;
    for Event { at_ns, what, .. } in cpu.between(from.saturating_sub(LOOK_BACK_NS), u64::MAX) {
        match *what {
            What::TimerStart { timer, expires_ns, .. } => {
                due.insert(timer, u64::try_from(expires_ns).unwrap_or(0));
            }
            What::TimerExpire { timer, .. } => {
                let programmed = due.remove(&timer);
                let before = last.get(&timer).copied();
                let period = before.map(|(before, _)| at_ns - before);
                // Three expirations at equal distances make a period.
                let usual = before.and_then(|(before, distance)| Some((before, distance?)));
                let guessed = usual.map(|(before, distance)| before + distance);
                if *at_ns > to
                    && programmed.or(guessed).is_some_and(|due| (from..to).contains(&due) && at_ns - due > LATE_NS)
                {
                    late += 1;
                }
                let is_same = |distance: &u64| period.is_some_and(|period| period.abs_diff(*distance) < distance / 20);
                let distance = match before {
                    Some((_, Some(distance))) => Some(distance).filter(is_same).or(period),
                    Some((_, None)) | None => period,
                };
                last.insert(timer, (*at_ns, distance));
                if *at_ns > to + LATE_NS * 1000 {
                    break;
                }
            }
            _ => {}
        }
    }
    late
}
