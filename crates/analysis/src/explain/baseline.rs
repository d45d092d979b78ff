//! Baseline: the usual length of each phase, from the other wake-ups in the same trace.

use super::event::{Event, Trace, What};
use super::locate::{Subject, WaitsFor, Wake};
use punctual_model::{Phase, Span};

/// Usual lengths, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Baseline {
    expiry_ns: u64,
    handler_ns: u64,
    return_ns: u64,
}

/// Largest number of wake-ups used.
const MAX_WAKE_UPS: usize = 200;
/// Allowance above three times the usual length of a phase, ns, for cold caches and device interrupts.
const ALLOWANCE_NS: u64 = 10_000;

impl Baseline {
    /// Baseline from the wake-ups of the same thread before this one.
    pub(super) fn of(trace: &Trace, subject: &Subject) -> Baseline {
        if subject.waits_for != WaitsFor::Timer {
            return Baseline::of_wakings(trace, subject);
        }
        let is_start = |event: &&Event| event.is_timer_start_of(subject.pid);
        let mut starts: Vec<(u32, Event)> = Vec::new();
        for (cpu, events) in trace.numbered() {
            let before = events.between(0, subject.due_ns).iter().rev();
            starts.extend(before.filter(is_start).take(MAX_WAKE_UPS).map(|event| (cpu, *event)));
        }
        Event::sort_of_cpus(&mut starts);
        let mut lengths = Lengths::default();
        for pair in starts.windows(2).rev().take(MAX_WAKE_UPS) {
            let [start, (_, next)] = *pair else { continue };
            let What::TimerStart { soft_ns, .. } = start.1.what else { continue };
            let due = u64::try_from(soft_ns).unwrap_or(0);
            // The start of the next wait replaces the reading of the clock. Due times of another clock are skipped.
            if due < start.1.at_ns || due >= next.at_ns {
                continue;
            }
            let usual = Subject { due_ns: due, woke_ns: next.at_ns, ..*subject };
            lengths.take(&Wake::from_start(trace, &usual, Some(start)), &usual);
        }
        lengths.baseline()
    }

    /// Baseline for waits without a timer: each interval between two sleeps of the thread contains one wake-up. The due
    /// times are unknown, so the time until the interrupt has no baseline.
    fn of_wakings(trace: &Trace, subject: &Subject) -> Baseline {
        let is_asleep = |event: &&Event| matches!(event.what, What::Switch { prev, .. } if prev == subject.pid);
        let mut sleeps: Vec<u64> = Vec::new();
        for (_, events) in trace.numbered() {
            let before = events.between(0, subject.due_ns).iter().rev();
            sleeps.extend(before.filter(is_asleep).take(MAX_WAKE_UPS).map(|event| event.at_ns));
        }
        sleeps.sort_unstable();
        let mut lengths = Lengths::default();
        for pair in sleeps.windows(2).rev().take(MAX_WAKE_UPS) {
            let [due_ns, woke_ns] = *pair else { continue };
            let usual = Subject { due_ns, woke_ns, ..*subject };
            lengths.take(&Wake::find(trace, &usual), &usual);
        }
        Baseline { expiry_ns: 0, ..lengths.baseline() }
    }

    /// Largest ordinary length of a stretch of this phase, ns.
    pub(super) fn ordinary_ns(&self, phase: Phase) -> u64 {
        let usual = match phase {
            Phase::ExpiryToInterrupt => self.expiry_ns,
            Phase::InterruptToWakeup => self.handler_ns,
            Phase::SwitchToUser => self.return_ns,
            _ => 0,
        };
        usual.saturating_mul(3).saturating_add(ALLOWANCE_NS)
    }
}

/// The lengths of the phases that have a baseline.
#[derive(Default)]
struct Lengths {
    expiry: Vec<u64>,
    handler: Vec<u64>,
    on_return: Vec<u64>,
}

impl Lengths {
    fn take(&mut self, wake: &Wake, usual: &Subject) {
        for piece in wake.pieces(usual) {
            let Span(length) = piece.length().length;
            match piece.phase {
                Phase::ExpiryToInterrupt => self.expiry.push(length),
                Phase::InterruptToWakeup => self.handler.push(length),
                Phase::SwitchToUser => self.on_return.push(length),
                _ => {}
            }
        }
    }

    fn baseline(self) -> Baseline {
        let [expiry_ns, handler_ns, return_ns] = [self.expiry, self.handler, self.on_return].map(median);
        Baseline { expiry_ns, handler_ns, return_ns }
    }
}

fn median(mut lengths: Vec<u64>) -> u64 {
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).copied().unwrap_or(0)
}
