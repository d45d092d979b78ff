//! Hand-offs that were made and not yet taken: the waker writes and the measured thread reads, both without waiting.

use atomic::{AtomicI32, AtomicU64, Ordering::*};
use punctual_model::ClockTime;

#[cfg(loom)]
use loom::sync::atomic;
#[cfg(not(loom))]
use std::sync::atomic;

/// One hand-off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::methods) struct Handed {
    /// Index of the cycle whose due time the waker slept until.
    pub(super) cycle: u64,
    /// The waker's reading of the clock just before the wake-up.
    pub(super) at: ClockTime,
}

/// The hand-offs, and the waker's errno.
#[derive(Debug, Default)]
pub(in crate::methods) struct Pending {
    slots: [Slot; Pending::MOST],
    /// Hand-offs ever made. The waker's release store publishes all earlier ones.
    given: AtomicU64,
    /// Hand-offs ever taken. The reader's release store frees the slots.
    taken: AtomicU64,
    /// The errno with which the waker ended; 0 while it runs.
    errno: AtomicI32,
}

#[derive(Debug, Default)]
struct Slot {
    cycle: AtomicU64,
    at_ns: AtomicU64,
}

impl Pending {
    /// The most that are pending: more than a thread less than two periods late can have, and less than a POSIX queue
    /// holds, so that the waker never waits for the thread that it wakes.
    pub(super) const MOST: usize = 4;

    /// Whether fewer than `most` are pending. Called by the waker.
    pub(super) fn has_room(&self, most: u64) -> bool {
        self.given.load(Relaxed) - self.taken.load(Acquire) < most
    }

    /// Adds a hand-off, for which there is room. Called by the waker.
    pub(super) fn give(&self, handed: Handed) {
        let given = self.given.load(Relaxed);
        if let Some(slot) = self.slot(given) {
            slot.cycle.store(handed.cycle, Relaxed);
            slot.at_ns.store(handed.at.0, Relaxed);
        }
        self.given.store(given + 1, Release);
    }

    /// Takes the oldest. Called by the measured thread.
    #[inline]
    pub(super) fn take(&self) -> Option<Handed> {
        let taken = self.taken.load(Relaxed);
        let slot = self.slot(taken).filter(|_| taken < self.given.load(Acquire))?;
        let handed = Handed { cycle: slot.cycle.load(Relaxed), at: ClockTime(slot.at_ns.load(Relaxed)) };
        self.taken.store(taken + 1, Release);
        Some(handed)
    }

    #[expect(clippy::cast_possible_truncation, reason = "below the number of slots, which is a usize")]
    fn slot(&self, n: u64) -> Option<&Slot> {
        self.slots.get((n % Pending::MOST as u64) as usize)
    }

    /// Publishes the errno that ends the waker.
    pub(super) fn fail(&self, errno: i32) {
        self.errno.store(errno, Release);
    }

    /// The errno that ended the waker, as an error.
    pub(super) fn check(&self) -> Result<(), i32> {
        match self.errno.load(Acquire) {
            0 => Ok(()),
            errno => Err(errno),
        }
    }
}

#[cfg(loom)]
#[cfg(test)]
mod loom_tests {
    use super::*;
    use std::sync::Arc;

    /// All interleavings of a waker and a thread: each hand-off is taken once, in order and whole, or found no room.
    #[test]
    fn loom_a_hand_off_is_taken_once_whole_and_in_order() {
        loom::model(|| {
            let pending = Arc::new(Pending::default());
            let waker = Arc::clone(&pending);
            let thread = loom::thread::spawn(move || {
                let give = |cycle: u64| {
                    let has_room = waker.has_room(2);
                    if has_room {
                        waker.give(Handed { cycle, at: ClockTime(cycle * 10) });
                    }
                    usize::from(has_room)
                };
                (1..4).map(give).sum::<usize>()
            });
            let mut seen: Vec<_> = pending.take().into_iter().collect();
            let given = thread.join().expect("the waker ends");
            seen.extend(std::iter::from_fn(|| pending.take()));
            assert_eq!(seen.len(), given, "none is lost");
            assert!(seen.iter().all(|handed| handed.at.0 == handed.cycle * 10), "never torn");
            assert!(seen.windows(2).all(|pair| pair[0].cycle < pair[1].cycle), "never reordered or repeated");
        });
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_offs_are_taken_in_order_and_give_their_room_back() {
        let pending = Pending::default();
        let handed = |cycle| Handed { cycle, at: ClockTime(cycle + 100) };
        assert_eq!(pending.take(), None);
        for turn in 0..3 {
            for n in 0..4 {
                assert!(pending.has_room(4), "{turn} {n}");
                pending.give(handed(turn * 4 + n));
            }
            assert!(!pending.has_room(4) && !pending.has_room(1) && pending.has_room(5));
            assert_eq!([0; 4].map(|_| pending.take()), [0, 1, 2, 3].map(|n| Some(handed(turn * 4 + n))));
            assert_eq!(pending.take(), None);
        }
        assert_eq!(pending.check(), Ok(()));
        pending.fail(5);
        assert_eq!(pending.check(), Err(5));
    }
}
