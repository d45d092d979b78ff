//! Priority inheritance: a hog of middle priority must not run while a waiter of high priority waits for a mutex.
//!
//! The waiter reads the CPU time that the hog has used when it gets the mutex. What else took the CPU does not matter.

use super::stage::{Actor, cues, fifo, perform, spin};
use punctual_model::{Claim, ClaimCases, Span};
use punctual_sys::futex::Futex;
use punctual_sys::pthread::{Mutex, MutexKind};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};

/// The kind of mutex of which inheritance is promised.
pub(super) const PROMISED: MutexKind = MutexKind::Inheriting;
/// Cases of a claim: a promise broken in one of ten shows with a chance of 99.5 %.
const CASES: usize = 50;
const CONTROLS: usize = 10;
/// CPU time of the hog, and of the holder's section.
const HOG: Span = Span(1_000_000);
const SECTION: Span = Span(30_000);
/// Longest chain.
const LONGEST: usize = 10;
/// Priorities: of the first holder, of the hog, of the waiter. Those of further holders lie between the first two.
const HOLDER: u32 = 2;
const MIDDLE: u32 = 20;
const WAITER: u32 = 30;

/// What hog and waiter share.
#[derive(Default)]
struct Scene {
    hog: AtomicU64,
    /// CPU time of the hog when the waiter got the mutex.
    waited: AtomicU64,
    is_over: AtomicBool,
}

impl Scene {
    fn hog(&self) -> Result<(), i32> {
        spin(HOG, &self.hog, &self.is_over);
        Ok(())
    }

    fn acquired(&self) {
        self.waited.store(self.hog.load(Acquire), Release);
        self.is_over.store(true, Release);
    }
}

/// The section of the first holder, in which the hog becomes ready.
fn section(hog: &Futex) -> Result<(), i32> {
    hog.post()?;
    spin(SECTION, &AtomicU64::new(0), &AtomicBool::new(false));
    Ok(())
}

/// A mutex alone, and chains of two to ten.
pub(super) fn of_mutexes(kind: MutexKind) -> io::Result<Vec<ClaimCases>> {
    let one = series(Claim::OneHolder, kind, |_, kind| chain(1, kind))?;
    let more = series(Claim::ChainOfHolders, kind, |case, kind| chain(2 + case % (LONGEST - 1), kind))?;
    Ok(vec![one, more])
}

/// A mutex that the waiter locks again when it was signaled.
pub(super) fn of_condition(kind: MutexKind) -> io::Result<Vec<ClaimCases>> {
    Ok(vec![series(Claim::AfterSignal, kind, |_, kind| after_signal(kind))?])
}

/// Cases with mutexes of `kind`, and a control with plain ones, which the hog must delay for its whole length.
fn series(claim: Claim, kind: MutexKind, case: impl Fn(usize, MutexKind) -> io::Result<u64>) -> io::Result<ClaimCases> {
    let mut cases = ClaimCases { asked_ns: Some(HOG.ns()), ..ClaimCases::new(claim) };
    for index in 0..CASES {
        let hog_ns = case(index, kind)?;
        cases.see(hog_ns);
        cases.add(hog_ns == 0);
    }
    for index in 0..CONTROLS {
        cases.control(case(index, MutexKind::Plain)? >= HOG.ns());
    }
    Ok(cases)
}

/// Each holder but the first waits for the mutex of the one before, and the waiter for that of the last. Returns the
/// CPU time of the hog while the waiter waited, ns.
fn chain(length: usize, kind: MutexKind) -> io::Result<u64> {
    let locks = (0..length).map(|_| Mutex::new(kind)).collect::<io::Result<Vec<_>>>()?;
    let (scene, cues) = (Scene::default(), cues(length + 2));
    let (hog, waiter) = (&cues[length], &cues[length + 1]);
    let (scene, cues, locks) = (&scene, &cues, &locks);
    let holder = |index: usize| {
        move || {
            locks[index].lock()?;
            if index + 1 < length {
                // It preempts this one.
                cues[index + 1].post()?;
            }
            match index.checked_sub(1) {
                Some(before) => {
                    locks[before].lock()?;
                    locks[before].unlock()?;
                }
                None => {
                    waiter.post()?;
                    section(hog)?;
                }
            }
            locks[index].unlock()
        }
    };
    let mut actors: Vec<_> =
        (0..length).zip(HOLDER..).map(|(index, priority)| Actor::new(fifo(priority), holder(index))).collect();
    actors.push(Actor::new(fifo(MIDDLE), || scene.hog()));
    actors.push(Actor::new(fifo(WAITER), || {
        locks[length - 1].lock()?;
        scene.acquired();
        locks[length - 1].unlock()
    }));
    perform(cues, actors, || cues[0].post())?;
    Ok(scene.waited.load(Acquire))
}

/// The holder signals the waiter, which then waits for the holder's mutex. Returns as [`chain`].
fn after_signal(kind: MutexKind) -> io::Result<u64> {
    let (scene, cues, mutex, is_signaled) = (Scene::default(), cues(3), Mutex::new(kind)?, AtomicU32::new(0));
    let (scene, hog) = (&scene, &cues[1]);
    let holder = || {
        mutex.lock()?;
        is_signaled.store(1, Relaxed);
        mutex.signal()?;
        section(hog)?;
        mutex.unlock()
    };
    let waiter = || {
        mutex.lock()?;
        while is_signaled.load(Relaxed) == 0 {
            mutex.wait()?;
        }
        scene.acquired();
        mutex.unlock()
    };
    let actors = vec![
        Actor::new(fifo(HOLDER), holder),
        Actor::new(fifo(MIDDLE), || scene.hog()),
        Actor::new(fifo(WAITER), waiter),
    ];
    perform(&cues, actors, || {
        cues[2].post()?;
        cues[0].post()
    })?;
    Ok(scene.waited.load(Acquire))
}
