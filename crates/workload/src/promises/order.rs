//! Order of wake-ups: of five waiters that came in a random order, each wake-up takes the one of the highest priority.

use super::stage::{Actor, cues, fifo, perform};
use punctual_model::{Claim, ClaimCases, Policy, Promise, SplitMix64};
use punctual_sys::futex::Futex;
use punctual_sys::handoff::Semaphore;
use punctual_sys::pthread::{Mutex, MutexKind};
use std::io;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

/// The policy of a waiter, by its priority, of which the order is promised.
pub(super) const PROMISED: fn(u32) -> Policy = fifo;
const CASES: usize = 50;
const WAITERS: usize = 5;
/// Lowest priority of a waiter; a holder has less.
const HOLDER: u32 = 2;
const LOWEST: u32 = 10;

/// Ways to wait and to be woken.
struct Gate {
    claim: Claim,
    semaphore: Semaphore,
    mutex: Mutex,
    tokens: AtomicU32,
}

impl Gate {
    fn wait(&self) -> Result<(), i32> {
        match self.claim {
            Claim::Semaphore => return self.semaphore.take(),
            Claim::Unlock => {
                self.mutex.lock()?;
            }
            _ => {
                self.mutex.lock()?;
                while self.tokens.load(Relaxed) == 0 {
                    self.mutex.wait()?;
                }
                self.tokens.fetch_sub(1, Relaxed);
            }
        }
        Ok(())
    }

    fn leave(&self) -> Result<(), i32> {
        if self.claim == Claim::Semaphore { Ok(()) } else { self.mutex.unlock() }
    }

    fn wake_all(&self, holder: &Futex) -> Result<(), i32> {
        match self.claim {
            Claim::Semaphore => (0..WAITERS).try_for_each(|_| self.semaphore.post()),
            Claim::Unlock => holder.post(),
            Claim::Broadcast => {
                self.give(WAITERS)?;
                self.mutex.broadcast()
            }
            _ => (0..WAITERS).try_for_each(|_| {
                self.give(1)?;
                self.mutex.signal()
            }),
        }
    }

    fn give(&self, tokens: usize) -> Result<(), i32> {
        self.mutex.lock()?;
        self.tokens.fetch_add(u32::try_from(tokens).unwrap_or(0), Relaxed);
        self.mutex.unlock()
    }
}

/// The order of waiters with this policy, for each way to wake them.
pub(super) fn of_waiters(policy: fn(u32) -> Policy) -> io::Result<Vec<ClaimCases>> {
    let mut random = SplitMix64::new(0);
    let mut of_claim = |claim: &Claim| {
        let mut cases = ClaimCases::new(*claim);
        for _ in 0..CASES {
            cases.add(is_in_order(*claim, policy, &mut random)?);
        }
        Ok(cases)
    };
    Promise::WakeOrder.claims().iter().map(&mut of_claim).collect()
}

fn is_in_order(claim: Claim, policy: fn(u32) -> Policy, random: &mut SplitMix64) -> io::Result<bool> {
    let kind = if claim == Claim::Unlock { MutexKind::Inheriting } else { MutexKind::Plain };
    let gate = Gate { claim, semaphore: Semaphore::new()?, mutex: Mutex::new(kind)?, tokens: AtomicU32::new(0) };
    // The last cue is that of the holder; another one ends its section.
    let (cues, holder) = (cues(WAITERS + 1), Futex::default());
    let (next, places) = (AtomicUsize::new(0), [const { AtomicUsize::new(0) }; WAITERS]);
    let (gate, next, places) = (&gate, &next, &places);
    let waiter = |index: usize| {
        move || {
            gate.wait()?;
            places[index].store(next.fetch_add(1, AcqRel), Release);
            gate.leave()
        }
    };
    let mut actors: Vec<_> =
        (0..WAITERS).zip(LOWEST..).map(|(index, priority)| Actor::new(policy(priority), waiter(index))).collect();
    actors.push(Actor::new(fifo(HOLDER), || {
        if claim != Claim::Unlock {
            return Ok(());
        }
        gate.mutex.lock()?;
        holder.take()?;
        gate.mutex.unlock()
    }));
    let mut arrivals: Vec<usize> = (0..WAITERS).collect();
    random.shuffle(&mut arrivals);
    perform(&cues, actors, || {
        cues[WAITERS].post()?;
        arrivals.iter().try_for_each(|index| cues[*index].post())?;
        gate.wake_all(&holder)
    })?;
    Ok(places.iter().rev().zip(0..).all(|(place, expected)| place.load(Acquire) == expected))
}
