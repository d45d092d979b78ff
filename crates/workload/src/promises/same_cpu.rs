//! Preemption on one CPU: when a thread has woken one of higher priority, that one has run before it goes on.

use super::stage::{Actor, cues, fifo, perform};
use punctual_model::{Claim, ClaimCases};
use punctual_sys::futex::Futex;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// Priority of the woken thread, which preempts the waker.
pub(super) const PROMISED: u32 = 30;
const CASES: u64 = 200;
/// The waker, and a woken thread that must not preempt it.
const WAKER: u32 = 10;
const LOWER: u32 = 5;

/// The waker wakes a thread of priority `woken`; in the control, one of a lower priority than its own.
pub(super) fn preemption(woken: u32) -> io::Result<ClaimCases> {
    let mut cases = ClaimCases::new(Claim::SameCpu);
    wake(woken, |has_run| cases.add(has_run))?;
    wake(LOWER, |has_run| cases.control(!has_run))?;
    Ok(cases)
}

/// Calls `see` after each wake-up, in the waker.
fn wake(woken: u32, mut see: impl FnMut(bool) + Send) -> io::Result<()> {
    let (cues, go, runs) = (cues(2), Futex::default(), AtomicU64::new(0));
    let (go, runs) = (&go, &runs);
    let actors = vec![
        Actor::new(fifo(woken), move || {
            (0..CASES).try_for_each(|_| {
                go.take()?;
                runs.fetch_add(1, AcqRel);
                Ok(())
            })
        }),
        Actor::new(fifo(WAKER), move || {
            (1..=CASES).try_for_each(|case| go.post().map(|()| see(runs.load(Acquire) == case)))
        }),
    ];
    perform(&cues, actors, || {
        cues[0].post()?;
        cues[1].post()
    })
}
