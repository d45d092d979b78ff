//! The triggers that were sent, and those that are still open.

use std::cell::Cell;

/// Slots examined in one go for the oldest open trigger: a lossy link must not cost the measured thread a long search.
const STEPS: u32 = 64;

/// A trigger with its send times.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Trigger {
    /// Number, from 1 on; 0 for a slot that was never used.
    pub(super) number: u64,
    /// The cycle of the trigger.
    pub(super) index: u64,
    /// Send time, ns of `CLOCK_MONOTONIC`.
    pub(super) monotonic_ns: u64,
    /// Send time, ns of `CLOCK_REALTIME`.
    pub(super) real_ns: u64,
    /// Time at which the kernel passed it to the network, ns of `CLOCK_REALTIME`; `None` without a time stamp.
    pub(super) handed_on_ns: Option<u64>,
    /// Whether it still has no answer.
    pub(super) is_open: bool,
}

/// The last triggers, in a ring: a trigger's slot is its number modulo the size.
#[derive(Debug)]
pub(super) struct Triggers {
    ring: Box<[Cell<Trigger>]>,
    /// The number of the present trigger; 0 before the first.
    present: Cell<u64>,
    /// The largest number that was answered.
    answered: Cell<u64>,
    /// Number of open triggers.
    open: Cell<u64>,
    /// Lower bound of the numbers of open triggers.
    settled: Cell<u64>,
    /// Lower bound of the cycles of open triggers.
    settled_cycle: Cell<u64>,
}

impl Triggers {
    /// A ring for `room` triggers; those that were sent before have numbers up to `before`.
    pub(super) fn new(room: usize, before: u64) -> Triggers {
        Triggers {
            ring: vec![Cell::new(Trigger::default()); room.max(1)].into(),
            present: Cell::new(before),
            answered: Cell::new(before),
            open: Cell::new(0),
            settled: Cell::new(before + 1),
            settled_cycle: Cell::new(0),
        }
    }

    /// The slot of a number. `None` cannot happen; it keeps the measured path free of panics.
    #[inline]
    fn slot(&self, number: u64) -> Option<&Cell<Trigger>> {
        self.ring.get(usize::try_from(number % self.ring.len() as u64).unwrap_or(usize::MAX))
    }

    /// The number of the present trigger; 0 before the first.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.present.get()
    }

    #[inline]
    pub(super) fn present(&self) -> Trigger {
        self.get(self.number()).unwrap_or_default()
    }

    /// The trigger with this number; `None` once a later one has taken its slot.
    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<Trigger> {
        Some(self.in_slot_of(number)).filter(|trigger| trigger.number == number && number > 0)
    }

    /// The trigger in the slot that `number` has, or will have.
    #[inline]
    pub(super) fn in_slot_of(&self, number: u64) -> Trigger {
        self.slot(number).map(Cell::get).unwrap_or_default()
    }

    /// Whether any trigger is open.
    #[inline]
    pub(super) fn has_open(&self) -> bool {
        self.open.get() > 0
    }

    /// Whether a trigger later than `number` was answered.
    #[inline]
    pub(super) fn is_overtaken(&self, number: u64) -> bool {
        self.answered.get() > number
    }

    /// Makes `trigger` the present one; returns the open trigger whose slot it takes.
    #[inline]
    pub(super) fn send(&self, trigger: Trigger) -> Option<Trigger> {
        let before = self.slot(trigger.number).map(|slot| slot.replace(trigger)).filter(|before| before.is_open);
        self.open.set(self.open.get() + 1 - u64::from(before.is_some()));
        self.present.set(trigger.number);
        before
    }

    /// Records the time at which the kernel passed the present trigger to the network.
    #[inline]
    pub(super) fn handed_on(&self, at_ns: Option<u64>) {
        if let Some(slot) = self.slot(self.number()) {
            slot.set(Trigger { handed_on_ns: at_ns, ..slot.get() });
        }
    }

    /// Marks trigger `number` as answered.
    #[inline]
    pub(super) fn answer(&self, number: u64) {
        self.answered.set(self.answered.get().max(number));
        self.close(number);
    }

    fn close(&self, number: u64) {
        if let Some((slot, trigger)) = self.slot(number).zip(self.get(number)).filter(|(_, trigger)| trigger.is_open) {
            slot.set(Trigger { is_open: false, ..trigger });
            self.open.set(self.open.get() - 1);
        }
    }

    /// Passes every open trigger to `take` and closes it.
    pub(super) fn close_all(&self, mut take: impl FnMut(Trigger)) {
        for trigger in self.ring.iter().map(Cell::get).filter(|trigger| trigger.is_open) {
            self.close(trigger.number);
            take(trigger);
        }
    }

    /// A cycle before which no trigger is open any more.
    #[inline]
    pub(super) fn settled_cycle(&self) -> u64 {
        for _ in 0..STEPS {
            let number = self.settled.get();
            let trigger = self.in_slot_of(number);
            if number > self.number() || trigger.is_open && trigger.number == number {
                break;
            }
            if trigger.number == number {
                self.settled_cycle.set(trigger.index + 1);
            }
            self.settled.set(number + 1);
        }
        self.settled_cycle.get()
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;

    fn trigger(number: u64) -> Trigger {
        Trigger { number, index: number - 1, is_open: true, ..Trigger::default() }
    }

    #[test]
    fn what_was_sent_is_open_until_it_is_answered_or_its_slot_is_taken() {
        let triggers = Triggers::new(4, 0);
        assert!(!triggers.has_open() && triggers.get(0).is_none() && triggers.settled_cycle() == 0);
        for number in 1..=4 {
            assert!(triggers.send(trigger(number)).is_none());
        }
        triggers.answer(1);
        triggers.answer(4);
        assert!(triggers.is_overtaken(2) && !triggers.is_overtaken(4));
        assert_eq!(triggers.settled_cycle(), 1, "the second has no answer");
        assert!(triggers.send(trigger(5)).is_none(), "the first has one");
        // The sixth was not sent in time; the seventh takes the slot of the third.
        let given_up = triggers.send(trigger(7)).map(|trigger| trigger.number);
        assert_eq!((given_up, triggers.number(), triggers.get(3).is_none()), (Some(3), 7, true));
        assert_eq!(triggers.settled_cycle(), 1, "the second still has none");
        triggers.answer(2);
        assert_eq!(triggers.settled_cycle(), 4, "the fifth has none");
        let mut open = Vec::new();
        triggers.close_all(|trigger| open.push(trigger.number));
        open.sort_unstable();
        assert_eq!((open, triggers.has_open(), triggers.settled_cycle()), (vec![5, 7], false, 7));
    }

    #[test]
    fn a_slot_that_was_jumped_over_keeps_what_is_open_in_it() {
        let triggers = Triggers::new(4, 0);
        triggers.send(trigger(1));
        triggers.send(trigger(2));
        triggers.answer(1);
        // 3 to 8 were not sent in time: 2 is in the slot of 6.
        triggers.send(trigger(9));
        triggers.answer(9);
        assert_eq!((triggers.settled_cycle(), triggers.get(2).map(|two| two.is_open)), (0, Some(true)));
        triggers.answer(2);
        assert_eq!(triggers.settled_cycle(), 9);
    }
}
